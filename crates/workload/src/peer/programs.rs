//! A cell's peer programs: started with their jobs, and their faults.

use super::config::Peer;
use super::job::Job;
use crate::context::Context;
use crate::error::{Fault, WorkloadError};
use crate::programs::returned_files::{OUTPUT_WORD, clean_directory, is_asked_for, nowhere_to_return_to};
use crate::programs::{CellPrograms, LogSearch, Role, Running, Surroundings};
use crate::warning::Warning;
use crosswind_host::HostError;
use crosswind_host::program::{Streams, end_in_words};
use std::io::Write;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

/// How long a server may take to end after its input has ended, and again after SIGTERM.
const GRACE: Duration = Duration::from_millis(500);

/// Advice about a server that leaves its work to another process.
const IN_FOREGROUND: &str = "run it in the foreground";

/// A peer's failure: a sentence with the peer as subject.
#[derive(Debug)]
pub struct Failure {
    role: Role,
    what: String,
    hint: Option<String>,
    /// Whether its last output helps; not if it has reported the fault itself.
    is_explained: bool,
}

impl Failure {
    /// A peer's fault.
    pub fn new(role: Role, what: impl Into<String>) -> Self {
        Self { role, what: what.into(), hint: None, is_explained: false }
    }

    /// A peer's own report of failure.
    pub fn said(role: Role, message: &str, hint: Option<String>) -> Self {
        Self { role, what: format!("cannot go on: {message}"), hint, is_explained: true }
    }
}

/// A workload with peers cannot go on: because of a peer, or for another reason.
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

/// All peers of a cell.
pub struct PeerPrograms<'a> {
    context: &'a Context<'a>,
    programs: CellPrograms<'a>,
}

impl<'a> PeerPrograms<'a> {
    /// None yet.
    pub fn new(context: &'a Context<'a>) -> Result<Self, WorkloadError> {
        Ok(Self { context, programs: CellPrograms::new(context, Surroundings::default())? })
    }

    /// All of them, as programs.
    pub const fn all(&mut self) -> &mut CellPrograms<'a> {
        &mut self.programs
    }

    /// A text with the server's address and port.
    pub fn filled_in(&self, text: &str) -> String {
        let server = self.context.server_address();
        text.replace("{address}", &server.ip().to_string()).replace("{port}", &server.port().to_string())
    }

    /// Starts a peer with its job. `search`: in its output.
    pub fn start(&mut self, role: Role, peer: &Peer, search: Option<&Arc<LogSearch>>) -> Result<Running, Stopped> {
        let context = self.context;
        let directory = self.programs.file(role, "").map(|path| make_directory(&path).map(|()| path)).transpose()?;
        let server = context.server_address();
        if directory.is_none() && is_asked_for(&peer.command) {
            return Err(nowhere_to_return_to().into());
        }
        let output = directory.as_ref().map_or_else(String::new, |path| path.display().to_string());
        let filled_in = |argument: &String| self.filled_in(argument).replace(OUTPUT_WORD, &output);
        let command: Vec<String> = peer.command.iter().map(filled_in).collect();
        let piped = Streams {
            input: Stdio::piped(),
            output: Stdio::piped(),
            errors: Stdio::piped(),
            foreground: false,
            largest_file: None,
        };
        let mut running = self.programs.start(role, &command, piped, search)?;
        let security = context.settings.security.as_deref();
        let workload = &context.workload;
        let job = Job::new(role, server, workload, security, context.virtual_time, directory.as_deref());
        if let Some(input) = &mut running.input {
            // A few kilobytes, less than a pipe's 64. A peer that ends before reading them is found to have ended.
            let _ = input.write_all(&job.to_line());
        }
        Ok(running)
    }

    /// How a peer has ended; none where it has not within `limit`.
    pub fn wait(&mut self, running: &Running, limit: Duration) -> Result<Option<ExitStatus>, Stopped> {
        Ok(self.programs.running()?.wait(running.id, limit)?)
    }

    /// Fails if a peer has ended by itself.
    pub fn check_running(&mut self, running: &Running) -> Result<(), Stopped> {
        match self.programs.running()?.try_wait(running.id)? {
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
        let programs = self.programs.running()?;
        if programs.wait(running.id, GRACE)?.is_none() {
            programs.terminate(running.id, GRACE)?;
        }
        Ok(())
    }

    /// Ends all of them. Returns notes for readers of the result.
    pub fn end(&mut self) -> Vec<Warning> {
        let mut warnings = self.programs.end();
        for directory in [Role::Client, Role::Server].into_iter().filter_map(|role| self.programs.file(role, "")) {
            // A directory with leftovers of a peer is kept.
            if std::fs::remove_dir(&directory).is_err() && directory.is_dir() {
                let left = clean_directory(&directory);
                warnings.extend(left.unwrap_or_else(|error| Some(Warning::directory_unreadable(error.to_string()))));
            }
        }
        warnings
    }

    /// Likewise, and explains a peer's fault, with its output's tail.
    pub fn explain(&mut self, stopped: Stopped) -> WorkloadError {
        let Failure { role, what, hint, is_explained } = match stopped {
            Stopped::Otherwise(error) => {
                self.programs.end();
                return error;
            }
            Stopped::ByPeer(failure) => failure,
        };
        let (words, file) = self.programs.end_with_words(role);
        let peers = &self.context.peers;
        let peer = if role == Role::Client { &peers.client } else { &peers.server };
        let name = peer.as_ref().map_or("", |peer| peer.name.as_str());
        let mut message = format!("the {} {name} {what}", role.name());
        for words in words.into_iter().filter(|_| !is_explained) {
            message = format!("{message}: {words}");
        }
        let kept = file.and_then(|path| Some(path.file_name()?.to_str()?.to_owned()));
        let kept = kept.map(|name| format!("the cell's directory keeps what it wrote, in {name}"));
        let hints: Vec<String> = hint.into_iter().chain(kept).collect();
        WorkloadError::Peer(Fault { message, hint: (!hints.is_empty()).then(|| hints.join("; ")) })
    }
}

fn make_directory(path: &std::path::Path) -> Result<(), WorkloadError> {
    std::fs::create_dir_all(path).map_err(|e| HostError::new(format!("cannot make {}", path.display()), e).into())
}
