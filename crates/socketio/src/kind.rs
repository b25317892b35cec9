//! The types of Socket.IO packets, and what bounds one.

/// The most attachments that one message may announce.
pub const MAX_ATTACHMENTS: usize = 16;

/// The type of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageKind {
    /// `0`: joins a namespace; the server answers with an object that holds `sid`.
    Connect,
    /// `1`: leaves the namespace.
    Disconnect,
    /// `2`, or `5` with attachments: an array of a name and arguments.
    Event,
    /// `3`, or `6` with attachments: an array of arguments.
    Ack,
    /// `4`: the namespace cannot be joined; text, or an object that holds `message`.
    ConnectError,
}
