//! The TCP sockets of a cell's programs, as the kernel tells about them on the machine's clock.

use crate::flow::{numbered, port};
use crate::{Cell, CellError};
use crosswind_attribution::{SocketCounts, SocketTable};
use crosswind_host::inet_diag::DiagSocket;
use crosswind_host::{Clock, Pair, Qdisc, SocketDiag, Testbed, kernel_tick};
use crosswind_path::Side;
use crosswind_transport::TcpSample;
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};

/// How often the kernel is asked.
const INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// A connection that was busy for fewer steps of the kernel's clock is too short for its counts.
const FEWEST_TICKS: u64 = 10;
/// The most sockets with counts, and the most rows before the last one for each.
const MOST: usize = 100_000;

/// The programs' hosts, and what is known about their sockets.
pub struct ProgramSockets {
    clock: Clock,
    hosts: Vec<Host>,
    known: Mutex<Known>,
}

/// A host with programs.
struct Host {
    side: Side,
    own: IpAddr,
    other: IpAddr,
    diag: SocketDiag,
}

#[derive(Default)]
struct Known {
    /// By host and by the kernel's number.
    sockets: HashMap<(usize, u64), ProgramSocket>,
    /// Earlier states.
    before: Vec<TcpSample>,
}

struct ProgramSocket {
    seen: Instant,
    is_closed: bool,
    slowest_round_trip_us: u32,
    /// Congestion windows in bytes.
    windows: Vec<(Instant, u64)>,
    last: TcpSample,
}

impl ProgramSockets {
    /// Nothing where no program runs, where nobody asks why, in virtual time, whose kernel says more, and where this
    /// kernel does not tell.
    pub fn of(cell: &Cell, testbed: &Testbed, virtual_time: bool) -> Option<Self> {
        let is_asked = cell.output.spent && cell.output.directory.is_some();
        if virtual_time || !is_asked || !testbed.is_emulated() {
            return None;
        }
        let peers = cell.workload.peers();
        let runs_programs = |side: Side| {
            let peer = side.pick(&peers.client, &peers.server);
            cell.workload.connections().is_none() || peer.is_some()
        };
        let sides = || Side::BOTH.into_iter().filter(|&side| runs_programs(side));
        let hosts = testbed.pairs.iter().flat_map(|pair| sides().map(|side| Host::new(pair, side)));
        let hosts: Vec<Host> = hosts.collect::<Result<_, _>>().ok()?;
        (!hosts.is_empty()).then(|| Self { clock: testbed.clock, hosts, known: Mutex::default() })
    }

    /// Asks again and again, until `stopped` says so.
    pub fn watch(&self, stopped: &Receiver<()>) {
        while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
            self.ask();
        }
    }

    /// Asks about all sockets.
    pub fn ask(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        for (number, host) in self.hosts.iter().enumerate() {
            let mut sockets = Vec::new();
            // What was read before an error counts.
            let _ = host.diag.read(&mut sockets);
            let at = self.clock.now();
            for socket in sockets.into_iter().filter(|it| host.is_between_hosts(it)) {
                known.add(number, host.side, at, socket);
            }
        }
    }

    /// All states in order of time, the last one for each socket marked, without those of the cell's own flows.
    pub fn samples(&self, cell: &Cell) -> Vec<TcpSample> {
        let own = numbered(&cell.flows).filter(|(_, flow)| flow.workload.connections().is_some());
        let own: Vec<Option<u16>> = own.map(|(number, _)| Some(port(number))).collect();
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let last = known.sockets.values().map(|it| TcpSample { is_last: true, ..it.last.clone() });
        let mut all: Vec<TcpSample> = known.before.iter().cloned().chain(last).collect();
        all.retain(|it| !own.contains(&it.server_port));
        all.sort_by_key(|it| (it.at, it.host, it.client_port, it.server_port));
        all
    }

    /// The counts for attribution.
    pub fn counts(&self, cell: &Cell) -> SocketTable {
        let tick = kernel_tick();
        let has_fair_queue = cell.host.resolved().default_qdisc == Some(Qdisc::Fq);
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = known.sockets.iter().filter_map(|(&(host, _), socket)| {
            let last = &socket.last;
            let paces = |name: &str| has_fair_queue || name.starts_with("bbr");
            let is_counted =
                Duration::from_micros(last.info.busy_us) >= Duration::from_nanos(FEWEST_TICKS * tick.as_nanos());
            let limited = Duration::from_micros(last.info.receive_window_limited_us);
            Some(SocketCounts {
                client_port: last.client_port,
                server_port: last.server_port?,
                side: self.hosts[host].side,
                seen: socket.seen,
                until: (!socket.is_closed).then_some(last.at),
                paces: last.congestion_control.as_deref().map(paces),
                send_buffer: last.send_buffer_bytes.map(u64::from),
                receive_window_limited: is_counted.then_some(limited),
                send_buffer_limited: Duration::from_micros(last.info.send_buffer_limited_us),
                congestion_windows: socket.windows.as_slice().into(),
                tolerance: Duration::from_micros(socket.slowest_round_trip_us.into()) + tick,
            })
        });
        counts.collect()
    }
}

impl Host {
    fn new(pair: &Pair, side: Side) -> Result<Self, CellError> {
        let diag = pair.namespace(side).run(SocketDiag::connect)?;
        let (own, other) =
            side.pick((pair.client_address, pair.server_address), (pair.server_address, pair.client_address));
        Ok(Self { side, own, other, diag })
    }

    /// Whether a socket's packets cross the path.
    fn is_between_hosts(&self, socket: &DiagSocket) -> bool {
        socket.local.ip() == self.own && socket.remote.ip() == self.other
    }
}

impl Known {
    fn add(&mut self, host: usize, side: Side, at: Instant, socket: DiagSocket) {
        let (own, other) = (socket.local.port(), socket.remote.port());
        let (client_port, server_port) = side.pick((own, other), (other, own));
        let is_full = self.sockets.len() >= MOST;
        let known = self.sockets.get(&(host, socket.cookie));
        if known.is_none() && is_full {
            return;
        }
        let before = known.map(|it| &it.last);
        let last = TcpSample {
            at,
            host: side.pick("client", "server"),
            client_port,
            server_port: Some(server_port),
            is_last: false,
            info: socket.info,
            congestion_control: socket
                .congestion_control
                .map(Arc::from)
                .or_else(|| before.and_then(|it| it.congestion_control.clone())),
            send_buffer_bytes: socket.send_buffer.or_else(|| before.and_then(|it| it.send_buffer_bytes)),
        };
        let round_trip_us = socket.info.smoothed_round_trip_us;
        let entry = self.sockets.entry((host, socket.cookie)).or_insert_with(|| ProgramSocket {
            seen: at,
            is_closed: false,
            slowest_round_trip_us: 0,
            windows: Vec::new(),
            last: last.clone(),
        });
        if self.before.len() < MOST {
            if entry.seen < at {
                self.before.push(entry.last.clone());
            }
            let window = u64::from(socket.info.congestion_window) * u64::from(socket.info.segment_bytes);
            entry.windows.push((at, window));
        }
        entry.is_closed = socket.is_closed;
        entry.slowest_round_trip_us = entry.slowest_round_trip_us.max(round_trip_us);
        entry.last = last;
    }
}
