//! Program: a third-party client and server, in the two namespaces.

use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::measured::{Measured, ProgramEnd};
use crate::needs::ConnectionNeeds;
use crate::programs::output_tail::output_tail;
use crate::programs::placeholders::Placeholders;
use crate::programs::readiness::{FORMS, LONGEST_START_TIMEOUT_NS, Readiness, is_usual, seconds, start_timeout_ns};
use crate::programs::ready::Waited;
use crate::programs::{CellPrograms, PerEnd, Role, Sign, Surroundings, in_words, server_in_words, status_in_words};
use crate::warning::Warning;
use crate::workload::{MIN_TIMEOUT_NS, Runnable, Workload, WorkloadSettings, number};
use crate::{Sample, WorkloadError};
use crosswind_host::program::{Names, ProgramId, Programs};
use crosswind_host::{ErrorKind, HostError, User};
use crosswind_settings::SettingError;
use crosswind_transport::{Features, Outcome};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// The client's wait for a server with an unknown port. The only sign of readiness is that it has not ended.
const HEAD_START: Duration = Duration::from_millis(200);
/// How long a program may still write once it has been asked to end.
const GRACE: Duration = Duration::from_millis(500);
/// The client's time limit if the cell has none: a test of several minutes, but not a night with a hung one.
const DEFAULT_TIMEOUT_NS: u64 = 600_000_000_000;
/// The most it may be: a client may be somebody at a terminal. A cell is over after a day.
const LONGEST_TIMEOUT_NS: u64 = 82_800_000_000_000;

/// Advice about a server without successor.
const IN_FOREGROUND: &str =
    "run it in the foreground, or have it do its work in the background without ending there (nginx: -g 'daemon off;')";

/// Any two programs, as client and server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Argument list of the client; the cell ends when it ends; {server} (or {address}) and {client} stand for addresses, {port} for
    /// the server's port and {port:NAME} for others, {cert}, {key} and {ca} for files of a certificate, {output} for a directory that
    /// comes back with the cell, and in a study {python} for the Python that runs it and {cell} for crosswind-cell.
    pub client: Vec<String>,
    /// Argument list of the server, likewise; it is ended after the client.
    #[serde(default)]
    pub server: Option<Vec<String>>,
    /// Port of the server, TCP or UDP: unless ready says otherwise, the client starts once somebody listens there.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub port: Option<u16>,
    /// When the server is ready and the client starts: tcp:PORT or udp:PORT (somebody listens), exit (it has ended with exit status 0), log:TEXT (a
    /// line of its output has the text) or run:COMMAND (which ends with exit status 0 on its host). Of a flow without a server, its client's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default_help" = "somebody listens on port; without one, 0.2 s after the server"))]
    pub ready: Option<String>,
    /// How long it may take until it is ready.
    #[serde(default = "start_timeout_ns", skip_serializing_if = "is_usual")]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = LONGEST_START_TIMEOUT_NS), extend("default_help" = "30 s"))]
    pub start_timeout_ns: u64,
    /// Environment variables of both, each as NAME=VALUE, with placeholders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<String>>,
    /// Environment variables of the client alone, over those of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_env: Option<Vec<String>>,
    /// Environment variables of the server alone, over those of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_env: Option<Vec<String>>,
    /// User as whom both run, for a server that refuses root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// User as whom the client runs, over that of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default_help" = "user"))]
    pub client_user: Option<String>,
    /// User as whom the server runs, over that of both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default_help" = "user"))]
    pub server_user: Option<String>,
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
        if let Some(Err(problem)) = self.ready.as_deref().map(Readiness::parse) {
            return Err(SettingError::new("ready", problem, FORMS));
        }
        for (key, variables) in [("env", &self.env), ("client_env", &self.client_env), ("server_env", &self.server_env)]
        {
            for variable in variables.iter().flatten() {
                let name = variable.split_once('=').map_or("", |(name, _)| name);
                if name.is_empty() || variable.contains('\0') {
                    let hint = "NAME=VALUE, as LC_ALL=C; several are several texts";
                    return Err(SettingError::new(key, format!("{variable:?} is no variable"), hint));
                }
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
        let users = PerEnd { client: self.user(Role::Client)?, server: self.user(Role::Server)? };
        let texts: Vec<&String> = self.texts().collect();
        let words = Placeholders::new(context, &texts, self.port(context), &users)?;
        let resolver = self.resolver.as_ref().and_then(|text| words.fill_in(Role::Client, text).parse().ok());
        let own = context.hosts;
        let hosts = [(own.server_address, "server"), (own.client_address, "client")];
        let names = Names { hosts, resolver, hidden: context.output.map(Path::to_owned) };
        let environments = PerEnd::of(|role| self.environment(role, &words));
        let mut ends = CellPrograms::new(context, Surroundings { names: Some(names), environments, users })?;
        let notes: Vec<Warning> = ends.notes().collect();
        let measured = self.measure(context, &mut ends, &words);
        // Their last output is known once nobody writes any more.
        let mut left_out = ends.end();
        left_out.extend(words.into_returned().bring()?);
        let Facts { sample, client, server_ended } = match measured {
            Ok(facts) => facts,
            // The flow was over before it began.
            Err(Stopped::Over) => return Ok(Measured::default()),
            Err(stopped) => return Err(stopped.into_error(context)),
        };
        if context.is_over() && !client.is_done() {
            return Ok(Measured { unfinished: 1, ..Measured::default() });
        }
        let (outcome, status) = (sample.outcome, client.status());
        let mut measured =
            Measured { samples: vec![sample], program: Some(ProgramEnd::from(status)), ..Measured::default() };
        measured.warnings.extend(notes);
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
    EndedAtOnce(Role, ExitStatus),
    /// This end's program ended well, and left no process to become ready.
    NobodyLeft(Role, Readiness),
    /// `told`: whether its command has the expected port.
    NeverReady {
        role: Role,
        ready: Readiness,
        missing: String,
        limit: Duration,
        told: bool,
    },
    /// The flow was over before its programs were ready.
    Over,
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
        words: &Placeholders,
    ) -> Result<Facts, Stopped> {
        let all_filled_in = |role: Role, arguments: &[String]| -> Vec<String> {
            arguments.iter().map(|text| words.fill_in(role, text)).collect()
        };
        let server = match &self.server {
            Some(arguments) => {
                Some(self.start_server(context, ends, words, &all_filled_in(Role::Server, arguments))?)
            }
            None => None,
        };
        // A lone program with a sign is there for the others.
        let mut sign = match server {
            None => self.sign(Role::Client, context, words)?,
            Some(_) => None,
        };
        if sign.is_none() && !context.begin() {
            return Err(Stopped::Over);
        }
        let mut sample = Sample::new(0, 0);
        sample.sent = Some(context.clock().now());
        let client = ends.start_alone(Role::Client, &all_filled_in(Role::Client, &self.client), sign.as_mut())?;
        ends.end_with_flow(client)?;
        if let Some(sign) = &mut sign {
            self.wait_until_ready(ends, client, sign)?;
            if !context.begin() {
                return Err(Stopped::Over);
            }
        }
        let programs = ends.running()?;
        let ended = self.wait_for(client, programs, context)?;
        let now = context.clock().now();
        context.clients_ended();
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
        Ok(Facts { sample, client, server_ended })
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

    /// As whom one end runs, if not as the caller.
    fn user(&self, role: Role) -> Result<Option<User>, HostError> {
        let own = match role {
            Role::Client => &self.client_user,
            Role::Server => &self.server_user,
        };
        own.as_ref().or(self.user.as_ref()).map(|name| User::find(name)).transpose()
    }

    /// One end's variables: those of both, then its own, of which the last counts.
    fn environment(&self, role: Role, words: &Placeholders) -> Vec<(String, String)> {
        let own = match role {
            Role::Client => &self.client_env,
            Role::Server => &self.server_env,
        };
        let variables = self.env.iter().chain(own).flatten().filter_map(|text| text.split_once('='));
        variables.map(|(name, value)| (name.to_owned(), words.fill_in(role, value))).collect()
    }

    /// The server's port: a flow has one of its own.
    fn port(&self, context: &Context<'_>) -> Option<u16> {
        context.port_of_flow().or(self.port)
    }

    /// Starts the server, and waits until it is ready, or, where there is no sign, until it is likely to be.
    fn start_server(
        &self,
        context: &Context<'_>,
        ends: &mut CellPrograms<'_>,
        words: &Placeholders,
        arguments: &[String],
    ) -> Result<ProgramId, Stopped> {
        let Some(mut sign) = self.sign(Role::Server, context, words)? else {
            let server = ends.start_alone(Role::Server, arguments, None)?;
            match ends.running()?.wait(server, HEAD_START)? {
                Some(status) if !status.success() => return Err(Stopped::EndedAtOnce(Role::Server, status)),
                _ => return Ok(server),
            }
        };
        let server = ends.start_alone(Role::Server, arguments, Some(&mut sign))?;
        self.wait_until_ready(ends, server, &mut sign)?;
        Ok(server)
    }

    /// One end's sign of readiness, if it has any.
    fn sign(&self, role: Role, context: &Context<'_>, words: &Placeholders) -> Result<Option<Sign>, WorkloadError> {
        let said = self.ready.as_deref().and_then(|text| Readiness::parse(text).ok());
        let of_port = || self.port(context).filter(|_| role == Role::Server).map(Readiness::Listens);
        let Some(ready) = said.map(|said| said.filled_in(|text| words.fill_in(role, text))).or_else(of_port) else {
            return Ok(None);
        };
        match &ready {
            Readiness::Tcp(port) | Readiness::Udp(port) if port.parse::<u16>().is_err() => {
                let cause = "the cell has no port";
                Err(HostError::unsupported(format!("cannot wait for {ready}"), cause).hint("set workload.port").into())
            }
            _ => Ok(Some(Sign::new(role, ready))),
        }
    }

    fn wait_until_ready(
        &self,
        ends: &mut CellPrograms<'_>,
        program: ProgramId,
        sign: &mut Sign,
    ) -> Result<(), Stopped> {
        let limit = Duration::from_nanos(self.start_timeout_ns);
        let waited = ends.wait_until_ready(program, sign, limit)?;
        let (role, ready) = (sign.role(), sign.readiness().clone());
        match waited {
            Waited::Ready => Ok(()),
            Waited::Over => Err(Stopped::Over),
            Waited::Ended(status) if status.success() => Err(Stopped::NobodyLeft(role, ready)),
            Waited::Ended(status) => Err(Stopped::EndedAtOnce(role, status)),
            Waited::Late => {
                let told = self.server.iter().flatten().any(|argument| argument.contains("{port}"));
                Err(Stopped::NeverReady { role, ready, missing: sign.missing(), limit, told })
            }
        }
    }

    /// All texts with placeholders, the server's first: named ports are numbered in this order.
    fn texts(&self) -> impl Iterator<Item = &String> {
        let variables = [&self.env, &self.client_env, &self.server_env].into_iter().flatten().flatten();
        self.server.iter().flatten().chain(&self.client).chain(variables).chain(&self.ready)
    }

    fn client_in_words(&self, end: ClientEnd) -> String {
        match end {
            ClientEnd::ByItself(status) => format!("ended with {}", status_in_words(status)),
            ClientEnd::AtItsTimeout(_) => {
                format!("did not end within {} s", Duration::from_nanos(self.timeout_ns).as_secs_f64())
            }
        }
    }
}

impl Stopped {
    fn into_error(self, context: &Context<'_>) -> WorkloadError {
        let role = match &self {
            Self::EndedAtOnce(role, _) | Self::NobodyLeft(role, _) | Self::NeverReady { role, .. } => *role,
            Self::Over | Self::Otherwise(_) => Role::Server,
        };
        let (end, words) = (role.name(), output_tail(context.output, role.name()));
        let wrote = |before: &str| if words.is_empty() { String::new() } else { format!("{before}: {words}") };
        let (what, cause, hint) = match self {
            Self::Otherwise(error) => return error,
            Self::Over => (format!("the {end} program was ended"), "its flow was over".into(), String::new()),
            Self::EndedAtOnce(_, status) => (
                format!("the {end} program ended at once"),
                format!("{}{}", status_in_words(status), wrote("")),
                format!("where the run is kept, all that it wrote is in {end}.err and {end}.out of the cell"),
            ),
            Self::NobodyLeft(_, Readiness::Listens(port)) => (
                format!("the {end} program ended before anybody listened"),
                format!("exit status 0, nobody listens on port {port}{}", wrote("; it wrote")),
                IN_FOREGROUND.into(),
            ),
            Self::NobodyLeft(_, ready) => (
                format!("the {end} program ended before it was ready"),
                format!("exit status 0, {}{}", ready.missing(), wrote("; it wrote")),
                IN_FOREGROUND.into(),
            ),
            Self::NeverReady { ready: Readiness::Listens(port), limit, told, .. } => (
                format!("the {end} program does not listen on port {port}"),
                format!("nobody did within {}{}", seconds(limit), wrote("; it wrote")),
                if told {
                    "{port} in its command is that number: does it listen there, over TCP or UDP, and soon enough (--start-timeout)?"
                } else {
                    "give it the port that it is to listen on, as {port}"
                }
                .into(),
            ),
            Self::NeverReady { ready, missing, limit, .. } => (
                format!("the {end} program did not become ready ({ready})"),
                format!("within {} {missing}{}", seconds(limit), wrote("; it wrote")),
                "where it only takes longer, give it a longer start_timeout (--start-timeout)".into(),
            ),
        };
        HostError { what, cause, kind: ErrorKind::Host, hint: Some(hint) }.into()
    }
}
