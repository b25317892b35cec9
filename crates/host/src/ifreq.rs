//! The kernel's request structure for a device, by name (netdevice(7)).

/// A request about the device `name`, cut to the kernel's limit, with `value` as its argument.
pub fn about(name: &str, value: libc::__c_anonymous_ifr_ifru) -> libc::ifreq {
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru: value };
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()).take(libc::IFNAMSIZ - 1) {
        *to = from as libc::c_char;
    }
    request
}
