//! Program: a client and a server that somebody else wrote, in the two namespaces.

use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::last_words::last_words;
use crate::measured::{Measured, ProgramEnd};
use crate::workload::{ConnectionNeeds, MAX_TIMEOUT_NS, MIN_TIMEOUT_NS, Workload, WorkloadSettings, number};
use crate::{Sample, WorkloadError};
use crosswind_host::program::{ProgramId, Programs, Streams, end_in_words, output_file};
use crosswind_host::{ErrorKind, HostError, Testbed};
use crosswind_settings::SettingError;
use crosswind_transport::{Features, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// How long the client waits for a server to get ready. Nothing else tells when it is, but that it has not ended.
const HEAD_START: Duration = Duration::from_millis(200);
/// How long a program may still write once it has been asked to end.
const GRACE: Duration = Duration::from_millis(500);
/// How long a client may take where the cell does not say: a test of several minutes, and no night for one that hangs.
const DEFAULT_TIMEOUT_NS: u64 = 600_000_000_000;

/// A client and a server that somebody else wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Argument list run on the client, whose end is the cell's; {server} and {client} stand for addresses, and in a study {python}
    /// for the Python that runs it and {cell} for crosswind-cell.
    pub client: Vec<String>,
    /// Argument list run on the server, likewise; it is ended after the client.
    #[serde(default)]
    pub server: Option<Vec<String>>,
    /// How long the client may take; then it is ended.
    #[serde(default = "number::<DEFAULT_TIMEOUT_NS>")]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = MAX_TIMEOUT_NS))]
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
        let mut programs = Programs::new()?;
        let server = match &self.server {
            Some(arguments) => Some(start_server(&mut programs, context, arguments)?),
            None => None,
        };
        let mut sample = Sample::new(0, 0);
        sample.sent = Some(context.clock().now());
        let client = start(&mut programs, context, "client", &self.client)?;
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

/// Starts the server, and waits until it is likely to be ready.
fn start_server(
    programs: &mut Programs,
    context: &Context<'_>,
    arguments: &[String],
) -> Result<ProgramId, WorkloadError> {
    let server = start(programs, context, "server", arguments)?;
    match programs.wait(server, HEAD_START)? {
        Some(status) if !status.success() => {
            let words = last_words(context.output, "server");
            let wrote = if words.is_empty() { String::new() } else { format!(": {words}") };
            Err(HostError {
                what: "the server program ended at once".into(),
                cause: format!("{}{wrote}", end_in_words(status)),
                kind: ErrorKind::Host,
                hint: Some("its output is kept beside the cell's result, in server.err and server.out".into()),
            }
            .into())
        }
        _ => Ok(server),
    }
}

/// Starts the program of one end (`client`, `server`), with its output in files of the cell.
fn start(
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
    let (namespace, cpus) = match end {
        "client" => (&testbed.client, testbed.cpus.client()),
        _ => (&testbed.server, testbed.cpus.server()),
    };
    let arguments = with_addresses(arguments, testbed);
    let streams = Streams { input: Stdio::null(), output: file("out")?, errors: file("err")? };
    Ok(programs.start(namespace, cpus, &arguments, streams)?)
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

fn with_addresses(arguments: &[String], testbed: &Testbed) -> Vec<String> {
    let (server, client) = (testbed.server_address.to_string(), testbed.client_address.to_string());
    arguments.iter().map(|argument| argument.replace("{server}", &server).replace("{client}", &client)).collect()
}
