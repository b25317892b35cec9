//! A capture at one end of the network: the cell's packets between the two machines.

use super::client::RemoteServer;
use crate::table::UnfinishedFile;
use crate::{Cell, CellError, spawn};
use crosswind_host::PacketSocket;
use crosswind_ledger::{Capture, CaptureOptions, Headers, LedgerError};
use crosswind_units::Instant;
use std::fs::File;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The largest packet written whole, bytes.
const SNAP: usize = 65_535;
/// The largest capture, bytes. Later packets count as missed.
const LARGEST: u64 = 1 << 30;
/// How long packets may be on their way to the capture when the cell has ended.
const DRAIN: Duration = Duration::from_millis(50);

/// The written packets: those between this machine and `other` with `port` at one end.
#[derive(Clone, Copy, Debug)]
pub struct Filter {
    pub other: IpAddr,
    pub port: u16,
}

pub struct Running {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Result<Captured, CellError>>,
}

/// A finished capture.
pub struct Captured {
    /// A pcapng file.
    pub file: File,
    /// Missing packets.
    pub missed: u64,
}

impl Running {
    /// Begins to write packets matching `filter` into `file`; `host` is the interface's name in it.
    pub fn start(file: File, filter: Filter, host: &'static str) -> Result<Self, CellError> {
        let socket = PacketSocket::open()?;
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let thread = spawn("capture", move || capture(&socket, file, filter, host, &over))?;
        Ok(Self { is_over, thread })
    }

    /// Ends it.
    pub fn finish(self) -> Result<Captured, CellError> {
        std::thread::sleep(DRAIN);
        self.is_over.store(true, Ordering::Release);
        self.thread.join().map_err(|_| CellError::internal("the capture panicked"))?
    }
}

fn capture(
    socket: &PacketSocket,
    file: File,
    filter: Filter,
    host: &str,
    is_over: &AtomicBool,
) -> Result<Captured, CellError> {
    // The kernel's times are already the wall clock's.
    let options = CaptureOptions { host, snap_bytes: SNAP as u32, wall_clock_origin_ns: 0 };
    let mut capture = Capture::new(file, options)?;
    let (mut written, mut missed) = (0_u64, 0_u64);
    let mut buffer = vec![0; SNAP];
    while !is_over.load(Ordering::Acquire) {
        let Some(packet) = socket.receive(&mut buffer)? else { continue };
        let bytes = &buffer[..packet.length];
        if !filter.lets_through(bytes) {
            continue;
        }
        written += bytes.len() as u64;
        if written > LARGEST {
            missed += 1;
            continue;
        }
        let at = Instant::from_nanos(packet.at_ns);
        if packet.is_outgoing { capture.sent(at, bytes, None) } else { capture.received(at, bytes) }?;
    }
    let file = capture.finish().map_err(|e: LedgerError| CellError::from(e))?;
    Ok(Captured { file, missed: missed + socket.missed() })
}

/// The client's capture.
pub struct Capturing {
    running: Running,
    unfinished: UnfinishedFile,
}

impl Capturing {
    /// Begins `client.pcapng`, if the cell wants one.
    pub fn start(cell: &Cell, far: &RemoteServer) -> Result<Option<Self>, CellError> {
        let (true, Some(directory)) = (cell.output.capture, &cell.output.directory) else { return Ok(None) };
        let (unfinished, file) = UnfinishedFile::create(directory, "client.pcapng")?;
        let filter = Filter { other: far.address.ip(), port: far.address.port() };
        Ok(Some(Self { running: Running::start(file, filter, "client")?, unfinished }))
    }

    /// Ends it, and gives the file its name.
    pub fn finish(self) -> Result<Captured, CellError> {
        let captured = self.running.finish()?;
        self.unfinished.complete()?;
        Ok(captured)
    }
}

impl Filter {
    fn lets_through(self, packet: &[u8]) -> bool {
        let headers = Headers::parse(packet);
        let has_port = headers.source_port == self.port || headers.destination_port == self.port;
        has_port && ends(packet).is_some_and(|ends| ends.contains(&self.other.to_canonical()))
    }
}

/// Where an IP packet comes from and goes to.
fn ends(packet: &[u8]) -> Option<[IpAddr; 2]> {
    match packet.first()? >> 4 {
        4 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?));
            Some([address(12)?, address(16)?])
        }
        6 => {
            let address = |at: usize| Some(IpAddr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?));
            Some([address(8)?, address(24)?])
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An IPv4 UDP packet from 192.0.2.1:1000 to 192.0.2.2:9471.
    fn packet() -> Vec<u8> {
        let mut packet = vec![0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
        packet.extend([0x03, 0xe8, 0x24, 0xff, 0, 9, 0, 0, 7]);
        packet
    }

    #[test]
    fn only_packets_of_the_cell_are_written() {
        let filter = |other: &str, port| Filter { other: other.parse().unwrap(), port };
        assert!(filter("192.0.2.2", 9471).lets_through(&packet()));
        assert!(filter("192.0.2.1", 9471).lets_through(&packet()));
        assert!(filter("::ffff:192.0.2.1", 9471).lets_through(&packet()));
        assert!(!filter("192.0.2.3", 9471).lets_through(&packet()));
        assert!(!filter("192.0.2.2", 9470).lets_through(&packet()));
        for length in 0..packet().len() {
            filter("192.0.2.2", 9471).lets_through(&packet()[..length]);
        }
    }
}
