//! Turns a device's offloads off, so a packet on the direct path is at most as large as the MTU.

use crate::error::{HostError, Result};
use crate::ifreq;
use std::io;
use std::os::fd::AsRawFd;

// linux/ethtool.h
const SIOCETHTOOL: libc::c_ulong = 0x8946;
const OFFLOADS: [(u32, &str); 6] = [
    (0x0000_0015, "receive checksum"),
    (0x0000_0017, "transmit checksum"),
    (0x0000_0019, "scatter-gather"),
    (0x0000_001f, "TCP segmentation"),
    (0x0000_0024, "generic segmentation"),
    (0x0000_002c, "generic receive"),
];

#[repr(C)]
struct EthtoolValue {
    command: u32,
    data: u32,
}

/// Turns off every offload of `device`.
pub fn offloads_off(device: &str) -> Result<()> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").map_err(|e| HostError::new("cannot open a socket", e))?;
    for (command, name) in OFFLOADS {
        let mut value = EthtoolValue { command, data: 0 };
        let mut request = ifreq::about(device, libc::__c_anonymous_ifr_ifru { ifru_data: (&raw mut value).cast() });
        // SAFETY: the socket is open; `request` and its `value` outlive the call, which writes only into them.
        if unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL as _, &raw mut request) } < 0 {
            let cause = io::Error::last_os_error();
            // An absent offload need not be turned off.
            if cause.raw_os_error() != Some(libc::EOPNOTSUPP) {
                return Err(HostError::new(format!("cannot turn {name} offload of {device} off"), cause));
            }
        }
    }
    Ok(())
}
