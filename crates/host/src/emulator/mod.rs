//! The emulator: passes packets from each host's device through the path to the other's of its pair, on a thread of its own.
//!
//! The thread serves both directions and sleeps until a packet arrives or is due ([`ForwardingLoop`]). It never touches the
//! disk and takes no lock; what it records goes through a channel. When it is to finish, it lets the path run empty, waits
//! until the devices are down, reads the packets that are left in them, and reports its counts: every packet is then
//! delivered, dropped or still inside.

mod accounts;
mod alarm;
mod backlog;
mod devices;
mod forwarding;
mod in_kernel;
mod intake;
mod punctuality;
mod slab;
mod thread_time;
mod traffic;

pub use in_kernel::{KernelEmulator, KernelPath};
pub use punctuality::{Punctual, Punctuality};
pub use traffic::{Amount, Traffic, TrafficCounters};

use crate::clock::Clock;
use crate::error::{HostError, Result};
use crate::tun::Tun;
use crosswind_ledger::{Ledger, PayloadClock, Recorder, Starvation, TimeHistogram};
use crosswind_packet::mark;
use crosswind_path::{Packet, PathConfig};
use crosswind_units::{Duration, Seed};
use forwarding::ForwardingLoop;
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// How long the emulator waits for the devices to be set down at the end.
const DEVICES_DOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// The value of `drain_by` while the cell runs.
const RUNNING: u64 = u64::MAX;

/// What the emulator is to do, and with what.
pub struct Setup {
    /// The emulated network.
    pub config: PathConfig,
    /// Where its chance comes from.
    pub seed: Seed,
    /// Shared with everyone who stamps times in this cell.
    pub clock: Clock,
    /// The largest packet.
    pub mtu: usize,
    /// Processors to run on; empty for any.
    pub cpus: Vec<usize>,
    /// Processors on which the hosts receive; empty when it is the emulator's own.
    pub host_cpus: Vec<usize>,
    /// Share of the processor's time for watching the clock, where other emulators run on it too.
    pub watch: Option<f64>,
    /// Packet records and captures.
    pub recorder: Recorder,
    /// First and last payload by connection.
    pub payload_clock: Arc<PayloadClock>,
    /// Counts how late every packet leaves.
    pub punctuality: Arc<Punctuality>,
    /// Counts every packet that enters.
    pub traffic: Arc<TrafficCounters>,
}

/// What the emulator saw.
pub struct EmulatorReport {
    /// Counts by direction.
    pub ledger: Ledger,
    /// Packets still inside at the end: forward, reverse.
    pub queued: [u64; 2],
    /// Actual minus nominal time of release.
    pub delay_error: TimeHistogram,
    /// Time spent behind other packets: forward, reverse.
    pub queueing: [TimeHistogram; 2],
    /// How long the thread waited for a processor.
    pub starvation: Starvation,
    /// Whether it had real-time priority.
    pub realtime: bool,
    /// Whether it was the kernel itself.
    pub in_kernel: bool,
    /// For how long it left packets in the hosts' devices.
    pub held: Duration,
    /// CPU time that it used.
    pub cpu_ns: u64,
    /// The devices, which are gone when this is dropped.
    pub(crate) _devices: Vec<Tun>,
}

/// The running emulator.
pub struct Emulator {
    thread: thread::JoinHandle<Result<EmulatorReport>>,
    wake: Arc<EventFd>,
    /// Time by which the path must be empty, nanoseconds of `clock`; `RUNNING` while the cell runs.
    drain_by: Arc<AtomicU64>,
    /// A message comes when the path is empty. In a mutex only so that the forwarder can be shared; it is read once.
    drained: Mutex<Receiver<()>>,
    devices_down: Sender<()>,
    clock: Clock,
}

impl Emulator {
    /// Starts the emulator between the client's and the server's device of each pair of hosts.
    pub fn start(pairs: Vec<[Tun; 2]>, setup: Setup) -> Result<Self> {
        let wake = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)
            .map_err(|e| HostError::new("cannot make an eventfd", e))?;
        let wake = Arc::new(wake);
        let drain_by = Arc::new(AtomicU64::new(RUNNING));
        let (drained_sender, drained) = channel();
        let (devices_down, devices_down_receiver) = channel();
        let clock = setup.clock;
        let emulator = ForwardingLoop::new(pairs, setup, Arc::clone(&wake), Arc::clone(&drain_by));
        let thread = thread::Builder::new()
            .name("emulator".into())
            .spawn(move || run(emulator, &drained_sender, &devices_down_receiver))
            .map_err(|e| HostError::new("cannot start the emulator's thread", e))?;
        Ok(Self { thread, wake, drain_by, drained: Mutex::new(drained), devices_down, clock })
    }

    /// Lets the path run empty (for at most `limit`), calls `set_down` to take the devices down, and ends the emulator.
    pub fn finish(self, limit: Duration, set_down: impl FnOnce() -> Result<()>) -> Result<EmulatorReport> {
        self.drain_by.store((self.clock.now() + limit).as_nanos(), Ordering::Release);
        // Only to wake the emulator; when it is already gone, joining says why.
        let _ = self.wake.write(1);
        if let Ok(drained) = self.drained.into_inner() {
            let _ = drained.recv_timeout(std::time::Duration::from(limit) + DEVICES_DOWN_TIMEOUT);
        }
        let down = set_down();
        let _ = self.devices_down.send(());
        let report =
            self.thread.join().unwrap_or_else(|_| Err(HostError::unsupported("the emulator's thread", "panicked")))?;
        down?;
        Ok(report)
    }
}

/// The bytes of a packet as the path hands them out: marked, and with its flipped bit. They are changed in `space`, for other packets may
/// have them too.
fn changed<'a>(packet: &Packet, bytes: &'a [u8], space: &'a mut [u8]) -> &'a [u8] {
    let is_marked = packet.marked_in.is_some();
    if !is_marked && packet.flipped_bit.is_none() {
        return bytes;
    }
    let changed = &mut space[..bytes.len()];
    changed.copy_from_slice(bytes);
    if is_marked {
        mark(changed);
    }
    if let Some(bit) = packet.flipped_bit {
        changed[bit as usize / 8] ^= 0x80 >> (bit % 8);
    }
    changed
}

/// What the emulator's thread does, from its start to its report.
fn run(mut emulator: ForwardingLoop, drained: &Sender<()>, devices_down: &Receiver<()>) -> Result<EmulatorReport> {
    emulator.prepare()?;
    emulator.forward()?;
    // The other side gone means that the process is on its way out: the counts below still hold.
    let _ = drained.send(());
    match devices_down.recv_timeout(DEVICES_DOWN_TIMEOUT) {
        Ok(()) | Err(RecvTimeoutError::Disconnected) => {}
        Err(RecvTimeoutError::Timeout) => {
            return Err(HostError::unsupported("the devices were to be set down", "it took over 10 s"));
        }
    }
    emulator.read_rest()?;
    emulator.report()
}
