//! Packets and writers shared by tests.

#![allow(dead_code)] // each test binary uses its part

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

/// A UDP datagram over IPv4, with right lengths and checksums.
pub fn datagram_v4(payload: &[u8]) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).udp(40_000, 7_777);
    let mut packet = Vec::with_capacity(builder.size(payload.len()));
    builder.write(&mut packet, payload).unwrap();
    packet
}

/// A TCP segment over IPv6.
pub fn segment_v6(payload: &[u8]) -> Vec<u8> {
    let builder = etherparse::PacketBuilder::ipv6([0xfd; 16], [0xfc; 16], 64).tcp(40_000, 80, 1, 65_535).psh().ack(1);
    let mut packet = Vec::with_capacity(builder.size(payload.len()));
    builder.write(&mut packet, payload).unwrap();
    packet
}

/// An in-memory file, readable after its writer is gone.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A disk with space for so many bytes.
pub struct SmallDisk(pub usize);

impl Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = bytes.len().min(self.0);
        self.0 -= taken;
        if taken == 0 { Err(io::ErrorKind::StorageFull.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
