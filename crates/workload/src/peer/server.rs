//! A peer as server: started, awaited until it is ready, and watched until it is ended.

use super::config::Peer;
use super::events::Violation;
use super::programs::{Failure, PeerPrograms, Stopped};
use super::server_report::ServerFollower;
use crate::programs::readiness::{Readiness, seconds};
use crate::programs::ready::Waited;
use crate::programs::{Role, Running, Sign};
use crate::warning::Warning;
use crosswind_host::HostError;
use crosswind_host::program::Heard;
use std::io::Read;
use std::process::ChildStdout;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a server may take to end once it has closed its output.
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
    pub fn start(programs: &mut PeerPrograms<'_>, peer: &Peer) -> Result<Self, Stopped> {
        let filled_in = |ready: Readiness| ready.filled_in(|text| programs.filled_in(text));
        let mut sign = peer.readiness().map(|ready| Sign::new(Role::Server, filled_in(ready)));
        let search = sign.as_ref().and_then(|sign| sign.log().cloned());
        let running = programs.start(Role::Server, peer, search.as_ref())?;
        let mut server = Self { running, said: Arc::default(), implementation: None };
        if let Some(sign) = &mut sign {
            programs.all().keep_output(&mut server.running, search.as_ref())?;
            server.wait_for_sign(programs, sign, peer.start_timeout())?;
        } else {
            server.wait_for_event(programs, peer.start_timeout())?;
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

    fn wait_for_event(&mut self, programs: &mut PeerPrograms<'_>, limit: Duration) -> Result<(), Stopped> {
        let mut follower = ServerFollower::default();
        let deadline = Instant::now() + limit;
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
                Heard::Nothing => {
                    return Err(failure(&format!("did not print \"listening\" within {}", seconds(limit))));
                }
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

    fn wait_for_sign(&self, programs: &mut PeerPrograms<'_>, sign: &mut Sign, limit: Duration) -> Result<(), Stopped> {
        match programs.all().wait_until_ready(self.running.id, sign, limit)? {
            Waited::Ready | Waited::Over => programs.check_running(&self.running),
            Waited::Ended(_) => {
                programs.check_running(&self.running)?;
                Err(failure("has ended before it was ready"))
            }
            Waited::Late => {
                let (missing, limit) = (sign.missing(), seconds(limit));
                Err(failure(&format!("was not ready within {limit} ({}): {missing}", sign.readiness())))
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

fn no_thread(error: std::io::Error) -> HostError {
    HostError::new("cannot start a thread", error)
}
