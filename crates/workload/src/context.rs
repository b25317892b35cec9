//! What every workload is given: the hosts, the connections' settings, the clock, and where progress is reported.

use crate::WorkloadError;
use crate::allowance::Allowance;
use crate::ending::Ending;
use crate::peer::Peers;
use crate::progress::Progress;
use crate::served::FarServer;
use crate::warning::Warning;
use crosswind_host::{
    ClientStreams, Clock, HostError, KeyLogs, Pair, Testbed, Threads, Traffic, realtime, thread_cpu_ns,
};
use crosswind_path::Side;
use crosswind_transport::{Phases, Resumption, Settings};
use serde_json::{Map, Value};
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

/// The port that servers listen on; the namespace is new, so it is free.
const PORT: u16 = 7; // echo, RFC 862
/// The same where a peer takes part: browsers connect to no port of a well-known service, and not every server may listen on one.
const PEER_PORT: u16 = 4433;

/// What a workload runs on.
pub struct Context<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) hosts: &'a Pair,
    pub(crate) settings: Settings,
    pub(crate) output: Option<&'a Path>,
    pub(crate) client_streams: Option<ClientStreams>,
    /// Whether all that a client program prints is wanted, however much that is.
    pub(crate) client_whole: bool,
    pub(crate) peers: Peers,
    /// Where programs write the secrets of their connections, if they are to.
    key_logs: Option<&'a KeyLogs>,
    /// The server, where it is on another machine.
    pub(crate) far_server: Option<&'a dyn FarServer>,
    /// At that server: what it may do.
    pub(crate) allowance: Option<Arc<Allowance>>,
    /// Where servers listen, if the default is not it.
    port: Option<u16>,
    /// What ends its clients before they are done, of a flow beside another workload.
    pub(crate) ending: Option<&'a Ending>,
    /// The workload as its peers are told it.
    pub(crate) workload: Map<String, Value>,
    pub(crate) virtual_time: bool,
    /// When the cell has to be done.
    pub(crate) deadline: Option<Instant>,
    pub(crate) progress: &'a Progress,
    pub(crate) resumptions: Resumptions,
    setup: OnceLock<Traffic>,
    threads: &'a Threads,
}

/// The result of a thread and the CPU time that it took.
pub type Timed<T> = (T, u64);

impl<'a> Context<'a> {
    /// Two hosts, the settings of both ends of every connection, where progress is reported, and what counts how long the
    /// hosts' threads wait for a processor.
    pub fn new(testbed: &'a Testbed, settings: Settings, progress: &'a Progress, threads: &'a Threads) -> Self {
        Self {
            testbed,
            hosts: &testbed.pairs[0],
            settings,
            output: None,
            client_streams: None,
            client_whole: false,
            peers: Peers::default(),
            key_logs: None,
            far_server: None,
            allowance: None,
            port: None,
            ending: None,
            workload: Map::new(),
            virtual_time: false,
            deadline: None,
            progress,
            resumptions: Resumptions::default(),
            setup: OnceLock::new(),
            threads,
        }
    }

    /// With a directory for what programs print.
    #[must_use]
    pub fn with_output(mut self, directory: Option<&'a Path>) -> Self {
        self.output = directory;
        self
    }

    /// With streams of the caller's for a client program, or, without any, with all that it prints in its files if it is to be `whole`.
    #[must_use]
    pub const fn with_client_streams(mut self, streams: Option<ClientStreams>, whole: bool) -> Self {
        self.client_streams = streams;
        self.client_whole = whole;
        self
    }

    /// With `peers` and the workload as they are told it, in virtual time or not, and the `deadline` of the cell.
    #[must_use]
    pub fn with_peers(
        mut self,
        peers: Peers,
        workload: Map<String, Value>,
        virtual_time: bool,
        deadline: Instant,
    ) -> Self {
        self.peers = peers;
        self.workload = workload;
        self.virtual_time = virtual_time;
        self.deadline = Some(deadline);
        self
    }

    /// With files for the secrets of the connections of programs.
    #[must_use]
    pub const fn with_key_logs(mut self, logs: Option<&'a KeyLogs>) -> Self {
        self.key_logs = logs;
        self
    }

    /// With a `server` on another machine, which listens on `port`.
    #[must_use]
    pub const fn with_far_server(mut self, server: Option<&'a dyn FarServer>, port: u16) -> Self {
        self.far_server = server;
        self.port = Some(port);
        self
    }

    /// As the server of a client on another machine: it listens on `port`, and does what the allowance allows.
    #[must_use]
    pub fn with_allowance(mut self, allowance: Arc<Allowance>, port: u16) -> Self {
        self.allowance = Some(allowance);
        self.port = Some(port);
        self
    }

    /// Between another pair of hosts than the first.
    #[must_use]
    pub const fn between(mut self, hosts: &'a Pair) -> Self {
        self.hosts = hosts;
        self
    }

    /// As a flow beside another workload: its server listens on `port`, and its clients stop with `ending`.
    #[must_use]
    pub const fn with_ending(mut self, ending: &'a Ending, port: u16) -> Self {
        self.ending = Some(ending);
        self.port = Some(port);
        self
    }

    /// Where the server of a flow listens, beside another workload.
    pub(crate) fn port_of_flow(&self) -> Option<u16> {
        self.ending.and(self.port)
    }

    /// What one more program gets in its environment.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>, HostError> {
        self.key_logs.map_or_else(|| Ok(Vec::new()), KeyLogs::environment)
    }

    /// Whether its clients are to stop.
    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some_and(|ending| ending.at().is_some())
    }

    /// Whether they have been for so long.
    pub(crate) fn is_over_for(&self, time: crosswind_units::Duration) -> bool {
        let end = self.ending.and_then(Ending::at);
        end.is_some_and(|end| self.clock().now().saturating_since(end) >= time)
    }

    /// What counts how long the hosts' threads wait.
    pub(crate) const fn threads(&self) -> &Threads {
        self.threads
    }

    pub(crate) fn clock(&self) -> Clock {
        self.testbed.clock
    }

    /// Every connection that is kept is open: what the path has carried so far was for setting them up.
    pub(crate) fn setup_done(&self) {
        if self.setup.get().is_none() {
            let _ = self.setup.set(self.testbed.traffic().read());
        }
    }

    /// What the hosts had handed to the path when every kept connection was open.
    pub(crate) fn setup(&self) -> Option<Traffic> {
        self.setup.get().copied()
    }

    pub(crate) fn server_address(&self) -> SocketAddr {
        let port = self.port.unwrap_or(if self.peers.any() { PEER_PORT } else { PORT });
        SocketAddr::new(self.hosts.server_address, port)
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
                self.hosts.namespace(side).enter()?;
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
            .map_err(|e| HostError::new("cannot start a thread", e).into())
    }
}

/// Joins a thread; a panic becomes an error.
pub fn join<T>(handle: ScopedJoinHandle<'_, Result<Timed<T>, WorkloadError>>) -> Result<Timed<T>, WorkloadError> {
    handle.join().unwrap_or(Err(WorkloadError::Panicked))
}

/// Connections that were to resume a session, and those that did not.
#[derive(Debug, Default)]
pub struct Resumptions {
    asked: AtomicU64,
    set_up_in_full: AtomicU64,
}

impl Resumptions {
    pub(crate) fn count(&self, asked: Resumption, phases: &Phases) {
        let resumed = match asked {
            Resumption::None => return,
            Resumption::Session => phases.resumed,
            Resumption::EarlyData => phases.early_data,
        };
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.set_up_in_full.fetch_add(u64::from(!resumed), Ordering::Relaxed);
    }

    /// Unless all did.
    pub(crate) fn warning(&self) -> Option<Warning> {
        let (asked, full) = (self.asked.load(Ordering::Relaxed), self.set_up_in_full.load(Ordering::Relaxed));
        (full > 0).then_some(Warning::SessionsNotResumed { full, asked })
    }
}
