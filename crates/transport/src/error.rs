//! Outcomes of an exchange. Each is measurement data.

use crosswind_units::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io;

named! {
/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// As intended.
    Ok = "ok",
    /// Not within its deadline.
    Timeout = "timeout",
    /// The other end refused the connection.
    Refused = "refused",
    /// The connection was torn down, by the other end or because that was silent for too long.
    Reset = "reset",
    /// The other end closed in an orderly way, but too early.
    Closed = "closed",
    /// The other end's certificate is not trusted.
    Certificate = "certificate",
    /// The other end does not speak the protocol, or violates it.
    Protocol = "protocol",
    /// A message larger than one end allows.
    TooLarge = "too_large",
    /// Any other way: the message came back changed, or the kernel gave another reason.
    Error = "error",
}
}

/// A failed call.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}: {cause}")]
pub struct TransportError {
    /// The attempted action.
    pub what: &'static str,
    /// The cause in words.
    pub cause: String,
    /// The exchange's outcome.
    pub outcome: Outcome,
}

impl TransportError {
    pub(crate) fn new(what: &'static str, cause: &io::Error) -> Self {
        let outcome = match cause.kind() {
            // The kernel itself timed out: the connection is dead.
            io::ErrorKind::TimedOut if cause.raw_os_error().is_some() => Outcome::Reset,
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Outcome::Timeout,
            io::ErrorKind::ConnectionRefused => Outcome::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Outcome::Reset
            }
            io::ErrorKind::UnexpectedEof => Outcome::Closed,
            _ => Outcome::Error,
        };
        // The kernel's various texts do not name a timeout.
        let cause = if outcome == Outcome::Timeout { "timed out".to_owned() } else { cause.to_string() };
        Self { what, cause, outcome }
    }

    /// An error from outside the kernel.
    pub fn with(what: &'static str, outcome: Outcome, cause: impl Into<String>) -> Self {
        Self { what, cause: cause.into(), outcome }
    }

    pub(crate) fn unsupported(what: &'static str) -> Self {
        Self::with(what, Outcome::Error, "this transport cannot do that")
    }

    pub(crate) fn closed(what: &'static str) -> Self {
        Self { what, cause: "the other end closed".into(), outcome: Outcome::Closed }
    }
}

/// For `map_err`: a kernel error.
pub(crate) fn failed(what: &'static str) -> impl Fn(io::Error) -> TransportError {
    move |cause| TransportError::new(what, &cause)
}
