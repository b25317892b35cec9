//! Socket.IO packets (protocol 5), carried by Engine.IO messages; called messages here, to tell the two apart.
//!
//! Text: type digit, then for binary ones the count of attachments and `-`, then the namespace and `,` unless it is
//! `/`, then the acknowledgement id if any, then JSON if any. Attachments follow as binary Engine.IO messages, and
//! stand in the JSON as `{"_placeholder":true,"num":0}`. Types 5 and 6 are events and acknowledgements with
//! attachments, so [`MessageKind`] has five.
//!
//! Stricter than socket.io-parser 4.2: an event must have a name, an ACK an id, and each attachment exactly one
//! placeholder.

use crate::handshake::parse_json;
use crate::kind::{MAX_ATTACHMENTS, MessageKind};
use crate::{Error, Payload};
use bytes::Bytes;
use serde_json::{Value, json};

/// Socket.IO's reserved names (socket.io-parser 4.2).
pub(crate) const RESERVED: [&str; 6] =
    ["connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener"];

/// One message with its attachments.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// Its type.
    pub kind: MessageKind,
    /// The namespace, `/` unless chosen otherwise.
    pub namespace: String,
    /// Asks for an acknowledgement under this id, or is one.
    pub ack_id: Option<u64>,
    /// The JSON, with placeholders for the attachments.
    pub data: Option<Value>,
    /// Attachments in numeric order, at most [`MAX_ATTACHMENTS`].
    pub attachments: Vec<Bytes>,
}

/// Joins messages and their attachments.
///
/// Holds at most one message and [`MAX_ATTACHMENTS`] attachments, each as long as the transport allows.
#[derive(Debug, Default)]
pub struct MessageDecoder {
    incomplete: Option<(Message, usize)>,
}

impl Message {
    /// A message in the namespace `/` without id and attachments.
    pub fn new(kind: MessageKind, data: Option<Value>) -> Self {
        Self { kind, namespace: "/".to_owned(), ack_id: None, data, attachments: Vec::new() }
    }

    /// An event with one argument.
    pub fn event(name: &str, argument: Payload) -> Self {
        let (argument, attachments) = match argument {
            Payload::Text(text) => (Value::String(text), Vec::new()),
            Payload::Binary(bytes) => (json!({ "_placeholder": true, "num": 0 }), vec![bytes]),
        };
        let data = Value::Array(vec![Value::String(name.to_owned()), argument]);
        Self { attachments, ..Self::new(MessageKind::Event, Some(data)) }
    }

    /// The name and argument of an event from [`Message::event`].
    ///
    /// Errors: [`Error::Arguments`] for any other message.
    pub fn into_event(self) -> Result<(String, Payload), Error> {
        let Some(Value::Array(data)) = self.data else { return Err(Error::Arguments) };
        let [Value::String(name), argument] = <[Value; 2]>::try_from(data).map_err(|_| Error::Arguments)? else {
            return Err(Error::Arguments);
        };
        let attachment = <[Bytes; 1]>::try_from(self.attachments);
        let argument = match (self.kind, self.ack_id, argument, attachment) {
            (MessageKind::Event, None, Value::String(text), Err(none)) if none.is_empty() => Payload::Text(text),
            (MessageKind::Event, None, value, Ok([bytes])) if placeholder(&value).is_some() => Payload::Binary(bytes),
            _ => return Err(Error::Arguments),
        };
        Ok((name, argument))
    }

    /// This message's text; the attachments follow it, each as a binary Engine.IO message.
    ///
    /// Errors: the same checks as for received messages, so the receiver refuses nothing sent.
    pub fn encode(&self) -> Result<String, Error> {
        if !self.namespace.starts_with('/') || self.namespace.contains(',') {
            return Err(Error::Namespace);
        }
        self.check(self.attachments.len())?;
        let count = self.attachments.len();
        let mut text = String::from(match (self.kind, count) {
            (MessageKind::Connect, _) => "0",
            (MessageKind::Disconnect, _) => "1",
            (MessageKind::Event, 0) => "2",
            (MessageKind::Ack, 0) => "3",
            (MessageKind::ConnectError, _) => "4",
            (MessageKind::Event, _) => "5",
            (MessageKind::Ack, _) => "6",
        });
        if count > 0 {
            text.push_str(&count.to_string());
            text.push('-');
        }
        if self.namespace != "/" {
            text.push_str(&self.namespace);
            text.push(',');
        }
        if let Some(id) = self.ack_id {
            text.push_str(&id.to_string());
        }
        if let Some(data) = &self.data {
            text.push_str(&data.to_string());
        }
        Ok(text)
    }

    /// Reads a message's text, and the number of attachments to follow it.
    fn parse(text: &str) -> Result<(Self, usize), Error> {
        let mut rest = text.chars();
        let (kind, binary) = match rest.next() {
            Some('0') => (MessageKind::Connect, false),
            Some('1') => (MessageKind::Disconnect, false),
            Some('2') => (MessageKind::Event, false),
            Some('3') => (MessageKind::Ack, false),
            Some('4') => (MessageKind::ConnectError, false),
            Some('5') => (MessageKind::Event, true),
            Some('6') => (MessageKind::Ack, true),
            other => return Err(Error::MessageType(other)),
        };
        let mut rest = rest.as_str();
        let mut attachments = 0;
        if binary {
            let (count, after) = take_digits(rest);
            rest = after.strip_prefix('-').ok_or(Error::AttachmentCount)?;
            attachments = count.parse().ok().filter(|&count| count > 0).ok_or(Error::AttachmentCount)?;
        }
        let mut message = Self::new(kind, None);
        if rest.starts_with('/') {
            let (namespace, after) = rest.split_once(',').unwrap_or((rest, ""));
            namespace.clone_into(&mut message.namespace);
            rest = after;
        }
        let (id, json) = take_digits(rest);
        if !id.is_empty() {
            message.ack_id = Some(id.parse().map_err(|_| Error::AckId)?);
        }
        if !json.is_empty() {
            message.data = Some(parse_json("the data of a Socket.IO packet", json)?);
        }
        message.check(attachments)?;
        Ok((message, attachments))
    }

    /// Whether data, id and placeholders fit a message of this kind with so many attachments.
    fn check(&self, attachments: usize) -> Result<(), Error> {
        let takes_id = matches!(self.kind, MessageKind::Event | MessageKind::Ack);
        let has_id = self.ack_id.is_some();
        if (has_id && !takes_id) || (!has_id && self.kind == MessageKind::Ack) {
            return Err(Error::AckId);
        }
        match (self.kind, &self.data) {
            (MessageKind::Connect, None | Some(Value::Object(_)))
            | (MessageKind::Disconnect, None)
            | (MessageKind::ConnectError, Some(Value::String(_) | Value::Object(_)))
            | (MessageKind::Ack, Some(Value::Array(_))) => {}
            (MessageKind::Event, Some(Value::Array(data))) => {
                let name = data.first().and_then(Value::as_str).ok_or(Error::EventName)?;
                if RESERVED.contains(&name) {
                    return Err(Error::EventName);
                }
            }
            (kind, _) => return Err(Error::MessageData(kind)),
        }
        match attachments {
            0 => return Ok(()),
            count if count > MAX_ATTACHMENTS => return Err(Error::TooManyAttachments(count)),
            _ if !takes_id => return Err(Error::UnexpectedAttachments),
            _ => {}
        }
        let mut named = Vec::with_capacity(MAX_ATTACHMENTS);
        self.data.iter().for_each(|data| collect_placeholders(data, &mut named));
        named.sort_unstable();
        if named.iter().copied().eq(0..attachments as u64) { Ok(()) } else { Err(Error::Placeholders { attachments }) }
    }
}

impl MessageDecoder {
    /// Takes an Engine.IO message's text; returns the Socket.IO message unless attachments are to follow.
    ///
    /// Errors: text that is not a message, or while attachments are missing. The session is over after an error.
    pub fn handle_text(&mut self, text: &str) -> Result<Option<Message>, Error> {
        if let Some((message, count)) = &self.incomplete {
            return Err(Error::AttachmentsMissing { missing: count - message.attachments.len() });
        }
        let (message, attachments) = Message::parse(text)?;
        if attachments == 0 {
            return Ok(Some(message));
        }
        self.incomplete = Some((message, attachments));
        Ok(None)
    }

    /// No attachments are missing.
    pub(crate) const fn is_between_messages(&self) -> bool {
        self.incomplete.is_none()
    }

    /// Takes a binary Engine.IO message; returns the Socket.IO message it completes.
    ///
    /// Errors: unannounced bytes.
    pub fn handle_binary(&mut self, bytes: Bytes) -> Result<Option<Message>, Error> {
        let (mut message, count) = self.incomplete.take().ok_or(Error::UnannouncedBinary)?;
        message.attachments.push(bytes);
        if message.attachments.len() == count {
            return Ok(Some(message));
        }
        self.incomplete = Some((message, count));
        Ok(None)
    }
}

fn take_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// The number in a placeholder, `u64::MAX` when it has none; `None` when `value` is no placeholder.
fn placeholder(value: &Value) -> Option<u64> {
    (value.get("_placeholder")? == &Value::Bool(true)).then(|| value["num"].as_u64().unwrap_or(u64::MAX))
}

fn collect_placeholders(value: &Value, named: &mut Vec<u64>) {
    match (placeholder(value), value) {
        (Some(number), _) => named.push(number),
        (None, Value::Array(items)) => items.iter().for_each(|item| collect_placeholders(item, named)),
        (None, Value::Object(fields)) => fields.values().for_each(|field| collect_placeholders(field, named)),
        _ => {}
    }
}
