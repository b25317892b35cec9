//! What every workload needs: the hosts, the transport's settings, the clock, and where progress is told.

use crate::WorkloadError;
use crosswind_host::{Clock, Testbed, Threads, Traffic, realtime, thread_cpu_ns};
use crosswind_ledger::TimeHistogram;
use crosswind_path::Side;
use crosswind_transport::{Phases, Resumption, Settings};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::{Scope, ScopedJoinHandle};

/// The port that servers listen on; the namespace is new, so it is free.
const PORT: u16 = 7; // echo, RFC 862

/// What a workload runs on.
pub struct Context<'a> {
    /// The two hosts.
    pub testbed: &'a Testbed,
    /// Settings of both ends of every connection.
    pub settings: Settings,
    /// How many connections took over what they should have.
    pub resumptions: Resumptions,
    /// What the hosts had handed to the path when every kept connection was open.
    pub setup: OnceLock<Traffic>,
    /// Where progress is told.
    pub progress: &'a Progress,
    /// Counts how long the hosts' threads wait for a processor.
    pub threads: &'a Threads,
}

/// The result of a thread and the CPU time that it took.
pub(crate) type Timed<T> = (T, u64);

/// Connections that were to resume a session, and those that did.
#[derive(Debug, Default)]
pub struct Resumptions {
    asked: AtomicU64,
    full: AtomicU64,
}

impl Resumptions {
    pub(crate) fn count(&self, asked: Resumption, phases: &Phases) {
        let taken = match asked {
            Resumption::None => return,
            Resumption::Session => phases.resumed,
            Resumption::EarlyData => phases.early_data,
        };
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.full.fetch_add(u64::from(!taken), Ordering::Relaxed);
    }

    /// In words, when some did not.
    pub fn warning(&self) -> Option<String> {
        let (asked, full) = (self.asked.load(Ordering::Relaxed), self.full.load(Ordering::Relaxed));
        (full > 0).then(|| format!("{full} of {asked} connections were set up in full: the server resumed no session"))
    }
}

impl Context<'_> {
    pub(crate) fn clock(&self) -> Clock {
        self.testbed.clock
    }

    /// Every connection that is kept is open: what the path has carried so far was setting up.
    pub(crate) fn setup_done(&self) {
        if self.setup.get().is_none() {
            let _ = self.setup.set(self.testbed.traffic.read());
        }
    }

    pub(crate) fn server_address(&self) -> SocketAddr {
        SocketAddr::new(self.testbed.server_address, PORT)
    }

    /// Starts a thread on the host that sends in the direction of `side`: in its namespace, on its processor.
    pub(crate) fn spawn<'scope, T: Send + 'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        side: Side,
        work: impl FnOnce() -> Result<T, WorkloadError> + Send + 'scope,
    ) -> Result<ScopedJoinHandle<'scope, Result<Timed<T>, WorkloadError>>, WorkloadError> {
        std::thread::Builder::new()
            .name(if side == Side::Forward { "client".into() } else { "server".into() })
            .spawn_scoped(scope, move || {
                self.testbed.namespace(side).enter()?;
                let cpus = &self.testbed.cpus;
                let own = if side == Side::Forward { cpus.client() } else { cpus.server() };
                if !own.is_empty() {
                    realtime::pin(own)?;
                }
                realtime::sharpen_timers();
                let _counted = self.threads.enter(side);
                let result = work()?;
                Ok((result, thread_cpu_ns()))
            })
            .map_err(|e| crosswind_host::HostError::new("cannot start a thread", e).into())
    }
}

/// Joins a thread; a panic becomes an error.
pub(crate) fn join<T>(
    handle: ScopedJoinHandle<'_, Result<Timed<T>, WorkloadError>>,
) -> Result<Timed<T>, WorkloadError> {
    handle.join().unwrap_or(Err(WorkloadError::Panicked))
}

/// How far a workload is; written by its threads, read by whoever shows it.
#[derive(Debug)]
pub struct Progress {
    done: AtomicU64,
    lost: AtomicU64,
    times: Mutex<TimeHistogram>,
}

/// Progress at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// Exchanges over, one way or the other.
    pub done: u64,
    /// Of these, not ok.
    pub lost: u64,
    /// Median time of those that were ok.
    pub median_ns: Option<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { done: AtomicU64::new(0), lost: AtomicU64::new(0), times: Mutex::new(TimeHistogram::new()) }
    }
}

impl Progress {
    pub(crate) fn exchange_done(&self, ok_ns: Option<u64>) {
        match (ok_ns, self.times.lock()) {
            (Some(ns), Ok(mut times)) => times.record(ns),
            (Some(_), Err(_)) => {}
            (None, _) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.done.fetch_add(1, Ordering::Relaxed);
    }

    /// How far it is now.
    pub fn snapshot(&self) -> Snapshot {
        let report = self.times.lock().map(|times| times.report()).ok();
        Snapshot {
            done: self.done.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            median_ns: report.filter(|report| report.n > 0).map(|report| report.p50),
        }
    }
}
