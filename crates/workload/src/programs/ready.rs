//! Waiting until a program is ready.

use super::log::LogSearch;
use super::readiness::{LineSearch, Readiness};
use super::{CellPrograms, Role};
use crate::WorkloadError;
use crosswind_host::program::{ProgramId, Streams};
use crosswind_transport::Carrier;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// How often sockets and output are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// How long after the end of a command that asks for readiness the next one starts.
const ASK_INTERVAL: Duration = Duration::from_millis(100);
/// How long one that is ended may still take.
const GRACE: Duration = Duration::from_millis(500);
/// How long the output of an ended program may be under way to us.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// A sign of readiness to be seen, of one program.
pub struct Sign {
    role: Role,
    readiness: Readiness,
    log: Option<Arc<LogSearch>>,
    /// Output that goes to files past us.
    files: Vec<FileSearch>,
}

/// What came of waiting.
pub enum Waited {
    /// It is ready.
    Ready,
    /// It has ended before.
    Ended(ExitStatus),
    /// It was not within the limit.
    Late,
    /// The flow is over.
    Over,
}

struct FileSearch {
    path: PathBuf,
    read: u64,
    lines: LineSearch,
}

impl Sign {
    /// `readiness`, with its placeholders filled in.
    pub fn new(role: Role, readiness: Readiness) -> Self {
        let log = if let Readiness::Log(text) = &readiness { Some(Arc::new(LogSearch::new(text))) } else { None };
        Self { role, readiness, log, files: Vec::new() }
    }

    /// Searches output as it comes.
    pub const fn log(&self) -> Option<&Arc<LogSearch>> {
        self.log.as_ref()
    }

    /// Whose it is.
    pub const fn role(&self) -> Role {
        self.role
    }

    /// What is waited for.
    pub const fn readiness(&self) -> &Readiness {
        &self.readiness
    }

    pub(super) fn search_in(&mut self, path: &Path) {
        self.files.push(FileSearch { path: path.to_owned(), read: 0, lines: LineSearch::default() });
    }
}

impl FileSearch {
    /// Whether what has been written since has the text. A file that a program has taken away has nothing.
    fn finds(&mut self, text: &[u8]) -> bool {
        let mut bytes = Vec::new();
        let read = File::open(&self.path).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.read))?;
            file.read_to_end(&mut bytes)
        });
        self.read += read.unwrap_or(0) as u64;
        self.lines.finds(text, &bytes)
    }
}

impl CellPrograms<'_> {
    /// Waits until a program is ready, or cannot be any more.
    pub fn wait_until_ready(
        &mut self,
        program: ProgramId,
        sign: &mut Sign,
        limit: Duration,
    ) -> Result<Waited, WorkloadError> {
        let deadline = Instant::now() + limit;
        let pause = if matches!(sign.readiness, Readiness::Run(_)) { ASK_INTERVAL } else { LOOK_INTERVAL };
        loop {
            if self.context.is_over() {
                return Ok(Waited::Over);
            }
            if self.is_ready(program, sign, deadline)? {
                return Ok(Waited::Ready);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Waited::Late);
            }
            let programs = self.running()?;
            let Some(status) = programs.wait(program, pause.min(left))? else { continue };
            // It may have gone into the background: then another process is there, which becomes ready.
            if !status.success() || programs.processes()?.is_empty() {
                return self.after_its_end(program, sign, status);
            }
            thread::sleep(pause.min(left));
        }
    }

    /// Nothing is left of a program that was not ready before. Its last words may be under way.
    fn after_its_end(
        &mut self,
        program: ProgramId,
        sign: &mut Sign,
        status: ExitStatus,
    ) -> Result<Waited, WorkloadError> {
        if sign.log.is_some() {
            thread::sleep(LAST_OUTPUT);
        }
        let says_so = matches!(sign.readiness, Readiness::Exit | Readiness::Log(_));
        let is_ready = says_so && status.success() && self.is_ready(program, sign, Instant::now())?;
        Ok(if is_ready { Waited::Ready } else { Waited::Ended(status) })
    }

    fn is_ready(&mut self, program: ProgramId, sign: &mut Sign, deadline: Instant) -> Result<bool, WorkloadError> {
        // A port that is none after its placeholder was filled in was refused before.
        let port = |text: &str| text.parse().unwrap_or_default();
        match &sign.readiness {
            Readiness::Tcp(text) => Ok(self.is_listening(sign.role, &[Carrier::Tcp], port(text))?),
            Readiness::Udp(text) => Ok(self.is_listening(sign.role, &[Carrier::Udp], port(text))?),
            Readiness::Listens(port) => Ok(self.is_listening(sign.role, &[Carrier::Tcp, Carrier::Udp], *port)?),
            Readiness::Exit => Ok(self.running()?.try_wait(program)?.is_some_and(|status| status.success())),
            Readiness::Log(_) => {
                let Some(search) = &sign.log else { return Ok(false) };
                Ok(search.is_found() || sign.files.iter_mut().any(|file| file.finds(search.text())))
            }
            Readiness::Run(command) => self.ask(sign.role, command, deadline),
        }
    }

    /// Runs a command of a shell on one end's host. Whether it has ended with exit status 0.
    fn ask(&mut self, role: Role, command: &str, deadline: Instant) -> Result<bool, WorkloadError> {
        let arguments = ["sh", "-c", command].map(str::to_owned);
        let streams = Streams {
            input: Stdio::null(),
            output: Stdio::null(),
            errors: Stdio::null(),
            foreground: false,
            largest_file: None,
        };
        let asked = self.launch(role, &arguments, streams, Vec::new())?;
        let programs = self.running()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let status = match programs.wait(asked, left)? {
            Some(status) => status,
            None => programs.terminate(asked, GRACE)?,
        };
        Ok(status.success())
    }
}
