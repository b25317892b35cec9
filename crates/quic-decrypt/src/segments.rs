//! Programs' HTTP/2 over TCP: frames in the clear are read as they are sent, and TLS is kept until its keys are known.
//!
//! A connection is followed from its SYN on. Its first bytes tell: HTTP/2's preface, or a `ClientHello` with HTTP/2 among
//! its protocols. TLS 1.2 has other secrets and stays closed. Other connections cost nothing.

use crate::handshake::{offers_http2, random};
use crate::header::Reader;
use crate::key_log::{KeyLog, Label, Random};
use crate::records::Records;
use crosswind_ledger::{HTTP2_PREFACE, Headers, Http2Connection, HttpRecorder, HttpWrite, TCP, TCP_ACK, TCP_SYN};
use crosswind_path::Side;
use crosswind_units::Instant;
use std::collections::HashMap;
use std::ops::Range;

/// Bytes read from each end until the first ones have told: more than a `ClientHello` has.
const MOST_UNCLEAR: usize = 16 * 1024;
/// Bytes per allocation, growing: nothing is ever copied.
const PIECE: Range<usize> = 4 * 1024..1 << 20;
const HANDSHAKE_RECORD: usize = 22;
const CLIENT_HELLO: u8 = 1;

/// Client's and server's port.
type Ports = (u16, u16);

/// Connections' HTTP/2 frames and TLS records.
#[derive(Debug, Default)]
pub struct KeptSegments {
    present: HashMap<Ports, Connection>,
    /// Earlier ones on the same ports.
    earlier: Vec<(Ports, Connection)>,
    /// How many bytes may still be kept.
    room: usize,
}

#[derive(Debug)]
struct Connection {
    opener: Side,
    /// Its SYN's sequence number.
    opening: u32,
    /// By direction: the next new sequence number. None before the SYN, and after a gap.
    next: [Option<u32>; 2],
    state: State,
    left_out: u64,
}

#[derive(Debug)]
enum State {
    /// All bytes so far, by direction.
    Unclear([Vec<u8>; 2]),
    /// HTTP/2's frames.
    Clear(Box<[HttpRecorder; 2]>),
    /// TLS records, and the client's random number.
    Sealed(Random, [Pieces; 2]),
    Other,
}

/// A connection's protocol, by its opener's first bytes.
enum Beginning {
    Unclear,
    Http2,
    Tls(Random),
    Other,
}

/// HTTP/2's frames.
#[derive(Debug, Default)]
pub struct OpenedSegments {
    /// By connection.
    pub connections: Vec<Http2Connection>,
    /// How many of their segments were left out.
    pub left_out: u64,
}

impl KeptSegments {
    /// At most so many bytes.
    pub fn new(most: usize) -> Self {
        Self { room: most, ..Self::default() }
    }

    /// Adds an IP packet in direction `side`, if it is a TCP segment.
    pub fn add(&mut self, side: Side, packet: &[u8]) {
        let headers = Headers::parse(packet);
        if headers.protocol != TCP {
            return;
        }
        let ports = (headers.client_port(side), headers.client_port(side.opposite()));
        if headers.flags & (TCP_SYN | TCP_ACK) == TCP_SYN {
            let is_known = self.present.get(&ports).is_some_and(|it| it.is_opened_by(side, headers.sequence));
            if !is_known {
                let before = self.present.insert(ports, Connection::new(side, headers.sequence));
                self.earlier.extend(before.filter(Connection::may_be_http2).map(|before| (ports, before)));
            }
        }
        let Some(connection) = self.present.get_mut(&ports) else { return };
        let payload = &packet[packet.len().saturating_sub(headers.payload_bytes as usize)..];
        connection.add(side, &headers, payload, &mut self.room);
    }

    /// The frames, as far as readable.
    pub fn open(self, keys: &KeyLog) -> OpenedSegments {
        let mut opened = OpenedSegments::default();
        for (ports, connection) in self.earlier.into_iter().chain(self.present) {
            let left_out = connection.left_out;
            if let Some(connection) = connection.open(ports, keys) {
                opened.connections.push(connection);
                opened.left_out += left_out;
            }
        }
        opened
    }
}

impl Connection {
    const fn new(opener: Side, opening: u32) -> Self {
        let state = State::Unclear([Vec::new(), Vec::new()]);
        Self { opener, opening, next: [None; 2], state, left_out: 0 }
    }

    fn is_opened_by(&self, side: Side, sequence: u32) -> bool {
        self.opener as usize == side as usize && self.opening == sequence
    }

    const fn may_be_http2(&self) -> bool {
        matches!(self.state, State::Clear(_) | State::Sealed(..))
    }

    fn add(&mut self, side: Side, headers: &Headers, payload: &[u8], room: &mut usize) {
        let has_syn = headers.flags & TCP_SYN != 0;
        let start = headers.sequence.wrapping_add(has_syn.into());
        let next = &mut self.next[side as usize];
        if has_syn {
            next.get_or_insert(start);
        }
        let Some(expected) = next else {
            self.left_out += u64::from(self.left_out > 0 && !payload.is_empty());
            return;
        };
        // Sent again, as far as negative.
        let ahead = start.wrapping_sub(*expected).cast_signed();
        if ahead > 0 {
            return self.stop(side);
        }
        let Some(new) = payload.get(ahead.unsigned_abs() as usize..).filter(|new| !new.is_empty()) else { return };
        *expected = expected.wrapping_add(new.len() as u32);
        self.follow(side, new, room);
    }

    /// Reads no more of a direction.
    const fn stop(&mut self, side: Side) {
        self.next[side as usize] = None;
        self.left_out += 1;
    }

    /// Reads a direction's next bytes.
    fn follow(&mut self, side: Side, bytes: &[u8], room: &mut usize) {
        match &mut self.state {
            State::Unclear(first) => {
                let own = &mut first[side as usize];
                own.extend_from_slice(bytes);
                let is_full = own.len() > MOST_UNCLEAR;
                let beginning = match beginning(&first[self.opener as usize]) {
                    Beginning::Unclear if !is_full => return,
                    beginning => beginning,
                };
                let first = std::mem::take(first);
                self.state = match beginning {
                    Beginning::Http2 => {
                        let end = |side: Side| HttpRecorder::of_program(side as usize == self.opener as usize);
                        State::Clear(Box::new(Side::BOTH.map(end)))
                    }
                    Beginning::Tls(random) => State::Sealed(random, [Pieces::default(), Pieces::default()]),
                    Beginning::Unclear | Beginning::Other => State::Other,
                };
                for side in Side::BOTH {
                    self.follow(side, &first[side as usize], room);
                }
            }
            State::Clear(ends) => {
                let end = &mut ends[side as usize];
                let kept = end.kept();
                end.write(Instant::ZERO, bytes);
                let needed = end.kept().saturating_sub(kept) * size_of::<HttpWrite>();
                *room = room.saturating_sub(needed);
                if *room == 0 {
                    self.stop(side);
                }
            }
            State::Sealed(_, kept) => {
                if let Some(left) = room.checked_sub(bytes.len()) {
                    *room = left;
                    kept[side as usize].add(bytes);
                } else {
                    self.stop(side);
                }
            }
            State::Other => {}
        }
    }

    fn open(self, (client_port, server_port): Ports, keys: &KeyLog) -> Option<Http2Connection> {
        let ends = match self.state {
            State::Clear(ends) => *ends,
            State::Sealed(random, kept) => {
                let of_client = [Label::ClientHandshake, Label::ClientData];
                let of_server = [Label::ServerHandshake, Label::ServerData];
                let open = |side: Side| {
                    let is_client = side as usize == self.opener as usize;
                    let labels = if is_client { of_client } else { of_server };
                    let [handshake, data] = labels.map(|label| keys.secret(&random, label));
                    kept[side as usize].open([handshake?, data?], is_client)
                };
                let [forward, reverse] = Side::BOTH.map(open);
                [forward?, reverse?]
            }
            State::Unclear(_) | State::Other => return None,
        };
        Some(Http2Connection { client_port, server_port, opening: self.opening, ends: ends.map(HttpRecorder::finish) })
    }
}

/// One direction's bytes.
#[derive(Debug, Default)]
struct Pieces(Vec<Vec<u8>>);

impl Pieces {
    fn add(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let last = self.0.last_mut();
            let size = last.as_ref().map_or(PIECE.start, |it| (2 * it.capacity()).min(PIECE.end));
            if let Some(last) = last.filter(|it| it.len() < it.capacity()) {
                let (now, rest) = bytes.split_at(bytes.len().min(last.capacity() - last.len()));
                last.extend_from_slice(now);
                bytes = rest;
            } else {
                self.0.push(Vec::with_capacity(size));
            }
        }
    }

    /// The frames in one end's records; `None` if its client does not begin with HTTP/2's preface.
    fn open(&self, secrets: [&[u8]; 2], is_client: bool) -> Option<HttpRecorder> {
        let mut frames = HttpRecorder::of_program(is_client);
        let mut preface = if is_client { &HTTP2_PREFACE[..] } else { &[] };
        let mut is_http2 = true;
        let mut records = Records::new(secrets);
        for piece in &self.0 {
            records.read(piece, |place, data| {
                let (expected, rest) = preface.split_at(preface.len().min(data.len()));
                preface = rest;
                is_http2 &= data.starts_with(expected);
                if is_http2 && !data.is_empty() {
                    frames.read_record(place, data);
                }
            });
        }
        (is_http2 && preface.is_empty()).then_some(frames)
    }
}

fn beginning(bytes: &[u8]) -> Beginning {
    if bytes.starts_with(&HTTP2_PREFACE) {
        return Beginning::Http2;
    }
    if HTTP2_PREFACE.starts_with(bytes) {
        return Beginning::Unclear;
    }
    let mut reader = Reader { bytes, at: 0 };
    let mut message = Vec::new();
    // A message may have several records.
    while reader.at < bytes.len() {
        if reader.fixed(1) != Some(HANDSHAKE_RECORD) {
            return Beginning::Other;
        }
        let mut content = || {
            // The version.
            reader.take(2)?;
            let length = reader.fixed(2)?;
            reader.take(length)
        };
        let Some(content) = content() else { return Beginning::Unclear };
        message.extend_from_slice(content);
        if message.first().is_some_and(|&kind| kind != CLIENT_HELLO) {
            return Beginning::Other;
        }
        if let Some(offers) = offers_http2(&message) {
            return random(&message).filter(|_| offers).map_or(Beginning::Other, Beginning::Tls);
        }
    }
    Beginning::Unclear
}
