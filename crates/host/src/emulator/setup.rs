//! The emulator's inputs and its report.

use super::punctuality::Punctuality;
use super::traffic::TrafficCounters;
use crate::clock::Clock;
use crate::tun::Tun;
use crosswind_ledger::{Ledger, PayloadClock, Recorder, Starvation, TimeHistogram};
use crosswind_path::PathConfig;
use crosswind_units::{Duration, Seed};
use std::sync::Arc;

/// The emulator's tasks and resources.
pub struct Setup {
    /// The emulated network.
    pub config: PathConfig,
    /// Where its chance comes from.
    pub seed: Seed,
    /// Shared by everything with timestamps in this cell.
    pub clock: Clock,
    /// The largest packet.
    pub mtu: usize,
    /// Processors to run on; empty for any.
    pub cpus: Vec<usize>,
    /// Processors where the hosts receive; empty if they are the emulator's own.
    pub host_cpus: Vec<usize>,
    /// Share of the processor's time for watching the clock, if other emulators run on it too.
    pub watch: Option<f64>,
    /// Packet records and captures.
    pub recorder: Recorder,
    /// First and last payload by connection.
    pub payload_clock: Arc<PayloadClock>,
    /// Counts how late every packet leaves.
    pub punctuality: Arc<Punctuality>,
    /// Counts every entering packet.
    pub traffic: Arc<TrafficCounters>,
}

/// The emulator's observations.
pub struct EmulatorReport {
    /// Counts by direction.
    pub ledger: Ledger,
    /// Packets still inside at the end: forward, reverse.
    pub queued: [u64; 2],
    /// Actual minus nominal departure.
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
    /// Its CPU time.
    pub cpu_ns: u64,
    /// The devices; dropping them removes them.
    pub(crate) _devices: Vec<Tun>,
}
