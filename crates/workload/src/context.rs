//! The inputs of every workload: hosts, connection settings, clock and progress.

use crate::WorkloadError;
use crate::allowance::Allowance;
use crate::ending::Ending;
use crate::peer::Peers;
use crate::progress::Progress;
use crate::served::FarServer;
use crate::warning::Warning;
use crosswind_host::{
    ClientStreams, Clock, HostError, KeyLogs, Pair, Testbed, Threads, Traffic, User, realtime, thread_cpu_ns,
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
    /// Both hosts, and the network between them.
    pub testbed: &'a Testbed,
    /// The pair of hosts that it is between.
    pub hosts: &'a Pair,
    /// Of both ends of every connection.
    pub settings: Settings,
    /// A directory for programs' output.
    pub output: Option<&'a Path>,
    /// The caller's streams for a client program.
    pub client_streams: Option<ClientStreams>,
    /// Whether all output of a client program is wanted, whatever its size.
    pub client_whole: bool,
    /// Programs in the place of client or server.
    pub peers: Peers,
    /// Files for programs' TLS secrets, if wanted.
    pub key_logs: Option<&'a KeyLogs>,
    /// The server, where it is on another machine.
    pub far_server: Option<&'a dyn FarServer>,
    /// As the server for a client on another machine: its allowance.
    pub allowance: Option<Arc<Allowance>>,
    /// Where servers listen, if the default is not it.
    pub port: Option<u16>,
    /// Called when clients have ended and servers still run.
    pub on_clients_ended: Option<&'a (dyn Fn() + Sync)>,
    /// Ends the clients of a flow beside another workload early.
    pub ending: Option<&'a Ending>,
    /// Called once by a flow of programs when they are ready: returns when the flow begins, false if it never does.
    pub begin: Option<&'a (dyn Fn() -> bool + Sync)>,
    /// The workload as its peers are told it.
    pub workload: Map<String, Value>,
    /// Whether the hosts' time is virtual.
    pub virtual_time: bool,
    /// When the cell has to be done.
    pub deadline: Option<Instant>,
    /// How far it is.
    pub progress: &'a Progress,
    pub(crate) resumptions: Resumptions,
    setup: OnceLock<Traffic>,
    threads: &'a Threads,
}

/// A thread's result and its CPU time.
pub type Timed<T> = (T, u64);

impl<'a> Context<'a> {
    /// Between the first two hosts, with the count of the hosts' threads' waits for a processor.
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
            on_clients_ended: None,
            ending: None,
            begin: None,
            workload: Map::new(),
            virtual_time: false,
            deadline: None,
            progress,
            resumptions: Resumptions::default(),
            setup: OnceLock::new(),
            threads,
        }
    }

    /// The port of a flow's server, beside another workload.
    pub(crate) fn port_of_flow(&self) -> Option<u16> {
        self.ending.and(self.port)
    }

    /// The variable for a program's key log, if wanted. `user`: as whom it runs.
    pub(crate) fn keys_for_program(&self, user: Option<&User>) -> Result<Vec<(String, OsString)>, HostError> {
        self.key_logs.map_or_else(|| Ok(Vec::new()), |logs| logs.environment(user))
    }

    /// The clients have ended, and servers still run.
    pub(crate) fn clients_ended(&self) {
        if let Some(call) = self.on_clients_ended {
            call();
        }
    }

    /// A program beside the workload is ready, and waits until all are and its flow begins; false if it never does.
    pub(crate) fn begin(&self) -> bool {
        self.begin.is_none_or(|begin| begin())
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
        (full > 0).then(|| Warning::sessions_not_resumed(full, asked))
    }
}
