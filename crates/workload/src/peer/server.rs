//! A peer as server: started, awaited until it is ready, and watched until it is ended.

use super::config::{Peer, Readiness};
use super::events::Violation;
use super::programs::{Failure, PeerPrograms, START_LIMIT, Stopped};
use super::server_report::ServerFollower;
use crate::context::Context;
use crate::programs::{Role, Running};
use crate::warning::Warning;
use crosswind_host::HostError;
use crosswind_host::program::Heard;
use crosswind_transport::Carrier;
use std::io::Read;
use std::process::ChildStdout;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The polling interval for a server outside the protocol: ready, or ended?
const LOOK_INTERVAL: Duration = Duration::from_millis(10);
const CHUNK: usize = 16 * 1024;

/// A running server.
#[derive(Debug)]
pub struct ServerPeer {
    running: Running,
    /// Its output since it listens; empty for a server outside the protocol.
    said: Arc<Mutex<Said>>,
    implementation: Option<String>,
}

#[derive(Debug, Default)]
struct Said {
    follower: ServerFollower,
    violation: Option<Violation>,
}

impl ServerPeer {
    /// Starts it, and returns when it is ready.
    pub fn start(
        programs: &mut PeerPrograms<'_>,
        context: &Context<'_>,
        peer: &Peer,
        carrier: Carrier,
    ) -> Result<Self, Stopped> {
        let running = programs.start(Role::Server, peer)?;
        let mut server = Self { running, said: Arc::default(), implementation: None };
        match peer.readiness() {
            Readiness::Protocol => server.wait_for_event(programs)?,
            Readiness::Port => {
                programs.all().keep_output(&mut server.running, "")?;
                server.wait_for_port(programs, context, carrier)?;
            }
            Readiness::Text(text) => {
                let found = programs.all().keep_output(&mut server.running, text)?;
                server.wait_for_text(programs, &found, text)?;
            }
        }
        Ok(server)
    }

    /// Its own name for itself.
    pub fn implementation(&self) -> Option<&str> {
        self.implementation.as_deref()
    }

    /// Fails if it has ended, or has reported failure, or has broken the protocol.
    pub fn check(&self, programs: &mut PeerPrograms<'_>) -> Result<(), Stopped> {
        check_said(&self.said.lock().unwrap_or_else(PoisonError::into_inner))?;
        programs.check_running(&self.running)
    }

    /// Ends it. Returns notes for readers of the result.
    pub fn stop(mut self, programs: &mut PeerPrograms<'_>) -> Result<Vec<Warning>, Stopped> {
        self.check(programs)?;
        programs.stop(&mut self.running)?;
        Ok(self.said.lock().unwrap_or_else(PoisonError::into_inner).follower.warnings().to_vec())
    }

    fn wait_for_event(&mut self, programs: &mut PeerPrograms<'_>) -> Result<(), Stopped> {
        let mut follower = ServerFollower::default();
        let deadline = Instant::now() + START_LIMIT;
        let mut buffer = vec![0; CHUNK];
        while follower.implementation().is_none() {
            let left = deadline.saturating_duration_since(Instant::now());
            match programs.all().hear(&mut self.running, &mut buffer, left)? {
                Heard::Bytes(count) => {
                    let violation = follower.handle_bytes(&buffer[..count]).err();
                    let said = Said { follower, violation };
                    check_said(&said)?;
                    follower = said.follower;
                }
                Heard::End => {
                    // It ends soon after closing its output, or it has closed that alone.
                    programs.wait(&self.running, LOOK_INTERVAL)?;
                    programs.check_running(&self.running)?;
                    return Err(failure("has closed its standard output before it printed \"listening\""));
                }
                Heard::Nothing => return Err(late("print \"listening\"")),
            }
        }
        self.implementation = follower.implementation().map(str::to_owned);
        *self.said.lock().unwrap_or_else(PoisonError::into_inner) = Said { follower, violation: None };
        let Some(output) = self.running.output.take() else { return Ok(()) };
        let said = Arc::clone(&self.said);
        let reading = move || follow(output, &said);
        std::thread::Builder::new().name("server peer".into()).spawn(reading).map_err(no_thread)?;
        Ok(())
    }

    fn wait_for_port(
        &self,
        programs: &mut PeerPrograms<'_>,
        context: &Context<'_>,
        carrier: Carrier,
    ) -> Result<(), Stopped> {
        let port = context.server_address().port();
        let deadline = Instant::now() + START_LIMIT;
        while !programs.all().is_listening(&[carrier], port)? {
            if Instant::now() >= deadline {
                return Err(late(&format!("listen on port {port}")));
            }
            programs.wait(&self.running, LOOK_INTERVAL)?;
            programs.check_running(&self.running)?;
        }
        Ok(())
    }

    fn wait_for_text(&self, programs: &mut PeerPrograms<'_>, found: &Receiver<()>, text: &str) -> Result<(), Stopped> {
        let deadline = Instant::now() + START_LIMIT;
        loop {
            match found.recv_timeout(LOOK_INTERVAL) {
                Ok(()) => return Ok(()),
                Err(RecvTimeoutError::Timeout) => programs.check_running(&self.running)?,
                Err(RecvTimeoutError::Disconnected) => {
                    programs.wait(&self.running, LOOK_INTERVAL)?;
                    programs.check_running(&self.running)?;
                    return Err(failure(&format!("has closed its output without a line with \"{text}\"")));
                }
            }
            if Instant::now() >= deadline {
                return Err(late(&format!("print a line with \"{text}\"")));
            }
        }
    }
}

/// Reads a server's output to its end.
fn follow(mut output: ChildStdout, said: &Mutex<Said>) {
    let mut buffer = vec![0; CHUNK];
    while let Ok(count @ 1..) = output.read(&mut buffer) {
        let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.violation.is_none() {
            said.violation = said.follower.handle_bytes(&buffer[..count]).err();
        }
    }
}

fn check_said(said: &Said) -> Result<(), Stopped> {
    if let Some(violation) = &said.violation {
        return Err(failure(&format!("broke the peer protocol: {violation}")));
    }
    match said.follower.failed() {
        Some((message, hint)) => Err(Failure::said(Role::Server, message, hint.clone()).into()),
        None => Ok(()),
    }
}

fn failure(what: &str) -> Stopped {
    Failure::new(Role::Server, what).into()
}

fn late(what: &str) -> Stopped {
    failure(&format!("did not {what} within {} s", START_LIMIT.as_secs()))
}

fn no_thread(error: std::io::Error) -> HostError {
    HostError::new("cannot start a thread", error)
}
