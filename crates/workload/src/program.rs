//! Program: a third-party client and server, in the two namespaces.

use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::measured::{Measured, ProgramEnd};
use crate::needs::ConnectionNeeds;
use crate::programs::output_tail::output_tail;
use crate::programs::returned_files::{OUTPUT_WORD, ReturnedFiles};
use crate::programs::{CellPrograms, Role, in_words, server_in_words, status_in_words};
use crate::warning::Warning;
use crate::workload::{MIN_TIMEOUT_NS, Runnable, Workload, WorkloadSettings, number};
use crate::{Sample, WorkloadError};
use crosswind_host::program::{Names, ProgramId, Programs};
use crosswind_host::{ErrorKind, HostError};
use crosswind_settings::SettingError;
use crosswind_transport::{Carrier, Features, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

/// The client's wait for a server with an unknown port. The only sign of readiness is that it has not ended.
const HEAD_START: Duration = Duration::from_millis(200);
/// The server's time limit for listening on its port: one that compiles itself first takes some seconds.
const LISTEN_LIMIT: Duration = Duration::from_secs(30);
/// How often it is looked whether it does.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long a program may still write once it has been asked to end.
const GRACE: Duration = Duration::from_millis(500);
/// The client's time limit if the cell has none: a test of several minutes, but not a night with a hung one.
const DEFAULT_TIMEOUT_NS: u64 = 600_000_000_000;
/// The most it may be: a client may be somebody at a terminal. A cell is over after a day.
const LONGEST_TIMEOUT_NS: u64 = 82_800_000_000_000;

/// Any two programs, as client and server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Argument list of the client; the cell ends when it ends; {server} (or {address}) and {client} stand for addresses, {port} for
    /// the server's, {output} for a directory that comes back with the cell, and in a study {python} for the Python that runs it and
    /// {cell} for crosswind-cell.
    pub client: Vec<String>,
    /// Argument list of the server, likewise; it is ended after the client.
    #[serde(default)]
    pub server: Option<Vec<String>>,
    /// Port of the server, TCP or UDP: the client starts once somebody listens there; without one, 0.2 s after the server.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// Resolver for names other than server and client: an address, or {server}; without one, no other name resolves.
    #[serde(default)]
    pub resolver: Option<String>,
    /// How long the client may take; then it is ended.
    #[serde(default = "number::<DEFAULT_TIMEOUT_NS>")]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = LONGEST_TIMEOUT_NS))]
    pub timeout_ns: u64,
}

impl WorkloadSettings for Program {
    const KIND: &'static str = "program";
    const TAKES_PEERS: bool = false;
    const SAMPLE: &'static str = "the client, from its start to its end";

    fn fits(_features: &Features) -> bool {
        false
    }

    fn check(&self) -> Result<(), SettingError> {
        let server = self.server.as_deref();
        for (key, arguments) in [("client", Some(self.client.as_slice())), ("server", server)] {
            if arguments.is_some_and(<[String]>::is_empty) {
                let hint = "give the program and its arguments";
                return Err(SettingError::new(key, "is an empty argument list", hint));
            }
            if arguments.into_iter().flatten().any(|argument| argument.contains('\0')) {
                let hint = "an argument is a text without the character 0";
                return Err(SettingError::new(key, "has an argument that no program can be given", hint));
            }
        }
        match self.resolver.as_deref() {
            None | Some("{server}" | "{address}" | "{client}") => Ok(()),
            Some(text) if text.parse::<IpAddr>().is_ok() => Ok(()),
            Some(text) => {
                let hint = "{address} is the server's, which may run one on port 53";
                Err(SettingError::new("resolver", format!("\"{text}\" is not an address"), hint))
            }
        }
    }
}

impl Workload for Program {
    fn connections(&self) -> Option<ConnectionNeeds> {
        None
    }

    fn timeout(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.timeout_ns))
    }

    fn exchanges(&self) -> u64 {
        1
    }

    fn traffic(&self) -> TrafficPattern {
        TrafficPattern::Unknown {}
    }
}

impl Runnable for Program {
    fn run(&self, context: &Context<'_>) -> Result<Measured, WorkloadError> {
        let arguments = self.server.iter().chain([&self.client]).flatten();
        let returned = ReturnedFiles::new(context, arguments)?;
        let resolver = self.resolver.as_ref().and_then(|text| self.filled_in(text, context, &returned).parse().ok());
        let own = context.hosts;
        let hosts = [(own.server_address, "server"), (own.client_address, "client")];
        let names = Names { hosts, resolver, hidden: context.output.map(Path::to_owned) };
        let mut ends = CellPrograms::new(context, Some(names))?;
        let measured = self.measure(context, &mut ends, &returned);
        // Their last output is known once nobody writes any more.
        let mut left_out = ends.end();
        left_out.extend(returned.bring()?);
        let Facts { sample, client, server_ended, unnamed } =
            measured.map_err(|stopped| stopped.into_error(context))?;
        if context.is_over() && !client.is_done() {
            return Ok(Measured { unfinished: 1, ..Measured::default() });
        }
        let (outcome, status) = (sample.outcome, client.status());
        let mut measured =
            Measured { samples: vec![sample], program: Some(ProgramEnd::from(status)), ..Measured::default() };
        if let Some(reason) = unnamed {
            measured.warnings.push(Warning::host_names_missing(&reason));
        }
        if outcome != Outcome::Ok {
            let both = [
                (Role::Client, Some(self.client_in_words(client))),
                (Role::Server, self.server.as_ref().map(|_| server_in_words(server_ended))),
            ];
            measured.first_errors = HashMap::from([(outcome, in_words(context, both))]);
        } else if let Some(status) = server_ended.filter(|status| !status.success()) {
            let how = server_in_words(Some(status));
            let ended = in_words(context, [(Role::Server, Some(how)), (Role::Client, None)]);
            measured.warnings.push(Warning::server_ended(ended));
        }
        measured.warnings.extend(left_out);
        Ok(measured)
    }
}

/// The results of a cell's programs.
struct Facts {
    sample: Sample,
    client: ClientEnd,
    /// How the server had ended before it was asked to, if it had.
    server_ended: Option<ExitStatus>,
    /// Why programs do not find the hosts by their names, if so.
    unnamed: Option<String>,
}

#[derive(Clone, Copy)]
enum ClientEnd {
    ByItself(ExitStatus),
    AtItsTimeout(ExitStatus),
}

impl ClientEnd {
    const fn status(self) -> ExitStatus {
        match self {
            Self::ByItself(status) | Self::AtItsTimeout(status) => status,
        }
    }

    fn is_done(self) -> bool {
        matches!(self, Self::ByItself(status) if status.success())
    }
}

/// Why there is nothing to measure.
enum Stopped {
    ServerEnded(ExitStatus),
    /// It ended well, and left no process behind that could listen.
    NobodyLeft {
        port: u16,
    },
    /// `told`: whether its command has the port.
    NeverListened {
        port: u16,
        told: bool,
    },
    Otherwise(WorkloadError),
}

impl<E: Into<WorkloadError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Otherwise(error.into())
    }
}

impl Program {
    fn measure(
        &self,
        context: &Context<'_>,
        ends: &mut CellPrograms<'_>,
        returned: &ReturnedFiles,
    ) -> Result<Facts, Stopped> {
        let all_filled_in = |arguments: &[String]| -> Vec<String> {
            arguments.iter().map(|text| self.filled_in(text, context, returned)).collect()
        };
        let server = match &self.server {
            Some(arguments) => Some(self.start_server(context, ends, &all_filled_in(arguments))?),
            None => None,
        };
        let mut sample = Sample::new(0, 0);
        sample.sent = Some(context.clock().now());
        let client = ends.start_alone(Role::Client, &all_filled_in(&self.client))?;
        ends.end_with_flow(client)?;
        let programs = ends.running()?;
        let ended = self.wait_for(client, programs, context)?;
        let now = context.clock().now();
        // The server's state before it was asked to end.
        let server_ended = server.map(|server| programs.try_wait(server)).transpose()?.flatten();
        let client = match ended {
            Some(status) => ClientEnd::ByItself(status),
            None => ClientEnd::AtItsTimeout(programs.terminate(client, GRACE)?),
        };
        if let Some(server) = server {
            programs.terminate(server, GRACE)?;
            if server_ended.is_some_and(|status| status.success()) {
                // It runs in the background, in a process it left behind.
                programs.terminate_all(GRACE)?;
            }
        }
        sample.received = ended.map(|_| now);
        sample.outcome = match client {
            ClientEnd::AtItsTimeout(_) => Outcome::Timeout,
            ClientEnd::ByItself(status) if status.success() => Outcome::Ok,
            ClientEnd::ByItself(_) => Outcome::Error,
        };
        let unnamed = programs.unnamed().map(ToString::to_string);
        Ok(Facts { sample, client, server_ended, unnamed })
    }

    /// The client's end by itself, or by SIGTERM with its flow; none if it has to be ended.
    fn wait_for(
        &self,
        client: ProgramId,
        programs: &mut Programs,
        context: &Context<'_>,
    ) -> Result<Option<ExitStatus>, HostError> {
        let deadline = Instant::now() + Duration::from_nanos(self.timeout_ns);
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = if context.ending.is_some() { left.min(GRACE) } else { left };
            let ended = programs.wait(client, limit)?;
            if ended.is_some() || limit == left || context.is_over() {
                return Ok(ended);
            }
        }
    }

    /// The server's port: a flow has one of its own.
    fn port(&self, context: &Context<'_>) -> Option<u16> {
        context.port_of_flow().or(self.port)
    }

    /// Starts the server, and waits until it listens, or, where its port is not known, until it is likely to.
    fn start_server(
        &self,
        context: &Context<'_>,
        ends: &mut CellPrograms<'_>,
        arguments: &[String],
    ) -> Result<ProgramId, Stopped> {
        let server = ends.start_alone(Role::Server, arguments)?;
        let Some(port) = self.port(context) else {
            check_running(ends.running()?.wait(server, HEAD_START)?)?;
            return Ok(server);
        };
        let deadline = Instant::now() + LISTEN_LIMIT;
        while !ends.is_listening(&[Carrier::Tcp, Carrier::Udp], port)? && !context.is_over() {
            let programs = ends.running()?;
            let ended = programs.wait(server, LOOK_INTERVAL)?;
            check_running(ended)?;
            if ended.is_some() {
                // It may have gone into the background: then another process exists, which will listen.
                if programs.processes()?.is_empty() {
                    return Err(Stopped::NobodyLeft { port });
                }
                thread::sleep(LOOK_INTERVAL);
            }
            if Instant::now() >= deadline {
                let told = self.server.iter().flatten().any(|argument| argument.contains("{port}"));
                return Err(Stopped::NeverListened { port, told });
            }
        }
        Ok(server)
    }

    fn client_in_words(&self, end: ClientEnd) -> String {
        match end {
            ClientEnd::ByItself(status) => format!("ended with {}", status_in_words(status)),
            ClientEnd::AtItsTimeout(_) => {
                format!("did not end within {} s", Duration::from_nanos(self.timeout_ns).as_secs_f64())
            }
        }
    }

    fn filled_in(&self, text: &str, context: &Context<'_>, returned: &ReturnedFiles) -> String {
        let hosts = context.hosts;
        let (server, client) = (hosts.server_address.to_string(), hosts.client_address.to_string());
        let port = self.port(context).map_or_else(|| "{port}".into(), |port| port.to_string());
        let words = [("{server}", server.as_str()), ("{address}", &server), ("{client}", &client), ("{port}", &port)];
        let filled = words.into_iter().fold(text.to_owned(), |text, (word, meaning)| text.replace(word, meaning));
        filled.replace(OUTPUT_WORD, &returned.place())
    }
}

/// An error where a server has ended, and not well.
fn check_running(ended: Option<ExitStatus>) -> Result<(), Stopped> {
    ended.filter(|status| !status.success()).map_or(Ok(()), |status| Err(Stopped::ServerEnded(status)))
}

impl Stopped {
    fn into_error(self, context: &Context<'_>) -> WorkloadError {
        let words = output_tail(context.output, "server");
        let wrote = |before: &str| if words.is_empty() { String::new() } else { format!("{before}: {words}") };
        let (what, cause, hint) = match self {
            Self::Otherwise(error) => return error,
            Self::ServerEnded(status) => (
                "the server program ended at once".into(),
                format!("{}{}", status_in_words(status), wrote("")),
                "where the run is kept, all that it wrote is in server.err and server.out of the cell",
            ),
            Self::NobodyLeft { port } => (
                "the server program ended before anybody listened".into(),
                format!("exit status 0, nobody listens on port {port}{}", wrote("; it wrote")),
                "run it in the foreground, or have it do its work in the background without ending there (nginx: -g 'daemon off;')",
            ),
            Self::NeverListened { port, told } => (
                format!("the server program does not listen on port {port}"),
                format!("nobody did within {} s{}", LISTEN_LIMIT.as_secs(), wrote("; it wrote")),
                if told {
                    "{port} in its command is that number: does it listen there, over TCP or UDP, and soon enough?"
                } else {
                    "give it the port that it is to listen on, as {port}"
                },
            ),
        };
        HostError { what, cause, kind: ErrorKind::Host, hint: Some(hint.into()) }.into()
    }
}
