//! Engine.IO packets (protocol 4), alone in a WebSocket message or WebTransport frame, or several in a polling payload.

use crate::Error;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;

/// Joins a polling payload's packets: ASCII "record separator".
const RECORD_SEPARATOR: char = '\u{1e}';

/// Text or bytes: the content of a WebSocket message or WebTransport frame, and an event's argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Text.
    Text(String),
    /// Bytes.
    Binary(Bytes),
}

/// One Engine.IO packet, borrowed from its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// `0`: the server's handshake as JSON, or the client's first frame on WebTransport.
    Open(&'a str),
    /// `1`: the session ends.
    Close,
    /// `2`: asks for a pong; the text is empty, or `probe` during an upgrade.
    Ping(&'a str),
    /// `3`: answers a ping with the same text.
    Pong(&'a str),
    /// `4`: a text message.
    Message(&'a str),
    /// A binary message, without a digit.
    Binary(&'a Bytes),
    /// `5`: the client moves to this transport.
    Upgrade,
    /// `6`: no operation, sent to end a waiting poll.
    Noop,
}

impl Payload {
    /// The payload as it goes over the wire.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Binary(bytes) => bytes,
        }
    }
}

impl From<&str> for Payload {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<'a> Packet<'a> {
    /// Reads a message's or frame's packet.
    ///
    /// Errors: no type, an unknown type, or data on a type without any.
    pub fn parse(payload: &'a Payload) -> Result<Self, Error> {
        let text = match payload {
            Payload::Binary(bytes) => return Ok(Self::Binary(bytes)),
            Payload::Text(text) => text,
        };
        let mut rest = text.chars();
        let digit = rest.next().ok_or(Error::EmptyPacket)?;
        match (digit, rest.as_str()) {
            ('0', data) => Ok(Self::Open(data)),
            ('1', "") => Ok(Self::Close),
            ('2', data) => Ok(Self::Ping(data)),
            ('3', data) => Ok(Self::Pong(data)),
            ('4', data) => Ok(Self::Message(data)),
            ('5', "") => Ok(Self::Upgrade),
            ('6', "") => Ok(Self::Noop),
            ('1' | '5' | '6', _) => Err(Error::PacketData(digit)),
            _ => Err(Error::PacketType(digit)),
        }
    }

    /// The message or frame for this packet.
    pub fn to_payload(self) -> Payload {
        match self {
            Self::Binary(bytes) => Payload::Binary(bytes.clone()),
            text => Payload::Text(format!("{}{}", text.type_char(), text.text())),
        }
    }

    /// The type's digit on the wire, or `b` for binary as in a polling payload.
    pub fn type_char(self) -> char {
        match self {
            Self::Open(_) => '0',
            Self::Close => '1',
            Self::Ping(_) => '2',
            Self::Pong(_) => '3',
            Self::Message(_) => '4',
            Self::Upgrade => '5',
            Self::Noop => '6',
            Self::Binary(_) => 'b',
        }
    }

    fn text(self) -> &'a str {
        match self {
            Self::Open(text) | Self::Ping(text) | Self::Pong(text) | Self::Message(text) => text,
            Self::Close | Self::Upgrade | Self::Noop | Self::Binary(_) => "",
        }
    }
}

/// A polling payload: the packets joined by 0x1e, a binary one as `b` and base64.
///
/// Errors: [`Error::RecordSeparator`] when a text holds that character (JSON escapes it, so Socket.IO's never do).
pub fn encode_polling(packets: &[Packet]) -> Result<String, Error> {
    let mut body = String::new();
    for (index, packet) in packets.iter().enumerate() {
        if packet.text().contains(RECORD_SEPARATOR) {
            return Err(Error::RecordSeparator);
        }
        if index > 0 {
            body.push(RECORD_SEPARATOR);
        }
        body.push(packet.type_char());
        match packet {
            Packet::Binary(bytes) => STANDARD.encode_string(bytes, &mut body),
            text => body.push_str(text.text()),
        }
    }
    Ok(body)
}

/// A polling payload's packets, each as a payload for [`Packet::parse`].
///
/// Errors, in place of the packet: invalid base64. An empty packet is found by `Packet::parse`.
pub fn decode_polling(body: &str) -> impl Iterator<Item = Result<Payload, Error>> {
    body.split(RECORD_SEPARATOR).map(|packet| match packet.strip_prefix('b') {
        Some(base64) => Ok(Payload::Binary(STANDARD.decode(base64).map_err(Error::Base64)?.into())),
        None => Ok(packet.into()),
    })
}
