//! The client's machine: it asks another machine for the server of its cell.

use super::clocks::{ClockComparison, Comparison, Reading, own_clock, own_wall_clock};
use super::control::{BUSY_LIMIT, Control, PROTOCOL, boot_id, notice_silence};
use super::messages::{FromClient, FromServer, ServedReport};
use super::token::{End, Token};
use crate::table::UnfinishedFile;
use crate::{Cell, CellError, ErrorKind, Flow};
use crosswind_host::{HostConfig, Readback};
use crosswind_transport::security::{Security, Trust};
use crosswind_transport::{Resumption, TcpReport, TransportError};
use crosswind_units::Duration as Span;
use crosswind_workload::{
    Clocks, FarServed, FarServer, Fault, OBSERVATION_BYTES, Served, ServerObservation, WorkloadError,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long the server may take to answer, but for a cell.
const LIMIT: Duration = Duration::from_secs(10);
/// How long it may take to end its connections.
const STOP_LIMIT: Duration = Duration::from_secs(90);
/// Clock readings before and after a cell; the shortest counts. And their time limit together.
const READINGS: u32 = 8;
const READINGS_LIMIT: Duration = Duration::from_secs(2);

/// What a cell knows of the network that is really there.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkReport {
    /// The server's address: of its control connection.
    pub server: SocketAddr,
    /// The client's address on it.
    pub client: IpAddr,
    /// The server's port of the measured transports.
    pub data_port: u16,
    /// Of the server's crosswind-cell.
    pub crosswind_cell: String,
    /// Of the server's running kernel.
    pub kernel: String,
    /// The shortest round trip of the control connection, nanoseconds.
    pub round_trip_ns: u64,
    /// How far the two machines' clocks are apart.
    pub clocks: ClockComparison,
    /// What the kernels counted of the TCP connections of the cell; null where there was none.
    pub tcp: Option<TcpOfBoth>,
}

/// What the two kernels counted of the TCP connections of a cell.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct TcpOfBoth {
    /// The client's.
    pub client: TcpReport,
    /// The server's.
    pub server: TcpReport,
}

impl NetworkReport {
    /// The client's and the server's retransmissions.
    pub fn retransmitted_segments(&self) -> [Option<u64>; 2] {
        [self.tcp.map(|tcp| tcp.client.retransmitted), self.tcp.map(|tcp| tcp.server.retransmitted)]
    }
}

/// The server of a cell on another machine.
pub struct RemoteServer {
    control: Mutex<Control>,
    /// Where it listens.
    pub address: SocketAddr,
    /// Of the client, on the way there.
    pub own_address: IpAddr,
    /// The name for connections of flows beside it.
    group: Vec<u8>,
    /// The certificate to trust.
    certificate_pem: Option<String>,
    origin_ns: u64,
    server: Peer,
    before: Reading,
    /// Where the server's capture is put.
    directory: Option<PathBuf>,
    /// The server's messages from now on are answers.
    is_stopping: AtomicBool,
    ended: Mutex<Option<Ended>>,
}

/// A request for a server.
struct Wanted {
    cell: serde_json::Value,
    capture: bool,
    numbered: bool,
    flow: u16,
    group: Option<Vec<u8>>,
}

impl Wanted {
    fn workload(cell: &Cell, numbered: bool) -> Result<Self, CellError> {
        Ok(Self { cell: for_the_server(cell)?, capture: cell.output.capture, numbered, flow: 0, group: None })
    }
}

/// The server's own description.
struct Peer {
    control_address: SocketAddr,
    version: String,
    kernel: String,
    boot_id: String,
}

/// Facts about an existing network; empty for others.
#[derive(Default)]
pub struct RemoteFacts {
    /// Of the network itself.
    pub report: Option<NetworkReport>,
    /// Settings of the server's machine.
    pub server: Option<Readback>,
    /// Packets missing from the captures.
    pub capture_missed: u64,
}

/// Facts after the server has stopped.
struct Ended {
    comparison: Comparison,
    tcp: Option<TcpReport>,
    host: Readback,
    capture_missed: u64,
}

impl RemoteServer {
    /// Asks the machine named in `cell` for its server. It listens when this returns.
    pub fn start(cell: &Cell) -> Result<Self, CellError> {
        Self::start_server(cell, Wanted::workload(cell, false)?)
    }

    /// Likewise, for a server that numbers received messages in its answers.
    pub fn start_numbered(cell: &Cell) -> Result<Self, CellError> {
        Self::start_server(cell, Wanted::workload(cell, true)?)
    }

    /// Asks the same machine for this flow's server, beside the workload.
    pub fn start_flow(&self, cell: &Cell, flow: &Flow, number: u16) -> Result<Self, CellError> {
        let group = Some(self.group.clone());
        let own = for_the_server_of_flow(cell, flow)?;
        Self::start_server(cell, Wanted { cell: own, capture: false, numbered: false, flow: number, group })
    }

    fn start_server(cell: &Cell, wanted: Wanted) -> Result<Self, CellError> {
        let name = cell.path.server.as_deref().unwrap_or_default();
        let token = Token::from_environment()?;
        let control_address = resolve(name, cell)?;
        let socket = TcpStream::connect_timeout(&control_address, LIMIT).map_err(|cause| {
            network(format!("cannot reach {name}: {}", in_words(&cause)))
                .hint("is crosswind serve running there, and does a firewall let TCP through to its port?")
        })?;
        let lost = |cause: &std::io::Error| lost(name, cause);
        let own_address = socket.local_addr().map_err(|e| lost(&e))?.ip();
        notice_silence(&socket).map_err(|e| lost(&e))?;
        let security = Security::new()
            .and_then(|own| own.expecting("localhost", Trust::Anything))
            .and_then(|own| own.client(&[PROTOCOL], Resumption::None))
            .map_err(|e| CellError::internal(e.to_string()))?;
        let (mut control, material) = Control::connect(socket, security, LIMIT).map_err(|cause| {
            network(format!("{name} is no server of Crosswind: {}", in_words(&cause)))
                .hint("give the address and the port that crosswind serve prints")
        })?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let hello = FromClient::Hello { version, proof: token.prove(End::Client, &material), group: wanted.group };
        control.send(&hello).map_err(|e| lost(&e))?;
        let server = match answer(&mut control, BUSY_LIMIT + LIMIT, name)? {
            FromServer::Hello { version, proof, kernel, boot_id } => {
                if !token.is_proven(End::Server, &material, &proof) {
                    return Err(network(format!("{name} does not know the token"))
                        .hint("is this the right machine? crosswind serve prints its token when it starts"));
                }
                control.trust();
                Peer { control_address, version, kernel, boot_id }
            }
            other => return Err(unexpected(name, &other)),
        };
        let before = read_clocks(&mut control, name)?;
        let Wanted { cell: asked, capture, numbered, flow, .. } = wanted;
        let serve = FromClient::Serve { cell: asked, capture, flow, numbered };
        control.send(&serve).map_err(|e| lost(&e))?;
        let (port, certificate_pem) = match answer(&mut control, LIMIT, name)? {
            FromServer::Listening { port, certificate_pem } => (port, certificate_pem),
            other => return Err(unexpected(name, &other)),
        };
        Ok(Self {
            control: Mutex::new(control),
            address: SocketAddr::new(control_address.ip(), port),
            own_address,
            group: token.group(&material),
            certificate_pem,
            origin_ns: 0,
            server,
            before,
            is_stopping: AtomicBool::new(false),
            directory: cell.output.directory.clone(),
            ended: Mutex::default(),
        })
    }

    /// The trust for secure connections to the server: its announced certificate.
    pub fn security(&self) -> Result<Security, TransportError> {
        let trusted = self.certificate_pem.clone().unwrap_or_default();
        Security::new()?.expecting("localhost", Trust::Roots(trusted))
    }

    /// With the cell's clock, which reads zero at `origin_ns`.
    pub fn set_origin(&mut self, origin_ns: u64) {
        self.origin_ns = origin_ns;
    }

    /// An error once the server has ended the cell, or is gone.
    pub fn check(&self) -> Result<(), CellError> {
        let Ok(mut control) = self.control.try_lock() else { return Ok(()) };
        if self.is_stopping.load(Ordering::Acquire) {
            return Ok(());
        }
        let name = self.server.control_address.to_string();
        match control.receive::<FromServer>(Duration::from_micros(1)) {
            Ok(None) => Ok(()),
            Ok(Some(message)) => Err(unexpected(&name, &message)),
            Err(cause) => Err(lost(&name, &cause)),
        }
    }

    /// Facts about the network and the server's host, after the server has stopped. `tcp` has the client kernel's
    /// counts.
    pub fn report(&self, tcp: Option<TcpReport>) -> RemoteFacts {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ended) = ended else { return RemoteFacts::default() };
        let report = NetworkReport {
            server: self.server.control_address,
            client: self.own_address,
            data_port: self.address.port(),
            crosswind_cell: self.server.version.clone(),
            kernel: self.server.kernel.clone(),
            round_trip_ns: ended.comparison.round_trip_ns(),
            clocks: ended.comparison.report(),
            tcp: tcp.zip(ended.tcp).map(|(client, server)| TcpOfBoth { client, server }),
        };
        RemoteFacts { report: Some(report), server: Some(ended.host), capture_missed: ended.capture_missed }
    }

    /// Ends the server; afterwards only `report` may be called.
    pub fn end(&self) -> Result<(), CellError> {
        self.stop_now().map(drop)
    }

    fn stop_now(&self) -> Result<FarServed, CellError> {
        let mut control = self.control.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_stopping.store(true, Ordering::Release);
        let name = self.server.control_address.to_string();
        let after = read_clocks(&mut control, &name)?;
        control.send(&FromClient::Stop {}).map_err(|e| lost(&name, &e))?;
        let report = match answer(&mut control, STOP_LIMIT, &name)? {
            FromServer::Served(report) => report,
            other => return Err(unexpected(&name, &other)),
        };
        let comparison = Comparison::new(self.before, after, boot_id() == self.server.boot_id);
        let observations =
            self.receive_observations(&mut control, &report, &comparison).map_err(|e| lost(&name, &e))?;
        if let (Some(bytes), Some(directory)) = (report.capture, &self.directory) {
            receive_capture(&mut control, bytes, directory, &name)?;
        }
        let ServedReport { socket, host, tcp, cpu_ns, capture_missed, .. } = report;
        let clocks = comparison.report();
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Ended { comparison, tcp, host, capture_missed });
        Ok(FarServed {
            served: Served { observations, readback: socket, cpu_ns },
            clocks: if clocks.one_way { Clocks::Compared } else { Clocks::Apart },
            uncertainty: Span::from_nanos(clocks.uncertainty_ns),
        })
    }

    fn receive_observations(
        &self,
        control: &mut Control,
        report: &ServedReport,
        comparison: &Comparison,
    ) -> std::io::Result<Vec<ServerObservation>> {
        let mut observations = Vec::new();
        while (observations.len() as u64) < report.seen {
            let part = control.receive_bytes(LIMIT)?.ok_or(std::io::ErrorKind::TimedOut)?;
            let records = part.chunks_exact(OBSERVATION_BYTES).filter_map(|record| record.try_into().ok());
            let before = observations.len();
            observations
                .extend(records.map(|record| {
                    ServerObservation::from_bytes(record, |ns| comparison.to_client(ns, self.origin_ns))
                }));
            if observations.len() == before {
                return Err(std::io::ErrorKind::InvalidData.into());
            }
        }
        Ok(observations)
    }
}

impl FarServer for RemoteServer {
    fn stop(&self) -> Result<FarServed, WorkloadError> {
        self.stop_now()
            .map_err(|error| WorkloadError::FarServer(Fault { message: error.to_string(), hint: error.hint }))
    }
}

/// Puts the server's capture into the directory of the cell.
fn receive_capture(control: &mut Control, bytes: u64, directory: &Path, name: &str) -> Result<(), CellError> {
    let (unfinished, mut file) = UnfinishedFile::create(directory, "server.pcapng")?;
    let mut received = 0;
    while received < bytes {
        let part = control.receive_bytes(LIMIT).and_then(|part| part.ok_or(std::io::ErrorKind::TimedOut.into()));
        let part = part.map_err(|e| lost(name, &e))?;
        file.write_all(&part).map_err(|e| CellError::disk("server.pcapng", &e))?;
        received += part.len() as u64;
    }
    unfinished.complete()
}

/// The addresses of `name`, in the cell's family if possible.
fn resolve(name: &str, cell: &Cell) -> Result<SocketAddr, CellError> {
    let found: Vec<SocketAddr> = name
        .to_socket_addrs()
        .map_err(|cause| {
            network(format!("cannot find {name}: {}", in_words(&cause)))
                .hint("give a name or an address, and a port: 192.0.2.7:9470 or [2001:db8::7]:9470")
        })?
        .collect();
    let wanted = |address: &&SocketAddr| address.is_ipv6() == cell.path.facts().ipv6;
    let first = found.iter().find(wanted).or(found.first());
    first.copied().ok_or_else(|| network(format!("{name} has no address")))
}

/// The cell without the client's own settings.
fn for_the_server(cell: &Cell) -> Result<serde_json::Value, CellError> {
    let mut value = serde_json::to_value(cell).map_err(|e| CellError::internal(e.to_string()))?;
    if let Some(cell) = value.as_object_mut() {
        cell.remove("output");
        cell.remove("placement");
        cell.remove("flows");
    }
    Ok(value)
}

/// The cell with a flow in the place of its workload.
fn for_the_server_of_flow(cell: &Cell, flow: &Flow) -> Result<serde_json::Value, CellError> {
    let host = HostConfig {
        congestion_control: flow.congestion_control.clone().or(cell.host.congestion_control.clone()),
        ..cell.host.clone()
    };
    for_the_server(&Cell { workload: flow.workload.clone(), host, ..cell.clone() })
}

/// The shortest of some readings.
fn read_clocks(control: &mut Control, name: &str) -> Result<Reading, CellError> {
    let until = Instant::now() + READINGS_LIMIT;
    let mut shortest: Option<Reading> = None;
    for _ in 0..READINGS {
        let left = own_clock();
        control.send(&FromClient::Clock {}).map_err(|e| lost(name, &e))?;
        let (came, left_again, server) = match answer(control, LIMIT, name)? {
            FromServer::Clock { came, left, wall } => (came, left, wall),
            other => return Err(unexpected(name, &other)),
        };
        let reading = Reading { left, came, left_again, came_back: own_clock(), walls: [own_wall_clock(), server] };
        if shortest.is_none_or(|shortest| reading.round_trip_ns() < shortest.round_trip_ns()) {
            shortest = Some(reading);
        }
        if Instant::now() > until {
            break;
        }
    }
    shortest.ok_or_else(|| CellError::internal("no clock was read"))
}

/// The server's next message. A refusal is an error.
fn answer(control: &mut Control, limit: Duration, name: &str) -> Result<FromServer, CellError> {
    match control.receive(limit) {
        Ok(Some(FromServer::Refused { kind, message, hint })) => Err(refused(name, kind, &message, hint)),
        Ok(Some(message)) => Ok(message),
        Ok(None) => Err(network(format!("{name} did not answer within {} s", limit.as_secs()))
            .hint("is the network still there? crosswind reach tries every transport")),
        Err(cause) => Err(lost(name, &cause)),
    }
}

fn refused(name: &str, kind: ErrorKind, message: &str, hint: Option<String>) -> CellError {
    CellError { hint, ..CellError::new(kind, format!("{name}: {message}")) }
}

fn unexpected(name: &str, message: &FromServer) -> CellError {
    match message {
        FromServer::Refused { kind, message, hint } => refused(name, *kind, message, hint.clone()),
        _ => network(format!("{name} does not keep to the protocol of Crosswind's control connections")),
    }
}

fn lost(name: &str, cause: &std::io::Error) -> CellError {
    network(format!("the connection to {name} is lost: {}", in_words(cause)))
        .hint("has crosswind serve ended there, or is the network down? What was finished is kept")
}

fn network(message: String) -> CellError {
    CellError::new(ErrorKind::Network, message)
}

/// The kernel's words, except those meaningless to a reader.
fn in_words(cause: &std::io::Error) -> String {
    match cause.kind() {
        std::io::ErrorKind::UnexpectedEof => "the other end closed it".into(),
        std::io::ErrorKind::TimedOut | std::io::ErrorKind::WouldBlock => "no answer".into(),
        _ => {
            let text = cause.to_string();
            let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(&text);
            text.split(" (os error").next().unwrap_or(text).to_owned()
        }
    }
}
