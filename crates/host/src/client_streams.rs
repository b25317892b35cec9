//! The caller's streams, handed to a client program: it reads and writes them as the caller would.

use crate::error::{HostError, Result};
use crate::program::Streams;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::process::Stdio;

/// Descriptor numbers this process was started with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientStreams {
    /// The client's input.
    pub input: u16,
    /// Where it writes.
    pub output: u16,
    /// Where it writes its errors.
    pub errors: u16,
    /// Whether it gets the terminal among them: its signal keys are then the client's alone.
    pub foreground: bool,
}

impl ClientStreams {
    /// Streams to start a program with. The descriptors stay open here, and no other program has them.
    pub fn open(&self) -> Result<Streams> {
        Ok(Streams {
            input: duplicate(self.input)?,
            output: duplicate(self.output)?,
            errors: duplicate(self.errors)?,
            foreground: self.foreground,
            largest_file: None,
        })
    }
}

fn duplicate(number: u16) -> Result<Stdio> {
    let number = RawFd::from(number);
    let failed = || {
        HostError::new(format!("cannot use descriptor {number} for the client"), io::Error::last_os_error())
            .hint("output.client_input and its like are descriptors that crosswind-cell was started with")
    };
    if number <= libc::STDERR_FILENO {
        return Err(HostError::unsupported(
            "cannot use a standard stream of crosswind-cell for the client",
            "it is used already",
        ));
    }
    // SAFETY: two system calls with numbers; they refuse a closed descriptor.
    let copy = unsafe {
        if libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) < 0 {
            return Err(failed());
        }
        libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3)
    };
    if copy < 0 {
        return Err(failed());
    }
    // SAFETY: the kernel has just opened it, and nothing else has its number.
    Ok(Stdio::from(unsafe { OwnedFd::from_raw_fd(copy) }))
}
