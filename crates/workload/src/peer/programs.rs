//! The programs of a cell's peers: started in their namespaces, and ended, whatever happens.

use super::config::Peer;
use super::job::{Job, Role};
use crate::context::Context;
use crate::error::WorkloadError;
use crate::log::Log;
use crate::returned_files::{OUTPUT_WORD, clean_directory};
use crate::warning::Warning;
use crosswind_host::program::{Heard, ProgramId, Programs, Streams, end_in_words};
use crosswind_host::{HostError, ProgramTimes};
use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

/// How long a peer may take to start.
pub const START_LIMIT: Duration = Duration::from_secs(30);
/// How long a server may take to end after its input has ended, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// What to do about a server that leaves its work to another process.
const IN_FOREGROUND: &str = "run it in the foreground";

/// What went wrong with a peer: a sentence whose subject it is.
#[derive(Debug)]
pub struct Failure {
    role: Role,
    what: String,
    hint: Option<String>,
    /// Whether what it wrote last helps; not, where it has said itself what is wrong.
    is_explained: bool,
}

impl Failure {
    /// A peer that did something wrong.
    pub fn new(role: Role, what: impl Into<String>) -> Self {
        Self { role, what: what.into(), hint: None, is_explained: false }
    }

    /// A peer that says itself that it cannot go on.
    pub fn said(role: Role, message: &str, hint: Option<String>) -> Self {
        Self { role, what: format!("cannot go on: {message}"), hint, is_explained: true }
    }
}

/// A workload with peers that cannot go on: because of a peer, or of something else.
#[derive(Debug)]
pub enum Stopped {
    ByPeer(Failure),
    Otherwise(WorkloadError),
}

impl<E: Into<WorkloadError>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Self::Otherwise(error.into())
    }
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Self {
        Self::ByPeer(failure)
    }
}

/// A running peer.
#[derive(Debug)]
pub struct Running {
    id: ProgramId,
    role: Role,
    input: Option<ChildStdin>,
    output: Option<ChildStdout>,
}

/// All peers of a cell.
pub struct PeerPrograms<'a> {
    context: &'a Context<'a>,
    /// None once they were ended.
    programs: Option<Programs>,
    logs: Vec<(Role, Log)>,
}

impl<'a> PeerPrograms<'a> {
    /// None yet.
    pub fn new(context: &'a Context<'a>) -> Result<Self, WorkloadError> {
        Ok(Self { context, programs: Some(Programs::new()?), logs: Vec::new() })
    }

    /// Starts a peer with its job.
    pub fn start(&mut self, role: Role, peer: &Peer) -> Result<Running, Stopped> {
        let (context, testbed) = (self.context, self.context.testbed);
        let (namespace, cpus) = match role {
            Role::Client => (&context.hosts.client, testbed.cpus.client()),
            Role::Server => (&context.hosts.server, testbed.cpus.server()),
        };
        let directory = self.file(role, "").map(|path| make_directory(&path).map(|()| path)).transpose()?;
        let server = context.server_address();
        let (address, port) = (server.ip().to_string(), server.port().to_string());
        if directory.is_none() && peer.command.iter().any(|argument| argument.contains(OUTPUT_WORD)) {
            let cause = "the cell has no output.directory, where its files would come to";
            return Err(HostError::unsupported("cannot fill in {output}", cause).hint("name one").into());
        }
        let output = directory.as_ref().map_or_else(String::new, |path| path.display().to_string());
        let filled_in = |argument: &String| {
            argument.replace("{address}", &address).replace("{port}", &port).replace(OUTPUT_WORD, &output)
        };
        let command: Vec<String> = peer.command.iter().map(filled_in).collect();
        let streams = Streams {
            input: Stdio::piped(),
            output: Stdio::piped(),
            errors: Stdio::piped(),
            foreground: false,
            largest_file: None,
        };
        let id = self.running()?.start(namespace, cpus, &command, context.environment()?, streams)?;
        let (input, output, errors) = self.running()?.pipes(id);
        if let Some(errors) = errors {
            let log = Log::start(errors, self.file(role, ".err")).map_err(cannot_log)?;
            self.logs.push((role, log));
        }
        let mut running = Running { id, role, input, output };
        let security = context.settings.security.as_deref();
        let workload = &context.workload;
        let job = Job::new(role, server, workload, security, context.virtual_time, directory.as_deref());
        if let Some(input) = &mut running.input {
            // A few kilobytes, of which a pipe holds 64. Who has ended before reading them is found to have ended.
            let _ = input.write_all(&job.to_line());
        }
        Ok(running)
    }

    /// Keeps what a program writes to its output, and says when a line of that has `text` in it.
    pub fn keep_output(&mut self, running: &mut Running, text: &str) -> Result<std::sync::mpsc::Receiver<()>, Stopped> {
        let Some(output) = running.output.take() else {
            return Err(HostError::unsupported("cannot read what a program writes", "its output is gone").into());
        };
        let path = self.file(running.role, ".out");
        let (log, found) = Log::watching(output, path, text.to_owned()).map_err(cannot_log)?;
        self.logs.push((running.role, log));
        Ok(found)
    }

    /// With the end of its flow, of one beside another workload, a client is asked to end.
    pub fn end_with_flow(&mut self, running: &Running) -> Result<(), Stopped> {
        if let Some(ending) = self.context.ending {
            ending.watch(Box::new(self.running()?.stopper(running.id)?));
        }
        Ok(())
    }

    /// Waits until a peer has written something, or has ended.
    pub fn hear(&mut self, running: &mut Running, buffer: &mut [u8], limit: Duration) -> Result<Heard, Stopped> {
        match &mut running.output {
            Some(output) => Ok(self.running()?.hear(running.id, output, buffer, limit)?),
            None => Ok(Heard::End),
        }
    }

    /// How a peer has ended; none where it has not within `limit`.
    pub fn wait(&mut self, running: &Running, limit: Duration) -> Result<Option<ExitStatus>, Stopped> {
        Ok(self.running()?.wait(running.id, limit)?)
    }

    /// Fails if a peer has ended by itself.
    pub fn check_running(&mut self, running: &Running) -> Result<(), Stopped> {
        match self.running()?.try_wait(running.id)? {
            None => Ok(()),
            Some(status) => {
                let what = format!("ended before its time, with {}", end_in_words(status));
                let hint = (running.role == Role::Server && status.success()).then_some(IN_FOREGROUND);
                Err(Failure { hint: hint.map(str::to_owned), ..Failure::new(running.role, what) }.into())
            }
        }
    }

    /// Ends a peer: its input first, which ends one that follows the protocol.
    pub fn stop(&mut self, running: &mut Running) -> Result<(), Stopped> {
        running.input = None;
        let programs = self.running()?;
        if programs.wait(running.id, GRACE)?.is_none() {
            programs.terminate(running.id, GRACE)?;
        }
        Ok(())
    }

    /// Begins to count how long their threads run and wait; none where nothing can be seen of them.
    pub fn begin_times(&self) -> Option<ProgramTimes> {
        ProgramTimes::begin(self.programs.as_ref()?, &self.context.hosts.server).ok()
    }

    /// Ends all of them with everything that they have started, and what they have written is in their files. Returns what a reader of the
    /// result should know.
    pub fn end(&mut self) -> Vec<Warning> {
        // Only then nobody writes into the logs any more.
        self.programs = None;
        let warnings = self.logs.drain(..).filter_map(|(role, log)| {
            let name = log.file_name()?.to_owned();
            Warning::of_output(role.name(), name, log.end().left_out)
        });
        let mut warnings: Vec<Warning> = warnings.collect();
        for directory in [Role::Client, Role::Server].into_iter().filter_map(|role| self.file(role, "")) {
            // One that a peer has left something in is kept.
            if std::fs::remove_dir(&directory).is_err() && directory.is_dir() {
                let left = clean_directory(&directory);
                warnings.extend(left.unwrap_or_else(|error| Some(Warning::DirectoryUnreadable(error.to_string()))));
            }
        }
        warnings
    }

    /// Likewise, and says what one of them did wrong, with its last words.
    pub fn explain(&mut self, stopped: Stopped) -> WorkloadError {
        self.programs = None;
        let logs = std::mem::take(&mut self.logs);
        let Failure { role, what, hint, is_explained } = match stopped {
            Stopped::Otherwise(error) => return error,
            Stopped::ByPeer(failure) => failure,
        };
        let peers = &self.context.peers;
        let peer = if role == Role::Client { &peers.client } else { &peers.server };
        let name = peer.as_ref().map_or("", |peer| peer.name.as_str());
        let mut message = format!("the {} {name} {what}", role.name());
        let mut kept = None;
        for (_, log) in logs.into_iter().filter(|(end, _)| *end == role) {
            kept = kept
                .or_else(|| log.file_name().map(|name| format!("the cell's directory keeps what it wrote, in {name}")));
            let words = log.end().words;
            if !is_explained && !words.is_empty() {
                message = format!("{message}: {words}");
            }
        }
        let hints: Vec<String> = hint.into_iter().chain(kept).collect();
        WorkloadError::Peer { message, hint: (!hints.is_empty()).then(|| hints.join("; ")) }
    }

    fn running(&mut self) -> Result<&mut Programs, HostError> {
        self.programs.as_mut().ok_or_else(|| HostError::unsupported("cannot use a program", "all have been ended"))
    }

    /// The path of something of one end in the cell's directory: "client" and an ending.
    fn file(&self, role: Role, ending: &str) -> Option<PathBuf> {
        Some(self.context.output?.join(format!("{}{ending}", role.name())))
    }
}

impl Running {
    /// Ends its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Its standard output, once.
    pub const fn take_output(&mut self) -> Option<ChildStdout> {
        self.output.take()
    }
}

fn make_directory(path: &std::path::Path) -> Result<(), WorkloadError> {
    std::fs::create_dir_all(path).map_err(|e| HostError::new(format!("cannot make {}", path.display()), e).into())
}

fn cannot_log(error: std::io::Error) -> WorkloadError {
    HostError::new("cannot keep what a program writes", error).into()
}
