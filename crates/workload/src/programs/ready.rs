//! Waiting until a program is ready.

use super::output_tail::tail_of;
use super::readiness::Readiness;
use super::{CellPrograms, LARGEST_FILE, Role, Sign, kept_output};
use crate::WorkloadError;
use crosswind_host::HostError;
use crosswind_host::program::{ProgramId, Streams};
use crosswind_transport::Carrier;
use std::fs;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often sockets and output are looked at.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
/// From the end of one question to the next.
const ASK_INTERVAL: Duration = Duration::from_millis(100);
/// How long an ended question may still take.
const GRACE: Duration = Duration::from_millis(500);
/// How long an ended program's output may be under way to us.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// The outcome.
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

impl CellPrograms<'_> {
    /// Waits until a program is ready, or cannot be any more.
    pub fn wait_until_ready(
        &mut self,
        program: ProgramId,
        sign: &mut Sign,
        limit: Duration,
    ) -> Result<Waited, WorkloadError> {
        let deadline = Instant::now() + limit;
        let pause = if matches!(sign.readiness(), Readiness::Run(_)) { ASK_INTERVAL } else { LOOK_INTERVAL };
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
            // It may have gone into the background: then another process is there, and becomes ready.
            if !status.success() || programs.processes()?.is_empty() {
                return self.after_its_end(program, sign, status);
            }
            thread::sleep(pause.min(left));
        }
    }

    /// Nothing is left to become ready. The last words may be under way.
    fn after_its_end(
        &mut self,
        program: ProgramId,
        sign: &mut Sign,
        status: ExitStatus,
    ) -> Result<Waited, WorkloadError> {
        if sign.log().is_some() {
            thread::sleep(LAST_OUTPUT);
        }
        let says_so = matches!(sign.readiness(), Readiness::Exit | Readiness::Log(_));
        let is_ready = says_so && status.success() && self.is_ready(program, sign, Instant::now())?;
        Ok(if is_ready { Waited::Ready } else { Waited::Ended(status) })
    }

    fn is_ready(&mut self, program: ProgramId, sign: &mut Sign, deadline: Instant) -> Result<bool, WorkloadError> {
        // Anything else was refused before.
        let port = |text: &str| text.parse().unwrap_or_default();
        match sign.readiness() {
            Readiness::Tcp(text) => Ok(self.is_listening(sign.role(), &[Carrier::Tcp], port(text))?),
            Readiness::Udp(text) => Ok(self.is_listening(sign.role(), &[Carrier::Udp], port(text))?),
            Readiness::Listens(port) => Ok(self.is_listening(sign.role(), &[Carrier::Tcp, Carrier::Udp], *port)?),
            Readiness::Exit => Ok(self.running()?.try_wait(program)?.is_some_and(|status| status.success())),
            Readiness::Log(_) => Ok(sign.is_written()),
            Readiness::Run(command) => {
                let (is_ready, words) = self.ask(sign.role(), command, deadline)?;
                sign.note_answer(words);
                Ok(is_ready)
            }
        }
    }

    /// Runs a shell command on one end's host. Whether it has ended with exit status 0, and its last words.
    fn ask(&mut self, role: Role, command: &str, deadline: Instant) -> Result<(bool, String), WorkloadError> {
        let arguments = ["sh", "-c", command].map(str::to_owned);
        let path = self.file(role, ".answer");
        let failed = |cause| HostError::new("cannot keep what a program writes", cause);
        let file = path.as_deref().map(kept_output::create).transpose().map_err(failed)?;
        let stream = || file.as_ref().map_or_else(|| Ok(Stdio::null()), |file| file.try_clone().map(Stdio::from));
        let streams = Streams {
            input: Stdio::null(),
            output: stream().map_err(failed)?,
            errors: stream().map_err(failed)?,
            foreground: false,
            largest_file: self.context.virtual_time.then_some(LARGEST_FILE),
        };
        let asked = self.launch(role, &arguments, streams, Vec::new())?;
        let programs = self.running()?;
        let left = deadline.saturating_duration_since(Instant::now());
        let status = match programs.wait(asked, left)? {
            Some(status) => status,
            None => programs.terminate(asked, GRACE)?,
        };
        let words = path.as_deref().map(tail_of).unwrap_or_default();
        if let Some(path) = path {
            // The next question has a file of its own.
            let _ = fs::remove_file(path);
        }
        Ok((status.success(), words))
    }
}
