//! Errors in a frame, a packet, a message, or their order.

/// Why something cannot be decoded, encoded, or accepted now.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A frame of length 0, invalid in the WebTransport framing.
    #[error("a WebTransport frame of length 0")]
    EmptyFrame,
    /// A payload longer than the receiver accepts.
    #[error("a payload of {length_bytes} bytes, above the maximum of {max_bytes}")]
    PayloadTooLong {
        /// The length announced or about to be sent.
        length_bytes: u64,
        /// The longest accepted.
        max_bytes: u64,
    },
    /// A frame marked as text is not UTF-8.
    #[error("a text frame is not UTF-8")]
    NotUtf8,
    /// A text packet without a type.
    #[error("an empty Engine.IO packet: its type is missing")]
    EmptyPacket,
    /// A first character outside Engine.IO's packet types.
    #[error("unknown Engine.IO packet type {0:?}: expected a digit from 0 to 6")]
    PacketType(char),
    /// A close, upgrade or noop packet with data.
    #[error("an Engine.IO packet of type {0} carries data, which that type never does")]
    PacketData(char),
    /// A `b...` packet of a polling payload is not base64.
    #[error("a binary packet of a polling payload is not base64")]
    Base64(#[source] base64::DecodeError),
    /// A text packet with the separator of polling payloads in it.
    #[error("a packet holds the record separator 0x1e, which separates packets in a polling payload")]
    RecordSeparator,
    /// Invalid JSON.
    #[error("{place} is not JSON: {cause}")]
    Json {
        /// The text's place.
        place: &'static str,
        /// The JSON parser's error.
        cause: String,
    },
    /// A field of the open packet is missing, of another type, or outside its range.
    #[error("open packet: field {field:?} is not {expected}")]
    Handshake {
        /// The field's name on the wire.
        field: &'static str,
        /// The valid value.
        expected: &'static str,
    },
    /// The client resumes a session other than the one it was given.
    #[error("the client names another session than the one being upgraded, or none")]
    WrongSession,
    /// A first character outside Socket.IO's packet types.
    #[error("unknown Socket.IO packet type {0:?}: expected a digit from 0 to 6")]
    MessageType(Option<char>),
    /// A binary packet with an attachment count missing, zero, or not a number.
    #[error("a binary Socket.IO packet does not begin with a count of attachments and '-'")]
    AttachmentCount,
    /// More attachments than [`MAX_ATTACHMENTS`](crate::MAX_ATTACHMENTS).
    #[error("{0} attachments, above the maximum of {max}", max = crate::MAX_ATTACHMENTS)]
    TooManyAttachments(usize),
    /// Attachments on a packet other than an event or an acknowledgement.
    #[error("attachments on a Socket.IO packet that is neither an event nor an acknowledgement")]
    UnexpectedAttachments,
    /// Placeholders and attachments do not match one to one.
    #[error("the placeholders do not name each of the {attachments} attachments exactly once")]
    Placeholders {
        /// How many attachments there are.
        attachments: usize,
    },
    /// Text was received where attachments were announced.
    #[error("text while {missing} attachments are still to come")]
    AttachmentsMissing {
        /// How many had not been received.
        missing: usize,
    },
    /// Binary data without an announcing message.
    #[error("binary data that no message announced")]
    UnannouncedBinary,
    /// An unusable namespace: it must start with `/` and hold no comma.
    #[error("a namespace that does not start with '/' or holds a comma")]
    Namespace,
    /// An acknowledgement id too large, missing on an ACK, or present on another type.
    #[error("an acknowledgement id that is too large, missing, or out of place")]
    AckId,
    /// JSON unfit for the packet's type.
    #[error("a Socket.IO packet of type {0:?} with other data than that type carries")]
    MessageData(crate::MessageKind),
    /// An event without a name, or with one reserved by Socket.IO.
    #[error("an event whose name is missing, no text, or reserved by Socket.IO")]
    EventName,
    /// An event without exactly one argument, text or binary, or with an acknowledgement id.
    #[error("an event with something else than one argument, text or binary")]
    Arguments,
    /// A packet not allowed at this point of the session.
    #[error("an Engine.IO packet of type {packet} while the session is in step {step}")]
    UnexpectedPacket {
        /// The packet's type: its digit, or `b` for binary.
        packet: char,
        /// The awaited step.
        step: &'static str,
    },
    /// A Socket.IO packet not allowed at this point of the session.
    #[error("a Socket.IO packet of type {message:?} while the session is in step {step}")]
    UnexpectedMessage {
        /// The packet's type.
        message: crate::MessageKind,
        /// The awaited step.
        step: &'static str,
    },
    /// A command that has to wait for another step of the session.
    #[error("not possible while the session is in step {step}")]
    NotNow {
        /// The awaited step.
        step: &'static str,
    },
}
