//! Socket.IO packet types and limits.

/// The most attachments in one message.
pub const MAX_ATTACHMENTS: usize = 16;

/// A message's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// `0`: joins a namespace; the server answers with an object with `sid`.
    Connect,
    /// `1`: leaves the namespace.
    Disconnect,
    /// `2`, or `5` with attachments: an array of a name and arguments.
    Event,
    /// `3`, or `6` with attachments: an array of arguments.
    Ack,
    /// `4`: the namespace cannot be joined; text, or an object with `message`.
    ConnectError,
}
