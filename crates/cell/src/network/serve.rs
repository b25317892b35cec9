//! The server's machine: one client is served.

use super::capture::{Captured, Filter, Running};
use super::clocks::{own_clock, own_wall_clock};
use super::control::{Control, PART};
use super::events::{Events, ListenEvent};
use super::messages::{FromClient, FromServer, ServedReport};
use crate::flow::MOST_FLOWS_AFAR;
use crate::{Cell, CellError, ErrorKind};
use crosswind_host::{Backend, Testbed, Threads};
use crosswind_transport::security::Security;
use crosswind_transport::{Settings, TcpTotals};
use crosswind_workload::{Allowance, Context, OBSERVATION_BYTES, Progress, Served};
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use serde::Deserialize;
use serde_json::Value;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A client without a cell is dropped after so long a silence.
const IDLE_LIMIT: Duration = Duration::from_secs(20);
/// A cell's polling interval for a message from its client, and for the clock.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// One cell's limits.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Seconds.
    pub seconds: f64,
    /// Bytes of messages, both directions together.
    pub bytes: u64,
    /// Connections, one after another or side by side.
    pub connections: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { seconds: 3600.0, bytes: 100_000_000_000, connections: 1_000_000 }
    }
}

/// One client, from its proof until it goes.
pub struct Session<'a> {
    pub events: &'a Events,
    pub limits: Limits,
    /// The measured transports': the workload's, followed by the flows'.
    pub data_port: u16,
    pub peer: SocketAddr,
    pub control: Control,
}

/// A cell's results at its end.
struct Done {
    served: Served,
    tcp: Arc<TcpTotals>,
    origin_ns: u64,
    captured: Option<Captured>,
}

/// How a cell ended.
#[derive(Debug, PartialEq, Eq)]
enum Ended {
    /// The client reports that it is done.
    Done,
    ClientGone,
    /// The cell wanted more than it may, in words.
    Limit(String),
}

impl Session<'_> {
    /// Serves the client until it goes.
    pub fn run(mut self) {
        loop {
            match self.control.receive(IDLE_LIMIT) {
                Ok(Some(FromClient::Clock {})) => {
                    if tell_the_time(&mut self.control).is_err() {
                        return;
                    }
                }
                Ok(Some(FromClient::Serve { cell, capture, flow, numbered })) => {
                    let port = self.data_port.checked_add(flow).filter(|_| usize::from(flow) <= MOST_FLOWS_AFAR);
                    let served = match port {
                        Some(port) => self.serve(cell, port, capture, numbered),
                        None => self.refuse(CellError::bad_cell(format!("there is no port for flow {flow}"))),
                    };
                    if served.is_err() {
                        return;
                    }
                }
                // Silence, a misplaced message, or the end.
                Ok(_) | Err(_) => return,
            }
        }
    }

    /// Serves one cell on a port. An error: the client is gone.
    fn serve(&mut self, cell: Value, port: u16, capture: bool, numbered: bool) -> io::Result<()> {
        let id = cell.get("id").and_then(Value::as_str).unwrap_or_default().chars().take(100).collect::<String>();
        let cell = match Cell::from_value(cell).and_then(|cell| check(&cell).map(|()| cell)) {
            Ok(cell) => cell,
            Err(error) => return self.refuse(error),
        };
        let name =
            |key: &str| cell.workload.settings_for_peers().get(key).and_then(Value::as_str).unwrap_or("").to_owned();
        let (peer, workload, transport) = (self.peer, name("kind"), name("transport"));
        self.events.say(&ListenEvent::CellStarted { peer, id: id.clone(), workload, transport });
        let started = Instant::now();
        let allowance = Allowance::new(self.limits.connections, self.limits.bytes);
        let allowance = Arc::new(if numbered { allowance.numbering_answers() } else { allowance });
        let (ended, result) = self.serve_workload(&cell, port, &allowance, capture);
        let outcome = match (&ended, &result) {
            (_, Err(error)) => error.to_string(),
            (Ended::Done, Ok(_)) => "done".to_owned(),
            (Ended::ClientGone, Ok(_)) => "the client went away".to_owned(),
            (Ended::Limit(limit), Ok(_)) => limit.clone(),
        };
        self.events.say(&ListenEvent::CellEnded {
            peer,
            id,
            outcome: outcome.clone(),
            seconds: started.elapsed().as_secs_f64(),
            connections: allowance.connections(),
            received_bytes: allowance.received(),
            sent_bytes: allowance.sent(),
        });
        match (ended, result) {
            (_, Err(error)) => self.refuse(error),
            (Ended::ClientGone, Ok(_)) => Err(io::ErrorKind::UnexpectedEof.into()),
            (Ended::Limit(_), Ok(_)) => {
                let hint = "the server's owner can raise it: crosswind serve --help";
                self.refuse(
                    CellError::new(ErrorKind::Network, format!("the server ended the cell: {outcome}")).hint(hint),
                )
            }
            (Ended::Done, Ok(done)) => self.report(done),
        }
    }

    fn serve_workload(
        &mut self,
        cell: &Cell,
        port: u16,
        allowance: &Arc<Allowance>,
        capture: bool,
    ) -> (Ended, Result<Done, CellError>) {
        let mut ended = Ended::Done;
        let filter = Filter { other: self.peer.ip(), port };
        let result = capture.then(|| Running::start(nameless_file()?, filter, "server")).transpose();
        let result = result.and_then(|running| {
            let done = self.try_serve(cell, port, allowance, &mut ended)?;
            Ok(Done { captured: running.map(Running::finish).transpose()?, ..done })
        });
        (ended, result)
    }

    fn try_serve(
        &mut self,
        cell: &Cell,
        port: u16,
        allowance: &Arc<Allowance>,
        ended: &mut Ended,
    ) -> Result<Done, CellError> {
        let local = self.control.local_address().map_err(|e| CellError::new(ErrorKind::Network, e.to_string()))?;
        let testbed = Testbed::of_this_machine(self.peer.ip(), local.ip())?;
        let (settings, certificate_pem) = self.settings(cell)?;
        let tcp = settings.tcp_totals.clone().unwrap_or_default();
        let (progress, threads) = (Progress::default(), Threads::sampled_by(None));
        let mut context = Context::new(&testbed, settings, &progress, &threads);
        (context.allowance, context.port) = (Some(Arc::clone(allowance)), Some(port));
        let limit = Duration::from_secs_f64(self.limits.seconds.min(cell.deadline_ns as f64 / 1e9));
        let control = &mut self.control;
        let served = cell.workload.serve(&context, &mut || {
            let listening = FromServer::Listening { port, certificate_pem: certificate_pem.clone() };
            *ended = match control.send(&listening) {
                Ok(()) => wait(control, limit, allowance),
                Err(_) => Ended::ClientGone,
            };
        })?;
        let Testbed { clock, .. } = testbed;
        Ok(Done { served, tcp, origin_ns: clock.origin_ns(), captured: None })
    }

    /// The settings for both ends of every connection, and the certificate for the client to trust.
    fn settings(&self, cell: &Cell) -> Result<(Settings, Option<String>), CellError> {
        let secure = cell.workload.connections().is_some_and(|needs| needs.transport.features().secure);
        let security = secure.then(Security::new).transpose().map_err(|e| CellError::internal(e.to_string()))?;
        let certificate_pem = security.as_ref().map(|security| security.certificate_pem().to_owned());
        let settings = Settings {
            security: security.map(Arc::new),
            only_from: Some(self.peer.ip()),
            tcp_totals: Some(Arc::default()),
            ..cell.connection_settings()
        };
        Ok((settings, certificate_pem))
    }

    fn report(&mut self, done: Done) -> io::Result<()> {
        let Done { served, tcp, origin_ns, captured } = done;
        let mut capture = captured.as_ref().map(|captured| captured.file.try_clone()).transpose()?;
        let capture_bytes = capture.as_mut().map(|file| file.seek(SeekFrom::End(0))).transpose()?;
        let report = ServedReport {
            seen: served.observations.len() as u64,
            socket: served.readback,
            host: crosswind_host::Readback::of_this_machine(),
            tcp: tcp.report(),
            cpu_ns: served.cpu_ns,
            capture: capture_bytes,
            capture_missed: captured.map_or(0, |captured| captured.missed),
        };
        self.control.send(&FromServer::Served(report))?;
        for part in served.observations.chunks(PART / OBSERVATION_BYTES) {
            let bytes: Vec<u8> = part.iter().flat_map(|one| one.to_bytes(origin_ns)).collect();
            self.control.send_bytes(&bytes)?;
        }
        let Some(mut capture) = capture else { return Ok(()) };
        capture.seek(SeekFrom::Start(0))?;
        let mut part = vec![0; PART];
        loop {
            match capture.read(&mut part)? {
                0 => return Ok(()),
                count => self.control.send_bytes(&part[..count])?,
            }
        }
    }

    fn refuse(&mut self, error: CellError) -> io::Result<()> {
        let CellError { kind, message, hint, .. } = error;
        self.control.send(&FromServer::Refused { kind, message, hint })
    }
}

/// A file without a name, gone with its last descriptor.
fn nameless_file() -> Result<File, CellError> {
    let directory = std::env::temp_dir();
    let flags = OFlag::O_TMPFILE | OFlag::O_RDWR | OFlag::O_CLOEXEC;
    let opened = open(&directory, flags, Mode::S_IRUSR | Mode::S_IWUSR);
    opened.map(File::from).map_err(|e| CellError::disk("a capture", &e.into()))
}

/// Waits until the client reports that it is done, is gone, or has used up its allowance.
fn wait(control: &mut Control, limit: Duration, allowance: &Allowance) -> Ended {
    let until = Instant::now() + limit;
    loop {
        match control.receive(LOOK_INTERVAL) {
            Ok(Some(FromClient::Clock {})) => {
                if tell_the_time(control).is_err() {
                    return Ended::ClientGone;
                }
            }
            Ok(Some(FromClient::Stop {})) if !allowance.is_exceeded() => return Ended::Done,
            Ok(Some(FromClient::Stop {}) | None) => {}
            Ok(Some(_)) | Err(_) => return Ended::ClientGone,
        }
        if allowance.is_exceeded() {
            return Ended::Limit("limit of bytes or connections".into());
        }
        if Instant::now() > until {
            return Ended::Limit(format!("limit of {} s", limit.as_secs()));
        }
    }
}

fn tell_the_time(control: &mut Control) -> io::Result<()> {
    let (came, wall) = (own_clock(), own_wall_clock());
    control.send(&FromServer::Clock { came, left: own_clock(), wall })
}

/// Only such cells have been checked against a server's limits.
fn check(cell: &Cell) -> Result<(), CellError> {
    match cell.path.backend {
        Backend::Network => Ok(()),
        _ => Err(CellError::bad_cell("only cells whose path.backend is network are served")),
    }
}
