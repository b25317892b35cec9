//! TUN devices without offloads: each read or write is an IP packet up to the MTU.

use crate::error::{HostError, Result};
use crate::guest::in_virtual_time;
use crate::ifreq;
use crosswind_packet::RawSending;
use nix::sys::uio::{readv, writev};
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The header of virtio before each packet: no offload has anything to say there.
const VIRTIO_HEADER: usize = 10;
/// The same with a guest's kernel's reasons behind it (kernel/patches/0032).
const HEADER: usize = VIRTIO_HEADER + size_of::<RawSending>();

/// The emulator's end of a host's network device.
#[derive(Debug)]
pub struct Tun {
    file: File,
    /// Whether a header stands before each packet.
    has_headers: bool,
}

impl Tun {
    /// Makes the device `name` in the calling thread's namespace. It is gone when this is dropped.
    pub fn create(name: &str) -> Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")
            .map_err(|e| {
                let missing = e.kind() == io::ErrorKind::NotFound;
                let error = HostError::new("cannot open /dev/net/tun", e);
                if missing {
                    error.hint("load the kernel's tun module (modprobe tun); in a container, pass the device in (--device /dev/net/tun)")
                } else {
                    error.hint("run with sudo, or `crosswind doctor` to see what this machine allows")
                }
            })?;
        let has_headers = in_virtual_time();
        let header = if has_headers { libc::IFF_VNET_HDR } else { 0 };
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as libc::c_short;
        let mut request = ifreq::about(name, libc::__c_anonymous_ifr_ifru { ifru_flags: flags });
        // SAFETY: the descriptor is open and `request` is a whole ifreq that outlives the call.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) } < 0 {
            return Err(HostError::new(format!("cannot make the TUN device {name}"), io::Error::last_os_error())
                .hint("run with sudo, or `crosswind doctor` to see what this machine allows"));
        }
        // Closing a device unregisters it, which takes tens of milliseconds. A persistent device stays until its
        // namespace ends, after the process is gone. SAFETY: the descriptor is open; the request takes a plain integer.
        if unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETPERSIST, 1) } < 0 {
            return Err(HostError::new(format!("cannot keep the TUN device {name}"), io::Error::last_os_error()));
        }
        let size = HEADER as libc::c_int;
        // SAFETY: the descriptor is open and `size` outlives the call.
        if has_headers && unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETVNETHDRSZ, &raw const size) } < 0 {
            return Err(HostError::new(
                format!("cannot have a header before packets of {name}"),
                io::Error::last_os_error(),
            ));
        }
        Ok(Self { file, has_headers })
    }

    /// A device over any packet-wise descriptor.
    #[cfg(test)]
    pub fn over(device: std::os::fd::OwnedFd) -> Self {
        Self { file: device.into(), has_headers: false }
    }

    /// Reads a packet, if one waits: an excess over the first buffer goes into the second. With its kernel's reasons.
    pub fn read(&self, into: &mut [u8], rest: &mut [u8]) -> io::Result<Option<(usize, RawSending)>> {
        let mut header = [0; HEADER];
        let expected = if self.has_headers { HEADER } else { 0 };
        let mut buffers = [IoSliceMut::new(&mut header[..expected]), IoSliceMut::new(into), IoSliceMut::new(rest)];
        match readv(&self.file, &mut buffers) {
            Ok(n) => Ok(Some((n.saturating_sub(expected), RawSending::of_bytes(&header[VIRTIO_HEADER..])))),
            Err(nix::errno::Errno::EAGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Hands a packet to the host; its threads get the number `waker`. An error means the device did not take it.
    pub fn write(&self, packet: &[u8], waker: u64) -> io::Result<()> {
        if self.has_headers {
            let told = RawSending::delivered(waker);
            writev(&self.file, &[IoSlice::new(&[0; VIRTIO_HEADER]), IoSlice::new(&told), IoSlice::new(packet)])?;
        } else {
            nix::unistd::write(&self.file, packet)?;
        }
        Ok(())
    }

    /// For waiting until a packet can be read.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
