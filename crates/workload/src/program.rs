//! Program: a client and a server that somebody else wrote, in the two namespaces.

use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::last_words::last_words;
use crate::measured::{Measured, ProgramEnd};
use crate::peer::is_open;
use crate::workload::{ConnectionNeeds, MIN_TIMEOUT_NS, Workload, WorkloadSettings, number};
use crate::{Sample, WorkloadError};
use crosswind_host::program::{ProgramId, Programs, Streams, end_in_words, output_file};
use crosswind_host::{ErrorKind, HostError, Testbed};
use crosswind_settings::SettingError;
use crosswind_transport::{Carrier, Features, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How long the client waits for a server whose port is not known. Nothing tells when it is ready, but that it has not ended.
const HEAD_START: Duration = Duration::from_millis(200);
/// How long a server may take to listen on its port: one that compiles itself first takes some seconds.
const LISTEN_LIMIT: Duration = Duration::from_secs(30);
/// How often it is looked whether it does.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// What a file may have in virtual time, where a program that writes without end does so in no time at all.
const LARGEST_FILE: u64 = 1 << 30;
/// How long a program may still write once it has been asked to end.
const GRACE: Duration = Duration::from_millis(500);
/// How long a client may take where the cell does not say: a test of several minutes, and no night for one that hangs.
const DEFAULT_TIMEOUT_NS: u64 = 600_000_000_000;
/// The most it may be: a client may be somebody at a terminal. A cell is over after a day.
const LONGEST_TIMEOUT_NS: u64 = 82_800_000_000_000;

/// A client and a server that somebody else wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Argument list run on the client, whose end is the cell's; {server} (or {address}) and {client} stand for addresses, {port} for
    /// the server's, and in a study {python} for the Python that runs it and {cell} for crosswind-cell.
    pub client: Vec<String>,
    /// Argument list run on the server, likewise; it is ended after the client.
    #[serde(default)]
    pub server: Option<Vec<String>>,
    /// Port of the server, TCP or UDP: the client starts once somebody listens there; without one, 0.2 s after the server.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
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
        Ok(())
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

    fn run(&self, context: &Context<'_>) -> Result<Measured, WorkloadError> {
        let testbed = context.testbed;
        let names = [(testbed.server_address, "server"), (testbed.client_address, "client")];
        let mut programs = Programs::with_names(names)?;
        let server = match &self.server {
            Some(arguments) => Some(self.start_server(&mut programs, context, arguments)?),
            None => None,
        };
        let mut sample = Sample::new(0, 0);
        sample.sent = Some(context.clock().now());
        let client = self.start(&mut programs, context, "client", &self.client)?;
        let ended = programs.wait(client, Duration::from_nanos(self.timeout_ns))?;
        let now = context.clock().now();
        // What the server did before it was asked to end.
        let server_ended = server.map(|server| programs.try_wait(server)).transpose()?.flatten();
        let status = ended.map_or_else(|| programs.terminate(client, GRACE), Ok)?;
        if let Some(server) = server {
            programs.terminate(server, GRACE)?;
        }
        sample.received = ended.map(|_| now);
        sample.outcome = match ended {
            None => Outcome::Timeout,
            Some(status) if status.success() => Outcome::Ok,
            Some(_) => Outcome::Error,
        };
        let mut measured = Measured { program: Some(ProgramEnd::from(status)), ..Measured::default() };
        if let Some(reason) = programs.unnamed() {
            measured.warnings.push(format!("programs do not find the hosts by the names server and client: {reason}"));
        }
        if sample.outcome != Outcome::Ok {
            let how = ended.map_or_else(
                || format!("did not end within {} s", Duration::from_nanos(self.timeout_ns).as_secs_f64()),
                |status| format!("ended with {}", end_in_words(status)),
            );
            let both = [("client", Some(how)), ("server", self.server.as_ref().map(|_| server_in_words(server_ended)))];
            measured.first_errors = HashMap::from([(sample.outcome, in_words(context, both))]);
        } else if let Some(status) = server_ended.filter(|status| !status.success()) {
            let how = server_in_words(Some(status));
            measured.warnings.push(in_words(context, [("server", Some(how)), ("client", None)]));
        }
        measured.samples.push(sample);
        Ok(measured)
    }
}

impl Program {
    /// Starts the server, and waits until it listens, or, where its port is not known, until it is likely to.
    fn start_server(
        &self,
        programs: &mut Programs,
        context: &Context<'_>,
        arguments: &[String],
    ) -> Result<ProgramId, WorkloadError> {
        let server = self.start(programs, context, "server", arguments)?;
        let Some(port) = self.port else {
            check_running(programs.wait(server, HEAD_START)?, context)?;
            return Ok(server);
        };
        let deadline = Instant::now() + LISTEN_LIMIT;
        let is_open = || Ok(is_open(&[Carrier::Tcp, Carrier::Udp], port));
        while !context.testbed.server.run(is_open)? {
            // One that ends well may have left another process behind, which will listen.
            check_running(programs.wait(server, LOOK_INTERVAL)?, context)?;
            if Instant::now() >= deadline {
                return Err(never_listened(port, context).into());
            }
        }
        Ok(server)
    }

    /// Starts the program of one end (`client`, `server`), with its output in files of the cell, or a client where the caller wants it.
    fn start(
        &self,
        programs: &mut Programs,
        context: &Context<'_>,
        end: &str,
        arguments: &[String],
    ) -> Result<ProgramId, WorkloadError> {
        let testbed = context.testbed;
        let file = |kind: &str| match context.output {
            Some(directory) => output_file(&directory.join(format!("{end}.{kind}"))),
            None => Ok(Stdio::null()),
        };
        let (namespace, cpus, given) = match end {
            "client" => (&testbed.client, testbed.cpus.client(), context.client_streams),
            _ => (&testbed.server, testbed.cpus.server(), None),
        };
        let largest_file = context.virtual_time.then_some(LARGEST_FILE);
        let streams = match given {
            Some(given) => given.open()?,
            None => Streams {
                input: Stdio::null(),
                output: file("out")?,
                errors: file("err")?,
                foreground: false,
                largest_file,
            },
        };
        Ok(programs.start(namespace, cpus, &self.filled_in(arguments, testbed), streams)?)
    }

    fn filled_in(&self, arguments: &[String], testbed: &Testbed) -> Vec<String> {
        let (server, client) = (testbed.server_address.to_string(), testbed.client_address.to_string());
        let with_addresses = arguments.iter().map(|argument| {
            argument.replace("{server}", &server).replace("{address}", &server).replace("{client}", &client)
        });
        match self.port {
            Some(port) => with_addresses.map(|argument| argument.replace("{port}", &port.to_string())).collect(),
            None => with_addresses.collect(),
        }
    }
}

/// An error where a server has ended, and not well.
fn check_running(ended: Option<ExitStatus>, context: &Context<'_>) -> Result<(), HostError> {
    let Some(status) = ended.filter(|status| !status.success()) else { return Ok(()) };
    let words = last_words(context.output, "server");
    let wrote = if words.is_empty() { String::new() } else { format!(": {words}") };
    Err(HostError {
        what: "the server program ended at once".into(),
        cause: format!("{}{wrote}", end_in_words(status)),
        kind: ErrorKind::Host,
        hint: Some("where the run is kept, all that it wrote is in server.err and server.out of the cell".into()),
    })
}

fn never_listened(port: u16, context: &Context<'_>) -> HostError {
    let words = last_words(context.output, "server");
    let wrote = if words.is_empty() { String::new() } else { format!("; it wrote: {words}") };
    HostError {
        what: format!("the server program does not listen on port {port}"),
        cause: format!("nobody did within {} s{wrote}", LISTEN_LIMIT.as_secs()),
        kind: ErrorKind::Host,
        hint: Some("give it the port that it is to listen on, as {port}".into()),
    }
}

/// How a server had ended when its client did.
fn server_in_words(ended: Option<ExitStatus>) -> String {
    ended.map_or_else(
        || "was still running".into(),
        |status| format!("had ended before the client, with {}", end_in_words(status)),
    )
}

/// How some programs ended, each with its last words: "the client program ended with exit status 1: no route; the server program had
/// ended before the client, with exit status 3: address in use". A server that was still running and wrote nothing is left out.
fn in_words(context: &Context<'_>, ends: [(&str, Option<String>); 2]) -> String {
    let sentences = ends.into_iter().filter_map(|(end, how)| {
        let (how, words) = (how?, last_words(context.output, end));
        let wrote = if words.is_empty() { String::new() } else { format!(": {words}") };
        let is_silent = words.is_empty() && how == server_in_words(None);
        (!is_silent).then(|| format!("the {end} program {how}{wrote}"))
    });
    sentences.collect::<Vec<_>>().join("; ")
}
