//! One Socket.IO session, client or server, over a WebSocket or a WebTransport stream.
//!
//! A session walks through the steps below, and what a packet means depends only on role, step and packet:
//! `Session::handle_packet` is that table. It joins the namespace `/` and carries events with one argument, text or binary.
//! Times are nanoseconds from any origin, the same for every call of one session.
//!
//! | step | client waits for | server waits for |
//! | --- | --- | --- |
//! | `Opening` | `0{...}` | on WebTransport `0`, or `0{"sid"}` when upgrading |
//! | `Probing` | `3probe`, after sending `2probe` | `2probe` |
//! | `Upgrading` | its owner: polling has ended | `5` |
//! | `Connecting` | `40{"sid"}`, after sending `40` | `40` |
//! | `Connected` | events | events |
//!
//! A closed session ignores every input; the payloads that it has queued can still be polled.

use crate::{
    Carrier, CloseReason, Error, Event, Handshake, Joined, Message, MessageDecoder, MessageKind, Packet, Payload,
    encode_client_open, message::RESERVED, parse_client_open, text,
};
use serde_json::json;
use std::collections::VecDeque;

/// A client's time limit for connecting: 20 s, the default `timeout` of socket.io-client 4.
pub const CLIENT_CONNECT_TIMEOUT_NS: u64 = 20 * 1_000_000_000;
/// A server's time limit for a client to connect: 45 s, the default `connectTimeout` of socket.io 4.
pub const SERVER_CONNECT_TIMEOUT_NS: u64 = 45 * 1_000_000_000;

const NS_PER_MS: u64 = 1_000_000;
const PROBE: &str = "probe";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Opening,
    Probing,
    Upgrading,
    Connecting,
    Connected,
    Closed,
}

/// When the session has to act although nothing arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Heartbeat {
    /// No pings yet.
    Off,
    /// Server: the time for the next ping.
    SendAt(u64),
    /// The time at which the peer's ping (at a client) or pong (at a server) is overdue.
    Overdue(u64),
}

/// One session's state machine.
#[derive(Debug)]
pub struct Session {
    role: Role,
    carrier: Carrier,
    step: Step,
    handshake: Option<Handshake>,
    /// How far Socket.IO got before this transport.
    joined: Joined,
    /// Server: the client's id, assigned or not.
    socket_sid: String,
    upgrading: bool,
    connect_by_ns: u64,
    heartbeat: Heartbeat,
    messages: MessageDecoder,
    to_send: VecDeque<Payload>,
    events: VecDeque<Event>,
}

impl Session {
    /// A client over a newly opened transport.
    pub fn client(carrier: Carrier, now_ns: u64) -> Self {
        let mut session = Self::new(Role::Client, carrier, now_ns);
        if carrier == Carrier::WebTransport {
            session.send(Packet::Open(&encode_client_open(None)));
        }
        session
    }

    /// A client that moves the polling session of `handshake` here.
    ///
    /// Errors: a handshake outside its ranges.
    pub fn client_upgrading(
        carrier: Carrier,
        handshake: Handshake,
        joined: Joined,
        now_ns: u64,
    ) -> Result<Self, Error> {
        handshake.validate()?;
        let mut session = Self::new(Role::Client, carrier, now_ns);
        if carrier == Carrier::WebTransport {
            session.send(Packet::Open(&encode_client_open(Some(&handshake.sid))));
        }
        session.send(Packet::Ping(PROBE));
        Ok(Self { handshake: Some(handshake), joined, upgrading: true, step: Step::Probing, ..session })
    }

    /// A server for a client's new session; `socket_sid` is its future Socket.IO id.
    ///
    /// Errors: a handshake outside its ranges.
    pub fn server(carrier: Carrier, handshake: Handshake, socket_sid: String, now_ns: u64) -> Result<Self, Error> {
        handshake.validate()?;
        let session = Self::new(Role::Server, carrier, now_ns);
        let mut session = Self { handshake: Some(handshake), socket_sid, ..session };
        if carrier == Carrier::WebSocket {
            session.open(now_ns);
        }
        Ok(session)
    }

    /// A server for a client that moves the polling session of `handshake` here. `connected`: whether it has joined the
    /// namespace. On WebTransport, [`parse_client_open`] on the first frame identifies the session; the frame is then
    /// given to the new machine as well. Pings begin again with the upgrade.
    ///
    /// Errors: a handshake outside its ranges.
    pub fn server_upgrading(
        carrier: Carrier,
        handshake: Handshake,
        socket_sid: String,
        connected: bool,
        now_ns: u64,
    ) -> Result<Self, Error> {
        handshake.validate()?;
        let session = Self::new(Role::Server, carrier, now_ns);
        let step = if carrier == Carrier::WebTransport { Step::Opening } else { Step::Probing };
        let joined = if connected { Joined::As(socket_sid.clone()) } else { Joined::No };
        Ok(Self { handshake: Some(handshake), socket_sid, joined, upgrading: true, step, ..session })
    }

    /// Takes a WebSocket message or a WebTransport frame. An invalid one closes the session: [`CloseReason::Protocol`].
    pub fn handle_payload(&mut self, payload: &Payload, now_ns: u64) {
        if self.step == Step::Closed {
            return;
        }
        let taken = match Packet::parse(payload) {
            Ok(packet) => self.handle_packet(packet, now_ns),
            Err(error) => Err(error.into()),
        };
        if let Err(reason) = taken {
            self.end(reason);
        }
    }

    /// Acts on the time: call it at [`next_wakeup`](Self::next_wakeup) or later. Earlier calls do nothing.
    pub fn handle_wakeup(&mut self, now_ns: u64) {
        if self.is_connecting() && now_ns >= self.connect_by_ns {
            return self.end(CloseReason::ConnectTimeout);
        }
        match self.heartbeat {
            Heartbeat::Overdue(at) if now_ns >= at => self.end(CloseReason::PingTimeout),
            Heartbeat::SendAt(at) if now_ns >= at => {
                self.send(Packet::Ping(""));
                self.heartbeat = Heartbeat::Overdue(self.after_ms(now_ns, |times| times.ping_timeout_ms));
            }
            _ => {}
        }
    }

    /// Takes the end of the transport.
    pub fn handle_transport_closed(&mut self) {
        self.end(CloseReason::TransportClosed);
    }

    /// Client: the polling transport has ended, so the session may move: sends `5`, and `40` unless sent while polling.
    /// Payloads polled after the client had joined go to [`handle_payload`](Self::handle_payload) now, before the new
    /// transport's.
    ///
    /// Errors: [`Error::NotNow`] before [`Event::Probed`] or a second time.
    pub fn finish_upgrade(&mut self, now_ns: u64) -> Result<(), Error> {
        if (self.role, self.step) != (Role::Client, Step::Upgrading) {
            return Err(self.not_now());
        }
        self.send(Packet::Upgrade);
        self.begin_connecting(now_ns);
        Ok(())
    }

    /// Sends an event with one argument.
    ///
    /// Errors, with nothing sent: not connected; a reserved name; a payload above the server's maximum; an empty binary
    /// argument on WebTransport, whose frames cannot be empty.
    pub fn emit(&mut self, name: &str, argument: Payload) -> Result<(), Error> {
        let argument = match argument {
            Payload::Text(text) => return self.emit_text(name, &text),
            binary @ Payload::Binary(_) => binary,
        };
        if self.step != Step::Connected {
            return Err(self.not_now());
        }
        let message = Message::event(name, argument);
        let text = Packet::Message(&message.encode()?).to_payload();
        let payloads = std::iter::once(text).chain(message.attachments.into_iter().map(Payload::Binary));
        let payloads: Vec<_> = payloads.collect();
        payloads.iter().try_for_each(|payload| self.check_size(payload))?;
        self.to_send.extend(payloads);
        Ok(())
    }

    /// Sends an event with one text argument.
    ///
    /// Errors, with nothing sent: as [`emit`](Self::emit).
    pub fn emit_text(&mut self, name: &str, argument: &str) -> Result<(), Error> {
        if self.step != Step::Connected {
            return Err(self.not_now());
        }
        if RESERVED.contains(&name) {
            return Err(Error::EventName);
        }
        let mut packet = String::from(Packet::Message("").type_char());
        text::write_event(name, argument, &mut packet)?;
        let payload = Payload::Text(packet);
        self.check_size(&payload)?;
        self.to_send.push_back(payload);
        Ok(())
    }

    /// Leaves: sends `41` if connected. The owner ends the transport once everything is sent.
    pub fn close(&mut self) {
        if self.step == Step::Connected {
            self.send(Packet::Message("1"));
        }
        self.end(CloseReason::Local);
    }

    /// The next message or frame to send.
    pub fn poll_payload(&mut self) -> Option<Payload> {
        self.to_send.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`handle_wakeup`](Self::handle_wakeup), in nanoseconds; `None` once closed.
    pub fn next_wakeup(&self) -> Option<u64> {
        let connect_by = self.is_connecting().then_some(self.connect_by_ns);
        let heartbeat = match self.heartbeat {
            Heartbeat::SendAt(at) | Heartbeat::Overdue(at) => Some(at),
            Heartbeat::Off => None,
        };
        connect_by.into_iter().chain(heartbeat).min()
    }

    /// The open packet, sent or received; `None` at a client before it.
    pub fn handshake(&self) -> Option<&Handshake> {
        self.handshake.as_ref()
    }

    fn new(role: Role, carrier: Carrier, now_ns: u64) -> Self {
        let limit_ns = match role {
            Role::Client => CLIENT_CONNECT_TIMEOUT_NS,
            Role::Server => SERVER_CONNECT_TIMEOUT_NS,
        };
        Self {
            role,
            carrier,
            step: Step::Opening,
            handshake: None,
            joined: Joined::No,
            socket_sid: String::new(),
            upgrading: false,
            connect_by_ns: now_ns.saturating_add(limit_ns),
            heartbeat: Heartbeat::Off,
            messages: MessageDecoder::default(),
            to_send: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    fn handle_packet(&mut self, packet: Packet, now_ns: u64) -> Result<(), CloseReason> {
        use {
            Role::{Client, Server},
            Step::{Connected, Connecting, Opening, Probing, Upgrading},
        };
        match (self.role, self.step, packet) {
            (_, _, Packet::Close) => return Err(CloseReason::PeerClosed),
            (_, _, Packet::Noop) => {}
            (Client, Opening, Packet::Open(json)) => {
                self.handshake = Some(Handshake::parse(json)?);
                self.begin_connecting(now_ns);
            }
            (Server, Opening, Packet::Open(data)) => {
                let known = self.handshake.as_ref().filter(|_| self.upgrading).map(|handshake| &handshake.sid);
                match (parse_client_open(data)?.as_ref(), known) {
                    (None, None) => self.open(now_ns),
                    (asked, known) if asked == known => self.step = Probing,
                    _ => return Err(Error::WrongSession.into()),
                }
            }
            (Client, Probing, Packet::Pong(PROBE)) => {
                self.step = Upgrading;
                self.events.push_back(Event::Probed);
            }
            (Server, Probing, Packet::Ping(PROBE)) => {
                self.send(Packet::Pong(PROBE));
                self.step = Upgrading;
            }
            (Server, Upgrading, Packet::Upgrade) => self.begin_connecting(now_ns),
            (Client, Connecting | Connected, Packet::Ping("")) => {
                self.send(Packet::Pong(""));
                self.heartbeat = self.first_heartbeat(now_ns);
            }
            // Without a ping before it, it answers one sent while polling.
            (Server, Connecting | Connected, Packet::Pong("")) => self.heartbeat = self.first_heartbeat(now_ns),
            (_, Connecting | Connected, Packet::Message(text)) => {
                if self.step == Connected
                    && self.messages.is_between_messages()
                    && let Some((name, text)) = text::read_event(text)
                {
                    self.events.push_back(Event::Message { name, argument: Payload::Text(text) });
                    return Ok(());
                }
                let message = self.messages.handle_text(text)?;
                message.map_or(Ok(()), |message| self.handle_message(message))?;
            }
            (_, Connecting | Connected, Packet::Binary(bytes)) => {
                let message = self.messages.handle_binary(bytes.clone())?;
                message.map_or(Ok(()), |message| self.handle_message(message))?;
            }
            _ => return Err(Error::UnexpectedPacket { packet: packet.type_char(), step: self.step_name() }.into()),
        }
        Ok(())
    }

    fn handle_message(&mut self, message: Message) -> Result<(), CloseReason> {
        match (self.role, self.step, message.kind) {
            (Role::Server, _, MessageKind::Connect) if message.namespace != "/" => {
                let data = json!({ "message": "Invalid namespace" });
                let refusal =
                    Message { namespace: message.namespace, ..Message::new(MessageKind::ConnectError, Some(data)) };
                self.send(Packet::Message(&refusal.encode()?));
            }
            _ if message.namespace != "/" => return Err(Error::Namespace.into()),
            (Role::Server, Step::Connecting, MessageKind::Connect) => {
                let reply = Message::new(MessageKind::Connect, Some(json!({ "sid": self.socket_sid })));
                self.send(Packet::Message(&reply.encode()?));
                self.become_connected(self.socket_sid.clone());
            }
            (Role::Client, Step::Connecting, MessageKind::Connect) => {
                let sid = message.data.as_ref().and_then(|data| data["sid"].as_str());
                self.become_connected(sid.ok_or(Error::MessageData(MessageKind::Connect))?.to_owned());
            }
            (Role::Client, Step::Connecting, MessageKind::ConnectError) => {
                let data = message.data.unwrap_or_default();
                let said = data.as_str().or(data["message"].as_str()).map(str::to_owned);
                return Err(CloseReason::Refused(said.unwrap_or_else(|| data.to_string())));
            }
            (_, Step::Connected, MessageKind::Event) => {
                let (name, argument) = message.into_event()?;
                self.events.push_back(Event::Message { name, argument });
            }
            (_, Step::Connected, MessageKind::Disconnect) => return Err(CloseReason::Disconnected),
            (_, _, kind) => return Err(Error::UnexpectedMessage { message: kind, step: self.step_name() }.into()),
        }
        Ok(())
    }

    /// Server: sends the open packet.
    fn open(&mut self, now_ns: u64) {
        if let Some(json) = self.handshake.as_ref().map(Handshake::to_json) {
            self.send(Packet::Open(&json));
        }
        self.begin_connecting(now_ns);
    }

    /// Engine.IO is open here: the heartbeat starts, and Socket.IO connects, unless it did so while polling.
    fn begin_connecting(&mut self, now_ns: u64) {
        self.step = Step::Connecting;
        self.heartbeat = self.first_heartbeat(now_ns);
        match (self.role, &self.joined) {
            (_, Joined::As(sid)) => self.become_connected(sid.clone()),
            (Role::Client, Joined::No) => self.send(Packet::Message("0")),
            (Role::Client, Joined::Asked) | (Role::Server, _) => {}
        }
    }

    fn become_connected(&mut self, sid: String) {
        self.step = Step::Connected;
        self.events.push_back(Event::Connected { sid });
    }

    fn end(&mut self, reason: CloseReason) {
        if self.step != Step::Closed {
            self.step = Step::Closed;
            self.heartbeat = Heartbeat::Off;
            self.events.push_back(Event::Closed(reason));
        }
    }

    fn send(&mut self, packet: Packet) {
        self.to_send.push_back(packet.to_payload());
    }

    /// The heartbeat after the handshake, and after each ping or pong from the peer.
    fn first_heartbeat(&self, now_ns: u64) -> Heartbeat {
        match self.role {
            Role::Server => Heartbeat::SendAt(self.after_ms(now_ns, |times| times.ping_interval_ms)),
            Role::Client => {
                Heartbeat::Overdue(self.after_ms(now_ns, |times| times.ping_interval_ms + times.ping_timeout_ms))
            }
        }
    }

    fn after_ms(&self, now_ns: u64, wait_ms: impl Fn(&Handshake) -> u64) -> u64 {
        now_ns.saturating_add(self.handshake.as_ref().map_or(0, wait_ms) * NS_PER_MS)
    }

    fn check_size(&self, payload: &Payload) -> Result<(), Error> {
        let length_bytes = payload.as_bytes().len() as u64;
        let server_takes = self.handshake.as_ref().filter(|_| self.role == Role::Client);
        let max_bytes = server_takes.map_or(u64::MAX, |handshake| handshake.max_payload_bytes);
        if length_bytes > max_bytes {
            return Err(Error::PayloadTooLong { length_bytes, max_bytes });
        }
        if length_bytes == 0 && self.carrier == Carrier::WebTransport {
            return Err(Error::EmptyFrame);
        }
        Ok(())
    }

    fn is_connecting(&self) -> bool {
        !matches!(self.step, Step::Connected | Step::Closed)
    }

    fn not_now(&self) -> Error {
        Error::NotNow { step: self.step_name() }
    }

    fn step_name(&self) -> &'static str {
        match self.step {
            Step::Opening => "opening",
            Step::Probing => "probing",
            Step::Upgrading => "upgrading",
            Step::Connecting => "connecting",
            Step::Connected => "connected",
            Step::Closed => "closed",
        }
    }
}
