//! The two hosts' devices, as the emulator reads and writes them, and waits for them.

use crate::clock::Clock;
use crate::error::{HostError, Result};
use crate::tun::Tun;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::SigSet;
use nix::sys::time::{TimeSpec, TimeValLike};
use std::os::fd::AsFd;
use std::sync::Arc;

/// Packets that are read from one device before the other device and the clock are looked at.
const BURST: usize = 16;
/// A wait that ends sooner than this found packets that had arrived before it.
const SHORTEST_WAIT: Duration = Duration::from_micros(5);

/// Both devices, and what wakes the emulator from another thread. A side stands for the host that sends in its direction.
pub struct Devices {
    tuns: [Tun; 2],
    wake: Arc<EventFd>,
    /// Whether a packet may wait on a side.
    readable: [bool; 2],
    /// Whether packets of a side arrive faster than they are read singly.
    bursts: [bool; 2],
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The time was over.
    Timeout,
    /// A packet arrived, or another thread asks for attention.
    Event,
}

impl Devices {
    /// The client's and the server's device.
    pub const fn new(tuns: [Tun; 2], wake: Arc<EventFd>) -> Self {
        Self { tuns, wake, readable: [true, true], bursts: [true, true] }
    }

    /// Reads a packet that the host of `side` sent, if one waits.
    pub fn read(&self, side: Side, into: &mut [u8], rest: &mut [u8]) -> Result<Option<usize>> {
        self.tuns[side as usize].read(into, rest).map_err(|e| HostError::new("cannot read from a TUN device", e))
    }

    /// Hands the packet to the host that receives in the direction of `side`. False when its device does not take it.
    pub fn write(&self, side: Side, packet: &[u8]) -> bool {
        self.tuns[1 - side as usize].write(packet).is_ok()
    }

    /// Hands the host of `side` a packet about one that it has sent. False when its device does not take it.
    pub fn answer(&self, side: Side, packet: &[u8]) -> bool {
        self.tuns[side as usize].write(packet).is_ok()
    }

    /// Whether a packet may wait on `side`.
    pub const fn is_readable(&self, side: Side) -> bool {
        self.readable[side as usize]
    }

    /// Whether a packet may wait on any side.
    pub fn any_readable(&self) -> bool {
        self.readable != [false, false]
    }

    /// From now on a packet may wait on both sides.
    pub const fn expect_packets(&mut self) {
        self.readable = [true, true];
    }

    /// How many packets to read from `side` now. It takes a read of its own to find that no more packets wait; where packets
    /// arrive singly, that read is saved, because the next wait finds it as well.
    pub const fn burst_limit(&self, side: Side) -> usize {
        if self.bursts[side as usize] { BURST } else { 1 }
    }

    /// `count` packets of at most `limit` were read from `side`.
    pub const fn handle_burst(&mut self, side: Side, count: usize, limit: usize) {
        self.readable[side as usize] = count == limit && limit > 1;
        if count < 2 && limit > 1 {
            self.bursts[side as usize] = false;
        }
    }

    /// Waits from `now` until a packet arrives, another thread asks for attention, or `timeout` is over (without one, forever).
    pub fn wait(&mut self, clock: Clock, now: Instant, timeout: Option<Duration>) -> Result<Woken> {
        let mut fds = [
            PollFd::new(self.tuns[0].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.tuns[1].as_fd(), PollFlags::POLLIN),
            PollFd::new(self.wake.as_fd(), PollFlags::POLLIN),
        ];
        let woken = poll(&mut fds, timeout)?;
        self.readable = [fds[0].any().unwrap_or(false), fds[1].any().unwrap_or(false)];
        if self.any_readable() && clock.now().saturating_since(now) < SHORTEST_WAIT {
            self.bursts = self.readable;
        }
        if fds[2].any().unwrap_or(false) {
            // Cleared so that it does not end the next wait as well; what the other thread wants stands elsewhere.
            let _ = self.wake.read();
        }
        Ok(woken)
    }

    /// Waits until another thread asks for attention, or `timeout` is over; what waits in the devices stays there.
    pub fn wait_without_packets(&self, timeout: Option<Duration>) -> Result<Woken> {
        let woken = poll(&mut [PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)], timeout)?;
        if woken == Woken::Event {
            let _ = self.wake.read();
        }
        Ok(woken)
    }

    /// The devices themselves.
    pub fn into_tuns(self) -> [Tun; 2] {
        self.tuns
    }
}

fn poll(fds: &mut [PollFd<'_>], timeout: Option<Duration>) -> Result<Woken> {
    let timeout = timeout.map(|timeout| TimeSpec::nanoseconds(timeout.as_nanos() as i64));
    match ppoll(fds, timeout, None::<SigSet>) {
        Ok(0) => Ok(Woken::Timeout),
        Ok(_) | Err(nix::errno::Errno::EINTR) => Ok(Woken::Event),
        Err(e) => Err(HostError::new("cannot wait for packets", e)),
    }
}
