//! Errors at the edge to Linux, with hints for the user.

use crosswind_units::named;
use std::io;

named! {
/// The kind of failure, as named in the cell protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// This user may not do it here.
    Privilege = "privilege",
    /// The kernel or machine lacks something.
    Unsupported = "unsupported",
    /// A system call failed for another reason.
    Host = "host",
}
}

/// A failed step: action, object and cause.
#[derive(Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct HostError {
    /// The attempted action, as in "cannot open /dev/net/tun".
    pub what: String,
    /// The system's message.
    pub cause: String,
    /// The kind of failure.
    pub kind: ErrorKind,
    /// Advice for the user.
    pub hint: Option<String>,
}

impl HostError {
    /// A failed system call; the kind follows from its error number.
    pub fn new(what: impl Into<String>, cause: impl Into<io::Error>) -> Self {
        let cause = cause.into();
        let kind = match cause.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => ErrorKind::Privilege,
            Some(libc::EOPNOTSUPP | libc::ENODEV | libc::ENOSYS | libc::ENXIO) => ErrorKind::Unsupported,
            _ => ErrorKind::Host,
        };
        Self { what: what.into(), cause: describe(&cause), kind, hint: None }
    }

    /// This machine lacks something.
    pub fn unsupported(what: impl Into<String>, cause: impl Into<String>) -> Self {
        Self { what: what.into(), cause: cause.into(), kind: ErrorKind::Unsupported, hint: None }
    }

    /// Adds advice for the user.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The system's message without the error number, in lower case: "permission denied".
fn describe(cause: &io::Error) -> String {
    match cause.raw_os_error() {
        Some(number) => nix::errno::Errno::from_raw(number).desc().to_lowercase(),
        None => cause.to_string(),
    }
}

/// A step's result at the edge to Linux.
pub type Result<T> = std::result::Result<T, HostError>;
