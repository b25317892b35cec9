//! What the emulator is told, and what it reports.

use super::punctuality::Punctuality;
use super::traffic::TrafficCounters;
use crate::clock::Clock;
use crate::tun::Tun;
use crosswind_ledger::{Ledger, PayloadClock, Recorder, Starvation, TimeHistogram};
use crosswind_path::PathConfig;
use crosswind_units::{Duration, Seed};
use std::sync::Arc;

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
