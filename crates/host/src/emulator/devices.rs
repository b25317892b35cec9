//! The hosts' devices, as the emulator reads and writes them, and waits for them.

use crate::clock::Clock;
use crate::error::{HostError, Result};
use crate::tun::Tun;
use crosswind_packet::RawSending;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::signal::SigSet;
use nix::sys::time::{TimeSpec, TimeValLike};
use std::os::fd::AsFd as _;
use std::sync::Arc;

/// Packets read from one device before checking the other device and the clock.
const BURST: usize = 16;
/// A shorter wait found packets that had arrived before it.
const SHORTEST_WAIT: Duration = Duration::from_micros(5);

/// A host: its pair, and the direction it sends in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender {
    pub pair: u8,
    pub side: Side,
}

impl Sender {
    /// The other host of its pair.
    pub fn receiver(self) -> Self {
        Self { side: self.side.opposite(), ..self }
    }

    const fn place(self) -> usize {
        self.pair as usize * 2 + self.side as usize
    }
}

/// The devices, and the wake-up from another thread.
pub struct Devices {
    /// Each pair's client and server.
    tuns: Vec<Tun>,
    wake: Arc<EventFd>,
    /// Whether a packet may wait in a device.
    readable: Vec<bool>,
    /// Whether a device's packets arrive faster than they are read singly.
    bursts: Vec<bool>,
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
    /// Each pair's client and server device.
    pub fn new(pairs: Vec<[Tun; 2]>, wake: Arc<EventFd>) -> Self {
        let tuns: Vec<Tun> = pairs.into_iter().flatten().collect();
        let all = vec![true; tuns.len()];
        Self { tuns, wake, readable: all.clone(), bursts: all }
    }

    /// All hosts.
    pub fn senders(&self) -> impl Iterator<Item = Sender> + use<> {
        (0..self.tuns.len() as u8 / 2).flat_map(|pair| Side::BOTH.map(|side| Sender { pair, side }))
    }

    /// Reads a packet from a host, if one waits.
    pub fn read(&self, from: Sender, into: &mut [u8], rest: &mut [u8]) -> Result<Option<(usize, RawSending)>> {
        self.tuns[from.place()].read(into, rest).map_err(|e| HostError::new("cannot read from a TUN device", e))
    }

    /// Hands a host a packet, known as `waker` there. False when its device does not take it.
    pub fn write(&self, to: Sender, packet: &[u8], waker: u64) -> bool {
        self.tuns[to.place()].write(packet, waker).is_ok()
    }

    /// Whether this host may have a packet waiting.
    pub fn is_readable(&self, from: Sender) -> bool {
        self.readable[from.place()]
    }

    /// Whether any host may have a packet waiting.
    pub fn any_readable(&self) -> bool {
        self.readable.contains(&true)
    }

    /// From now on any host may have a packet waiting.
    pub fn expect_packets(&mut self) {
        self.readable.fill(true);
    }

    /// How many packets to read from a host now. Finding no more packets takes a read of its own; when packets arrive
    /// singly, that read is saved, because the next wait finds it as well.
    pub fn burst_limit(&self, from: Sender) -> usize {
        if self.bursts[from.place()] { BURST } else { 1 }
    }

    /// `count` packets, at most `limit`, were read from a host.
    pub fn handle_burst(&mut self, from: Sender, count: usize, limit: usize) {
        self.readable[from.place()] = count == limit && limit > 1;
        if count < 2 && limit > 1 {
            self.bursts[from.place()] = false;
        }
    }

    /// Waits from `now` for a packet, another thread's request, or the end of `timeout` (without one, forever).
    pub fn wait(&mut self, clock: Clock, now: Instant, timeout: Option<Duration>) -> Result<Woken> {
        let devices = self.tuns.iter().map(Tun::as_fd).chain([self.wake.as_fd()]);
        let mut fds: Vec<_> = devices.map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
        let woken = poll(&mut fds, timeout)?;
        let mut ready = fds.iter().map(|fd| fd.any().unwrap_or(false));
        self.readable.iter_mut().zip(&mut ready).for_each(|(readable, ready)| *readable = ready);
        let is_woken = ready.next().unwrap_or(false);
        if self.any_readable() && clock.now().saturating_since(now) < SHORTEST_WAIT {
            self.bursts.clone_from(&self.readable);
        }
        if is_woken {
            // Cleared, or it would end the next wait as well; the other thread's request is elsewhere.
            let _ = self.wake.read();
        }
        Ok(woken)
    }

    /// Waits until another thread asks for attention, or `timeout` is over; the devices' packets stay.
    pub fn wait_without_packets(&self, timeout: Option<Duration>) -> Result<Woken> {
        let woken = poll(&mut [PollFd::new(self.wake.as_fd(), PollFlags::POLLIN)], timeout)?;
        if woken == Woken::Event {
            let _ = self.wake.read();
        }
        Ok(woken)
    }

    /// The devices themselves.
    pub fn into_tuns(self) -> Vec<Tun> {
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
