//! The emulator: passes packets from each host's device through the path to its peer's, on a thread of its own.
//!
//! The thread serves both directions and sleeps until a packet arrives or is due ([`ForwardingLoop`]). It never touches
//! the disk and takes no lock; its records go through a channel. At the end it lets the path run empty, waits until the
//! devices are down, reads the packets left in them, and reports its counts: every packet is then delivered, dropped or
//! still inside.

mod accounts;
mod alarm;
mod backlog;
mod devices;
mod forwarding;
mod in_kernel;
mod intake;
mod punctuality;
mod setup;
mod slab;
mod thread_time;
mod traffic;

pub use in_kernel::{KernelEmulator, KernelPath};
pub use punctuality::{Punctual, Punctuality};
pub use setup::{EmulatorReport, Setup};
pub use traffic::{Amount, Traffic, TrafficCounters};

use crate::clock::Clock;
use crate::error::{HostError, Result};
use crate::tun::Tun;
use crosswind_units::Duration;
use forwarding::{ForwardingLoop, RUNNING};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// How long the emulator waits for the devices to be set down at the end.
const DEVICES_DOWN_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// The running emulator.
pub struct Emulator {
    thread: thread::JoinHandle<Result<EmulatorReport>>,
    wake: Arc<EventFd>,
    /// Deadline for the path to be empty, nanoseconds of `clock`; `RUNNING` while the cell runs.
    drain_by: Arc<AtomicU64>,
    /// Gets a message when the path is empty. The mutex only makes the forwarder shareable; it is read once.
    drained: Mutex<Receiver<()>>,
    devices_down: Sender<()>,
    clock: Clock,
}

impl Emulator {
    /// Starts the emulator between each pair's client and server device.
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

/// The emulator's thread, from its start to its report.
fn run(mut emulator: ForwardingLoop, drained: &Sender<()>, devices_down: &Receiver<()>) -> Result<EmulatorReport> {
    emulator.prepare()?;
    emulator.forward()?;
    // A closed channel means the process is ending: the counts below still hold.
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
