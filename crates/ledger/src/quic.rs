//! An unencrypted QUIC packet's frames: RFC 9000, section 19, and RFC 9221 for datagrams.
//!
//! The parser panics on no bytes and allocates nothing. An unknown frame ends a packet, as [`Frames::is_whole`] tells.

use std::ops::Range;

/// One host's packets in sending order, with their frames.
#[derive(Clone, Debug, Default)]
pub struct QuicLog {
    packets: Vec<QuicPacket>,
    frames: Vec<QuicFrame>,
    most: usize,
    is_full: bool,
}

/// A packet sent by a connection's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuicPacket {
    /// The end's number for the connection, the same in all its packets.
    pub connection: u32,
    /// Its packet number space.
    pub space: QuicSpace,
    /// Its packet number.
    pub number: u64,
    /// All its bytes: header, frames and tag.
    pub size: u16,
    /// The last eight bytes, as they were sent: by them its datagram is found, as long as it is the last packet of one.
    pub tail: u64,
    /// Whether all its frames could be read.
    pub is_whole: bool,
    first_frame: u32,
    frames: u16,
}

impl QuicLog {
    /// For at most so many packets.
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Whether packets were left out.
    pub const fn is_full(&self) -> bool {
        self.is_full
    }

    /// The packets, in sending order.
    pub fn packets(&self) -> &[QuicPacket] {
        &self.packets
    }

    /// The frames of a packet in this log.
    pub fn frames(&self, packet: &QuicPacket) -> &[QuicFrame] {
        let Range { start, end } = packet.frames();
        &self.frames[start..end]
    }

    /// Adds a packet as it was sent; `payload` has its frames, without header and tag.
    pub fn add_sent(&mut self, connection: u32, space: QuicSpace, number: u64, packet: &[u8], payload: &[u8]) {
        if let Some(added) = self.add(connection, space, number, packet.len(), payload) {
            added.tail = tail(packet);
        }
    }

    /// Adds a packet as it was sent, without its content.
    pub fn add_unread(&mut self, connection: u32, space: QuicSpace, packet: &[u8]) {
        self.add_sent(connection, space, 0, packet, &[]);
        if let Some(last) = self.packets.last_mut().filter(|_| !self.is_full) {
            last.is_whole = false;
        }
    }

    /// Adds a frame to the last packet.
    pub fn add_frame(&mut self, frame: QuicFrame) {
        if let Some(last) = self.packets.last_mut().filter(|_| !self.is_full) {
            self.frames.push(frame);
            last.frames += 1;
        }
    }

    /// The last packet is followed by so many bytes outside any packet, the end of its `datagram`.
    pub fn extend_last(&mut self, bytes: usize, datagram: &[u8]) {
        if let Some(last) = self.packets.last_mut().filter(|_| !self.is_full) {
            (last.size, last.tail) = (last.size.saturating_add(bytes as u16), tail(datagram));
        }
    }

    /// Adds a packet; `payload` has its frames, without header and tag. Returns it, to set its tail after encryption;
    /// nothing if the log is full.
    pub fn add(
        &mut self,
        connection: u32,
        space: QuicSpace,
        number: u64,
        size: usize,
        payload: &[u8],
    ) -> Option<&mut QuicPacket> {
        if self.packets.len() >= self.most {
            self.is_full = true;
            return None;
        }
        let first_frame = self.frames.len();
        let mut frames = Frames::new(payload);
        self.frames.extend(frames.by_ref());
        self.packets.push(QuicPacket {
            connection,
            space,
            number,
            size: size as u16,
            tail: 0,
            is_whole: frames.is_whole(),
            first_frame: first_frame as u32,
            frames: (self.frames.len() - first_frame) as u16,
        });
        self.packets.last_mut()
    }
}

/// The last eight bytes.
fn tail(bytes: &[u8]) -> u64 {
    bytes.last_chunk().map_or(0, |tail| u64::from_be_bytes(*tail))
}

impl QuicPacket {
    const fn frames(&self) -> Range<usize> {
        let start = self.first_frame as usize;
        start..start + self.frames as usize
    }
}

/// Packet number spaces (RFC 9000, section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuicSpace {
    /// Initial packets.
    Initial,
    /// Handshake packets.
    Handshake,
    /// 0-RTT and 1-RTT packets.
    Data,
}

/// A frame. Frames irrelevant to timing are [`QuicFrame::Other`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicFrame {
    /// Asks for an acknowledgement, and for nothing else.
    Ping,
    /// Packets from `smallest` to `largest` have arrived. Others may have as well, but none above.
    Ack {
        /// The smallest in the largest's range.
        smallest: u64,
        /// The largest of all.
        largest: u64,
    },
    /// TLS bytes.
    Crypto {
        /// Position of the first.
        offset: u64,
        /// How many.
        length: u32,
    },
    /// A stream's bytes.
    Stream {
        /// The stream.
        stream: u64,
        /// Position of the first.
        offset: u64,
        /// How many.
        length: u32,
        /// They are the last.
        is_last: bool,
    },
    /// A message without a stream.
    Datagram {
        /// Its bytes.
        length: u32,
    },
    /// All streams together may have so many bytes.
    MaxData(u64),
    /// A stream may have so many bytes.
    MaxStreamData {
        /// The stream.
        stream: u64,
        /// How many.
        limit: u64,
    },
    /// So many streams may be opened.
    MaxStreams(u64),
    /// All streams together have so many bytes and want more.
    DataBlocked(u64),
    /// A stream has so many bytes and wants more.
    StreamDataBlocked {
        /// The stream.
        stream: u64,
        /// How many.
        limit: u64,
    },
    /// So many streams are open, and more are wanted.
    StreamsBlocked(u64),
    /// Initial stream limits from transport parameters: for streams opened by their end, by the other, and by the other
    /// in one direction only. It stands in the packet that completes them.
    StreamLimits {
        /// Whether their end is the client.
        is_client: bool,
        /// For its own bidirectional streams.
        own: u64,
        /// For the other's bidirectional streams.
        others: u64,
        /// For the other's unidirectional streams.
        one_way: u64,
    },
    /// A connection ID to send packets to, with its length.
    NewConnectionId {
        /// How many.
        length: u8,
    },
    /// Not a frame but a packet of its own: the server asks for another first packet.
    Retry,
    /// The server has confirmed the handshake.
    HandshakeDone,
    /// The connection ends.
    Close,
    /// Anything else but padding.
    Other,
}

/// Reads a packet's frames one by one.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: &'a [u8],
    size: usize,
    is_whole: bool,
}

impl<'a> Frames<'a> {
    /// For a packet without its header and tag.
    pub const fn new(payload: &'a [u8]) -> Self {
        Self { rest: payload, size: payload.len(), is_whole: true }
    }

    /// How many bytes were read: where the last frame ended.
    pub const fn position(&self) -> usize {
        self.size - self.rest.len()
    }

    /// Whether all frames so far could be read. An unreadable one hides the rest.
    pub const fn is_whole(&self) -> bool {
        self.is_whole
    }

    fn read(&mut self) -> Option<QuicFrame> {
        let kind = self.number()?;
        Some(match kind {
            // PING, and IMMEDIATE_ACK (draft-ietf-quic-ack-frequency).
            0x01 | 0x1f => QuicFrame::Ping,
            0x02 | 0x03 => self.ack(kind == 0x03)?,
            0x06 => {
                let (offset, length) = (self.number()?, self.number()?);
                QuicFrame::Crypto { offset, length: self.skip(length)? }
            }
            0x08..=0x0f => self.stream(kind)?,
            0x10 => QuicFrame::MaxData(self.number()?),
            0x11 => QuicFrame::MaxStreamData { stream: self.number()?, limit: self.number()? },
            0x12 | 0x13 => QuicFrame::MaxStreams(self.number()?),
            0x14 => QuicFrame::DataBlocked(self.number()?),
            0x15 => QuicFrame::StreamDataBlocked { stream: self.number()?, limit: self.number()? },
            0x16 | 0x17 => QuicFrame::StreamsBlocked(self.number()?),
            0x1c | 0x1d => {
                self.numbers(if kind == 0x1c { 2 } else { 1 })?;
                self.skip_counted()?;
                QuicFrame::Close
            }
            0x18 => {
                self.numbers(2)?;
                let length = *self.rest.first()?;
                self.skip(1 + u64::from(length) + 16)?;
                QuicFrame::NewConnectionId { length }
            }
            0x1e => QuicFrame::HandshakeDone,
            0x30 | 0x31 => {
                let length = if kind == 0x31 { self.number()? } else { self.rest.len() as u64 };
                QuicFrame::Datagram { length: self.skip(length)? }
            }
            _ => {
                self.other(kind)?;
                QuicFrame::Other
            }
        })
    }

    /// An acknowledgement's ranges run from the largest downwards; gaps and lengths are one less than they say.
    fn ack(&mut self, has_ecn: bool) -> Option<QuicFrame> {
        let (largest, _delay, ranges) = (self.number()?, self.number()?, self.number()?);
        let smallest = largest.checked_sub(self.number()?)?;
        let mut below = smallest;
        for _ in 0..ranges {
            below = below.checked_sub(self.number()?.checked_add(2)?)?.checked_sub(self.number()?)?;
        }
        self.numbers(if has_ecn { 3 } else { 0 })?;
        Some(QuicFrame::Ack { smallest, largest })
    }

    /// A STREAM frame's lowest bits flag an offset, a length, the end.
    fn stream(&mut self, kind: u64) -> Option<QuicFrame> {
        let stream = self.number()?;
        let offset = if kind & 4 == 0 { 0 } else { self.number()? };
        let length = if kind & 2 == 0 { self.rest.len() as u64 } else { self.number()? };
        Some(QuicFrame::Stream { stream, offset, length: self.skip(length)?, is_last: kind & 1 != 0 })
    }

    fn other(&mut self, kind: u64) -> Option<()> {
        match kind {
            // RESET_STREAM; STOP_SENDING; NEW_TOKEN; RETIRE_CONNECTION_ID; ACK_FREQUENCY (draft-ietf-quic-ack-frequency).
            0x04 => self.numbers(3),
            0x05 => self.numbers(2),
            0x07 => self.skip_counted(),
            0x19 => self.numbers(1),
            // PATH_CHALLENGE and PATH_RESPONSE.
            0x1a | 0x1b => self.skip(8).map(drop),
            0xaf => self.numbers(4),
            _ => None,
        }
    }

    /// A variable-length integer (RFC 9000, section 16).
    fn number(&mut self) -> Option<u64> {
        let first = *self.rest.first()?;
        let (bytes, rest) = self.rest.split_at_checked(1 << (first >> 6))?;
        self.rest = rest;
        Some(bytes[1..].iter().fold(u64::from(first & 0x3f), |number, &byte| (number << 8) | u64::from(byte)))
    }

    fn numbers(&mut self, count: u32) -> Option<()> {
        (0..count).try_for_each(|_| self.number().map(drop))
    }

    fn skip(&mut self, bytes: u64) -> Option<u32> {
        self.rest = self.rest.get(usize::try_from(bytes).ok()?..)?;
        u32::try_from(bytes).ok()
    }

    fn skip_counted(&mut self) -> Option<()> {
        let length = self.number()?;
        self.skip(length).map(drop)
    }
}

impl Iterator for Frames<'_> {
    type Item = QuicFrame;

    fn next(&mut self) -> Option<QuicFrame> {
        const PADDING: u8 = 0;
        let padding = self.rest.iter().take_while(|&&byte| byte == PADDING).count();
        self.rest = &self.rest[padding..];
        if self.rest.is_empty() {
            return None;
        }
        let frame = self.read();
        if frame.is_none() {
            (self.rest, self.is_whole) = (&[], false);
        }
        frame
    }
}
