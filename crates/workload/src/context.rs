//! The inputs of every workload: hosts, connection settings, clock and progress.

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

/// The servers' port; the namespace is new, so it is free.
const PORT: u16 = 7; // echo, RFC 862
/// The same for peers: browsers connect to no well-known service's port, and not every server may listen on one.
const PEER_PORT: u16 = 4433;

/// A workload's resources.
pub struct Context<'a> {
    pub(crate) testbed: &'a Testbed,
    pub(crate) hosts: &'a Pair,
    pub(crate) settings: Settings,
    pub(crate) output: Option<&'a Path>,
    pub(crate) client_streams: Option<ClientStreams>,
    /// Whether all output of a client program is wanted, whatever its size.
    pub(crate) client_whole: bool,
    pub(crate) peers: Peers,
    /// Files for programs' TLS secrets, if wanted.
    key_logs: Option<&'a KeyLogs>,
    /// The server, where it is on another machine.
    pub(crate) far_server: Option<&'a dyn FarServer>,
    /// That server's allowance.
    pub(crate) allowance: Option<Arc<Allowance>>,
    /// Where servers listen, if the default is not it.
    port: Option<u16>,
    /// Ends the clients of a flow beside another workload early.
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

/// A thread's result and its CPU time.
pub type Timed<T> = (T, u64);

impl<'a> Context<'a> {
    /// Two hosts, the settings for both ends of every connection, progress reports, and the count of the hosts'
    /// threads' waits for a processor.
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

    /// With a directory for programs' output.
    #[must_use]
    pub fn with_output(mut self, directory: Option<&'a Path>) -> Self {
        self.output = directory;
        self
    }

    /// With the caller's streams for a client program, or, without any, with `whole` output in its files.
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

    /// With files for programs' TLS secrets.
    #[must_use]
    pub const fn with_key_logs(mut self, logs: Option<&'a KeyLogs>) -> Self {
        self.key_logs = logs;
        self
    }

    /// With a `server` on another machine, on `port`.
    #[must_use]
    pub const fn with_far_server(mut self, server: Option<&'a dyn FarServer>, port: u16) -> Self {
        self.far_server = server;
        self.port = Some(port);
        self
    }

    /// As the server for a client on another machine: on `port`, within the allowance.
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

    /// The port of a flow's server, beside another workload.
    pub(crate) fn port_of_flow(&self) -> Option<u16> {
        self.ending.and(self.port)
    }

    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>, HostError> {
        self.key_logs.map_or_else(|| Ok(Vec::new()), KeyLogs::environment)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.ending.is_some_and(|ending| ending.at().is_some())
    }

    /// Whether they have been for so long.
    pub(crate) fn is_over_for(&self, time: crosswind_units::Duration) -> bool {
        let end = self.ending.and_then(Ending::at);
        end.is_some_and(|end| self.clock().now().saturating_since(end) >= time)
    }

    /// The count of the hosts' threads' waits.
    pub(crate) const fn threads(&self) -> &Threads {
        self.threads
    }

    pub(crate) fn clock(&self) -> Clock {
        self.testbed.clock
    }

    /// Every kept connection is open: the path's packets so far were for setup.
    pub(crate) fn setup_done(&self) {
        if self.setup.get().is_none() {
            let _ = self.setup.set(self.testbed.traffic().read());
        }
    }

    /// The hosts' traffic until every kept connection was open.
    pub(crate) fn setup(&self) -> Option<Traffic> {
        self.setup.get().copied()
    }

    pub(crate) fn server_address(&self) -> SocketAddr {
        let port = self.port.unwrap_or(if self.peers.any() { PEER_PORT } else { PORT });
        SocketAddr::new(self.hosts.server_address, port)
    }

    /// Starts a thread on the sending host of direction `side`: in its namespace, on its processor.
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

/// Connections meant to resume a session, and those that did not.
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
