//! A pcapng file for one host's device: sent and received packets, as raw IP.
//!
//! Format: the IETF draft "PCAP Now Generic (pcapng) Capture File Format". A block is a type, its length, a body padded
//! to 4 bytes, and its length again. A capture consists of a section header, one interface, and one enhanced packet
//! block for each packet.
//!
//! Times never decrease within a file: the forwarding thread reports every entry and every delivery with the clock's
//! latest reading.

use crate::{DropCause, LedgerError};
use crosswind_units::Instant;
use std::io::{BufWriter, Write};

const FILE: &str = "a capture";

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const SECTION_LENGTH_UNKNOWN: u64 = u64::MAX;
/// `LINKTYPE_RAW`: the packet begins with its IPv4 or IPv6 header.
const RAW_IP: u16 = 101;

const END_OF_OPTIONS: u16 = 0;
const COMMENT: u16 = 1;
const USER_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const TIMESTAMP_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;

/// 10^-9 s.
const NANOSECONDS: u8 = 9;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;

/// A capture's header data.
#[derive(Clone, Copy, Debug)]
pub struct CaptureOptions<'a> {
    /// The interface's name: `client` or `server`.
    pub host: &'a str,
    /// The most bytes written per packet. The rest is cut off; the packet's true length is written too.
    pub snap_bytes: u32,
    /// Wall-clock time of the `Instant` 0, nanoseconds since 1970.
    pub wall_clock_origin_ns: u64,
}

/// Writes one host's packets.
pub struct Capture<W: Write> {
    writer: BufWriter<W>,
    block: Vec<u8>,
    snap_bytes: u32,
    wall_clock_origin_ns: u64,
}

impl<W: Write> Capture<W> {
    /// A capture without packets.
    pub fn new(writer: W, options: CaptureOptions<'_>) -> Result<Self, LedgerError> {
        let CaptureOptions { host, snap_bytes, wall_clock_origin_ns } = options;
        let mut capture =
            Self { writer: BufWriter::new(writer), block: Vec::with_capacity(2048), snap_bytes, wall_clock_origin_ns };
        capture.write_section_header()?;
        capture.write_interface(host)?;
        Ok(capture)
    }

    /// The host sent `packet` at `at`; `dropped` when the path dropped it on entry.
    pub fn sent(&mut self, at: Instant, packet: &[u8], dropped: Option<DropCause>) -> Result<(), LedgerError> {
        self.write_packet(at, packet, OUTBOUND, dropped)
    }

    /// The host received `packet` at `at`.
    pub fn received(&mut self, at: Instant, packet: &[u8]) -> Result<(), LedgerError> {
        self.write_packet(at, packet, INBOUND, None)
    }

    /// Writes the buffered rest and gives the writer back.
    pub fn finish(self) -> Result<W, LedgerError> {
        LedgerError::writing(FILE, self.writer.into_inner().map_err(std::io::IntoInnerError::into_error))
    }

    fn write_section_header(&mut self) -> Result<(), LedgerError> {
        self.begin(SECTION_HEADER);
        self.u32(BYTE_ORDER_MAGIC);
        self.u16(1); // version 1.0
        self.u16(0);
        self.block.extend(SECTION_LENGTH_UNKNOWN.to_le_bytes());
        self.option(USER_APPLICATION, concat!("Crosswind ", env!("CARGO_PKG_VERSION")).as_bytes());
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    fn write_interface(&mut self, host: &str) -> Result<(), LedgerError> {
        self.begin(INTERFACE_DESCRIPTION);
        self.u16(RAW_IP);
        self.u16(0); // reserved
        self.u32(self.snap_bytes);
        self.option(INTERFACE_NAME, host.as_bytes());
        self.option(TIMESTAMP_RESOLUTION, &[NANOSECONDS]);
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    fn write_packet(
        &mut self,
        at: Instant,
        packet: &[u8],
        flags: u32,
        dropped: Option<DropCause>,
    ) -> Result<(), LedgerError> {
        let time = self.wall_clock_origin_ns.saturating_add(at.as_nanos());
        let written = &packet[..packet.len().min(self.snap_bytes as usize)];
        self.begin(ENHANCED_PACKET);
        self.u32(0); // the first interface
        self.u32((time >> 32) as u32);
        self.u32(time as u32);
        self.u32(written.len() as u32);
        self.u32(packet.len() as u32);
        self.block.extend(written);
        self.pad();
        self.option(PACKET_FLAGS, &flags.to_le_bytes());
        if let Some(cause) = dropped {
            self.option(COMMENT, format!("dropped: {}", cause.name()).as_bytes());
        }
        self.option(END_OF_OPTIONS, &[]);
        self.end()
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.u32(kind);
        self.u32(0); // the length, set by `end`
    }

    /// Completes the block and writes it.
    fn end(&mut self) -> Result<(), LedgerError> {
        let length = self.block.len() as u32 + 4;
        self.u32(length);
        self.block[4..8].copy_from_slice(&length.to_le_bytes());
        LedgerError::writing(FILE, self.writer.write_all(&self.block))
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code);
        self.u16(value.len() as u16);
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    fn u16(&mut self, value: u16) {
        self.block.extend(value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.block.extend(value.to_le_bytes());
    }
}
