//! TUN devices without offloads: each read or write is an IP packet up to the MTU.

use crate::error::{HostError, Result};
use crate::ifreq;
use nix::sys::uio::readv;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

/// The emulator's end of a host's network device.
#[derive(Debug)]
pub struct Tun {
    file: File,
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
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
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
        Ok(Self { file })
    }

    /// A device over any packet-wise descriptor.
    #[cfg(test)]
    pub fn over(device: std::os::fd::OwnedFd) -> Self {
        Self { file: device.into() }
    }

    /// Reads a packet, if one waits: an excess over the first buffer goes into the second.
    pub fn read(&self, into: &mut [u8], rest: &mut [u8]) -> io::Result<Option<usize>> {
        match readv(&self.file, &mut [IoSliceMut::new(into), IoSliceMut::new(rest)]) {
            Ok(n) => Ok(Some(n)),
            Err(nix::errno::Errno::EAGAIN) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Hands a packet to the host. An error means the device did not take it.
    pub fn write(&self, packet: &[u8]) -> io::Result<()> {
        nix::unistd::write(&self.file, packet)?;
        Ok(())
    }

    /// For waiting until a packet can be read.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
