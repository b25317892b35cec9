//! The socket writes of an HTTP/1.1 or HTTP/2 connection's end, with time and request.
//!
//! A library writes later than it is handed something, and interleaves several requests. Over HTTP/1.1 a write belongs
//! to the latest exchange; over HTTP/2 the frames tell (RFC 9113, section 4). Over TLS the written records tell the
//! bytes' positions on the socket (RFC 8446, section 5.2). The parsers panic on no bytes.

use crosswind_units::Instant;
use std::ops::Range;

/// The HTTP/2 client's connection preface (RFC 9113, section 3.4).
pub const HTTP2_PREFACE: [u8; 24] = *b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEADER: usize = 9;
const DATA: u8 = 0;
const SETTINGS: u8 = 4;
const WINDOW_UPDATE: u8 = 8;
const INITIAL_WINDOW_SIZE: u32 = 4;
/// Bytes read from a frame: SETTINGS with up to 20 values.
const MOST_READ: usize = 120;
const RECORD_HEADER: usize = 5;
const APPLICATION_DATA: u8 = 23;
/// A TLS 1.3 record's overhead: the content type, and the tag of every cipher suite in use.
const RECORD_OVERHEAD: u64 = 1 + 16;

/// One connection end's writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpEnd {
    /// The client's port.
    pub client_port: u16,
    /// When HTTP began on it.
    pub began: Instant,
    /// In order of writing.
    pub writes: Vec<HttpWrite>,
}

/// A program's HTTP/2 connection, read from its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Connection {
    /// Port at the client's host.
    pub client_port: u16,
    /// Port at the server's host.
    pub server_port: u16,
    /// Its SYN's sequence number.
    pub opening: u32,
    /// What the client's host sent, and what the server's did: frames without times, for flow control.
    pub ends: [HttpEnd; 2],
}

/// Contiguous bytes of one request or response, written at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpWrite {
    /// When.
    pub at: Instant,
    /// Position of the first on the socket. Over TLS that of its record.
    pub start: u64,
    /// Where they end. Over TLS where the last record does.
    pub end: u64,
    /// The HTTP/2 stream, or over HTTP/1.1 the number of the exchange from 1; 0: for the connection.
    pub stream: u64,
    /// The frame they begin.
    pub frame: HttpFrame,
}

/// An HTTP/2 frame, as far as flow control counts it (RFC 9113, section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpFrame {
    /// DATA with so many flow-controlled bytes.
    Data(u32),
    /// `WINDOW_UPDATE`: its sender takes so many more.
    WindowUpdate(u32),
    /// SETTINGS with this initial window for streams.
    InitialWindow(u32),
    /// Anything else, the rest of a frame, and all of HTTP/1.1.
    Other,
}

/// Follows one end's writes.
#[derive(Debug)]
pub struct HttpRecorder {
    end: HttpEnd,
    /// Bytes written above TLS.
    written: u64,
    /// The present HTTP/1.1 exchange.
    exchange: u64,
    frames: Option<FrameParser>,
    records: Option<RecordParser>,
    most: usize,
    flow_control_only: bool,
}

impl HttpRecorder {
    /// For HTTP/1.1, and at most so many writes.
    pub const fn http1(client_port: u16, most: usize) -> Self {
        let end = HttpEnd { client_port, began: Instant::from_nanos(0), writes: Vec::new() };
        Self { end, written: 0, exchange: 0, frames: None, records: None, most, flow_control_only: false }
    }

    /// For HTTP/2.
    pub fn http2(client_port: u16, is_client: bool, most: usize) -> Self {
        let frames =
            FrameParser { preface: if is_client { HTTP2_PREFACE.len() as u64 } else { 0 }, ..FrameParser::default() };
        Self { frames: Some(frames), ..Self::http1(client_port, most) }
    }

    /// The same over TLS; [`Self::write_record`] gets its records from the first on.
    #[must_use]
    pub fn over_tls(mut self) -> Self {
        self.records = Some(RecordParser::default());
        self
    }

    /// For HTTP/2 between programs: keeps flow control's frames alone, without times and ports.
    pub fn of_program(is_client: bool) -> Self {
        Self { flow_control_only: true, ..Self::http2(0, is_client, usize::MAX) }
    }

    /// A program's record at `place` on its socket had `data`.
    pub fn read_record(&mut self, place: Range<u64>, data: &[u8]) {
        let end = self.written + data.len() as u64;
        let records = &mut self.records.get_or_insert_default().records;
        records.push(Record { data: end, start: place.start, end: place.end });
        self.write(Instant::ZERO, data);
    }

    /// How many writes are kept.
    pub const fn kept(&self) -> usize {
        self.end.writes.len()
    }

    /// HTTP begins: what TLS has written so far was its handshake.
    pub const fn begin(&mut self, at: Instant) {
        self.end.began = at;
        if let Some(records) = &mut self.records {
            records.carries_data = true;
        }
    }

    /// HTTP/1.1: the next exchange begins. Returns its number.
    pub const fn begin_exchange(&mut self) -> u64 {
        self.exchange += 1;
        self.exchange
    }

    /// HTTP wrote `bytes`.
    pub fn write(&mut self, at: Instant, bytes: &[u8]) {
        let before = self.written;
        self.written += bytes.len() as u64;
        let Some(mut frames) = self.frames.take() else {
            let (range, stream, frame) = (before..self.written, self.exchange, HttpFrame::Other);
            self.push(at, Part { range, stream, frame, begins: false });
            return;
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            let position = self.written - rest.len() as u64;
            let (length, part) = frames.read(position, rest);
            if let Some(part) = part {
                self.push(at, part);
            }
            if let (Some(frame), Some(last)) = (frames.told(), self.end.writes.last_mut()) {
                last.frame = frame;
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        self.frames = Some(frames);
    }

    /// TLS wrote `bytes` to the socket.
    pub fn write_record(&mut self, bytes: &[u8]) {
        if let Some(records) = &mut self.records {
            records.read(bytes);
        }
    }

    /// The writes, by their positions on the socket, without data TLS still holds back; none if they were too many.
    pub fn finish(self) -> HttpEnd {
        let mut end = self.end;
        if end.writes.len() >= self.most {
            end.writes.clear();
        }
        if let Some(records) = self.records {
            let placed = |mut write: HttpWrite| {
                Range { start: write.start, end: write.end } = records.place(&(write.start..write.end))?;
                Some(write)
            };
            end.writes = end.writes.into_iter().map_while(placed).collect();
        }
        end
    }

    fn push(&mut self, at: Instant, Part { range, stream, frame, begins }: Part) {
        if begins && self.flow_control_only {
            self.end.writes.pop_if(|last| last.frame == HttpFrame::Other);
        }
        if let Some(last) = self.end.writes.last_mut()
            && !begins
            && (last.at, last.stream, last.end) == (at, stream, range.start)
        {
            last.end = range.end;
        } else if self.end.writes.len() < self.most {
            self.end.writes.push(HttpWrite { at, start: range.start, end: range.end, stream, frame });
        }
    }
}

/// Reads the frames of HTTP/2 that one end writes.
#[derive(Debug, Default)]
struct FrameParser {
    /// Bytes of the preface still to come.
    preface: u64,
    header: [u8; FRAME_HEADER],
    /// Header bytes read so far.
    read: usize,
    /// Bytes of the frame still to come.
    left: u64,
    payload: Vec<u8>,
    told: Option<HttpFrame>,
}

struct Part {
    range: Range<u64>,
    stream: u64,
    frame: HttpFrame,
    /// It begins with the frame.
    begins: bool,
}

impl FrameParser {
    /// Reads the first of `bytes`, at `position`. Returns how many, and their part once known.
    fn read(&mut self, position: u64, bytes: &[u8]) -> (usize, Option<Part>) {
        if self.preface > 0 {
            let length = (bytes.len() as u64).min(self.preface);
            self.preface -= length;
            let range = position..position + length;
            let part = Part { range, stream: 0, frame: HttpFrame::Other, begins: false };
            return (length as usize, Some(part));
        }
        if self.left > 0 {
            let length = (bytes.len() as u64).min(self.left);
            self.left -= length;
            let room = MOST_READ - self.payload.len().min(MOST_READ);
            self.payload.extend(bytes.iter().take(room.min(length as usize)));
            let range = position..position + length;
            let part = Part { range, stream: self.stream(), frame: HttpFrame::Other, begins: false };
            if self.left == 0 {
                self.end_frame();
            }
            return (length as usize, Some(part));
        }
        let length = bytes.len().min(FRAME_HEADER - self.read);
        let (place, given) = (self.header.iter_mut().skip(self.read), bytes.iter().take(length));
        place.zip(given).for_each(|(place, byte)| *place = *byte);
        self.read += length;
        if self.read < FRAME_HEADER {
            return (length, None);
        }
        let [a, b, c, kind, ..] = self.header;
        let payload = u32::from_be_bytes([0, a, b, c]);
        self.left = payload.into();
        self.payload.clear();
        let frame = if kind == DATA { HttpFrame::Data(payload) } else { HttpFrame::Other };
        let end = position + length as u64;
        let range = end - FRAME_HEADER as u64..end;
        let part = Part { range, stream: self.stream(), frame, begins: true };
        if payload == 0 {
            self.end_frame();
        }
        (length, Some(part))
    }

    /// The content of a frame read to its end.
    const fn told(&mut self) -> Option<HttpFrame> {
        self.told.take()
    }

    fn stream(&self) -> u64 {
        let [.., a, b, c, d] = self.header;
        u32::from_be_bytes([a & 0x7f, b, c, d]).into()
    }

    fn end_frame(&mut self) {
        self.read = 0;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |number: u32, &byte| (number << 8) | u32::from(byte));
        let [_, _, _, kind, ..] = self.header;
        self.told = match (kind, self.payload.as_slice()) {
            (WINDOW_UPDATE, [a, b, c, d]) => Some(HttpFrame::WindowUpdate(number(&[a & 0x7f, *b, *c, *d]))),
            (SETTINGS, values) => values
                .chunks_exact(6)
                .filter(|value| number(&value[..2]) == INITIAL_WINDOW_SIZE)
                .map(|value| HttpFrame::InitialWindow(number(&value[2..])))
                .next_back(),
            _ => None,
        };
    }
}

#[derive(Debug, Default)]
struct RecordParser {
    header: [u8; RECORD_HEADER],
    read: usize,
    left: u64,
    /// Bytes on the socket, and bytes of data in records.
    position: u64,
    data: u64,
    carries_data: bool,
    records: Vec<Record>,
}

/// A record's data, up to `data`, and its place on the socket.
#[derive(Debug)]
struct Record {
    data: u64,
    start: u64,
    end: u64,
}

impl RecordParser {
    fn read(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let length = if self.left > 0 {
                (bytes.len() as u64).min(self.left) as usize
            } else {
                bytes.len().min(RECORD_HEADER - self.read)
            };
            let (read, rest) = bytes.split_at(length);
            if self.left > 0 {
                self.left -= length as u64;
            } else {
                let place = self.header.iter_mut().skip(self.read);
                place.zip(read).for_each(|(place, byte)| *place = *byte);
                self.read += length;
                if self.read == RECORD_HEADER {
                    self.begin_record(self.position + length as u64);
                }
            }
            self.position += length as u64;
            if self.left == 0 && self.read == RECORD_HEADER {
                self.read = 0;
            }
            bytes = rest;
        }
    }

    fn begin_record(&mut self, at: u64) {
        let [kind, _, _, a, b] = self.header;
        self.left = u16::from_be_bytes([a, b]).into();
        if self.carries_data && kind == APPLICATION_DATA {
            self.data += self.left.saturating_sub(RECORD_OVERHEAD);
            self.records.push(Record { data: self.data, start: at - RECORD_HEADER as u64, end: at + self.left });
        }
    }

    /// Data bytes' place on the socket.
    fn place(&self, data: &Range<u64>) -> Option<Range<u64>> {
        let first = self.records.get(self.records.partition_point(|it| it.data <= data.start))?;
        let last = self.records.get(self.records.partition_point(|it| it.data < data.end))?;
        Some(first.start..last.end)
    }
}
