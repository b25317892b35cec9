//! A peer as client: started, followed until it has finished, and ended.

use super::client_report::{ClientFollower, ClientReport, Expected, Notice};
use super::config::Peer;
use super::events::Violation;
use super::programs::{Failure, PeerPrograms, Stopped};
use super::server::ServerPeer;
use super::times::Times;
use crate::context::Context;
use crate::programs::readiness::seconds;
use crate::programs::{Role, Running};
use crate::warning::Warning;
use crosswind_host::Traffic;
use crosswind_host::program::{Heard, end_in_words};
use crosswind_units::Duration as Span;
use std::time::Duration;

/// How long a client may take to end after it has finished.
const END_LIMIT: Duration = Duration::from_secs(5);
/// How long one may still report once it is asked to end with its flow.
const GRACE: Span = Span::from_millis(500);
/// How long it may take to notice its end once it has closed its output.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);
/// How often the server is looked after while the client is silent.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);
const CHUNK: usize = 64 * 1024;

/// A client's task.
pub struct Task {
    /// The expected report.
    pub expected: Expected,
    /// How long it may take from when it is ready.
    pub limit: Duration,
    /// Whether it sets up all connections before its first exchange.
    pub keeps_connections: bool,
}

/// A client that has done it, or as much as it could until its flow ended.
pub struct Done {
    /// None if the client had not started by then.
    pub report: Option<ClientReport>,
    pub is_finished: bool,
    /// The hosts' traffic until the first exchange began, if it was connection setup only.
    pub setup: Option<Traffic>,
}

/// Runs a client to its end, or to its flow's: then its report so far counts. `server`: the cell's, if it is a peer
/// too.
pub fn run(
    programs: &mut PeerPrograms<'_>,
    context: &Context<'_>,
    peer: &Peer,
    task: Task,
    server: Option<&ServerPeer>,
    times: &mut Times<'_>,
) -> Result<Done, Stopped> {
    let clock = context.clock();
    let mut follower = ClientFollower::new(task.expected);
    if task.keeps_connections {
        context.testbed.traffic().keep_first();
    }
    let mut running = programs.start(Role::Client, peer, None)?;
    running.input = None;
    programs.all().end_with_flow(running.id)?;
    let (mut is_ready, mut is_finished) = (false, false);
    let mut deadline = std::time::Instant::now() + peer.start_timeout();
    let mut buffer = vec![0; CHUNK];
    'following: while !is_finished && !context.is_over_for(GRACE) {
        let left = deadline.saturating_duration_since(std::time::Instant::now());
        if left.is_zero() {
            if context.is_over() {
                break;
            }
            return Err(if is_ready { late(task.limit) } else { never_ready(peer.start_timeout()) });
        }
        let heard = programs.all().hear(&mut running, &mut buffer, left.min(LOOK_INTERVAL))?;
        match heard {
            Heard::Bytes(count) => follower.handle_bytes(clock.now(), &buffer[..count]).map_err(broken)?,
            Heard::End => follower.handle_end(clock.now()).map_err(broken)?,
            Heard::Nothing => {}
        }
        while let Some(notice) = follower.poll_notice() {
            match notice {
                Notice::Ready => {
                    is_ready = true;
                    deadline = std::time::Instant::now() + task.limit;
                    times.begin(programs.all());
                }
                Notice::ExchangeDone(took_ns) => context.progress.exchange_done(took_ns),
                Notice::Finished => is_finished = true,
                Notice::Failed { .. } if context.is_over() => break 'following,
                Notice::Failed { message, hint } => {
                    return Err(Failure::said(Role::Client, &message, hint).into());
                }
            }
        }
        times.look();
        if heard == Heard::End && !is_finished {
            if context.is_over() {
                break;
            }
            return Err(ended_early(programs, &running)?);
        }
        if let Some(server) = server {
            server.check(programs)?;
        }
    }
    times.finish();
    if !is_finished {
        return Ok(Done { report: follower.into_report_so_far().map_err(broken)?, is_finished, setup: None });
    }
    let mut report = follower.into_report().map_err(broken)?;
    report.warnings.extend(outlived(programs, &running)?);
    let first_sent = report.samples.iter().filter_map(|sample| sample.sent).min();
    let traffic = context.testbed.traffic();
    let setup = first_sent.filter(|_| task.keeps_connections).and_then(|first_sent| traffic.before(first_sent));
    Ok(Done { report: Some(report), is_finished, setup })
}

/// A warning if a finished client does not end; an error if it ends badly.
fn outlived(programs: &mut PeerPrograms<'_>, running: &Running) -> Result<Option<Warning>, Stopped> {
    match programs.wait(running, END_LIMIT)? {
        None => Ok(Some(Warning::client_outlived(END_LIMIT.as_secs()))),
        Some(status) if status.success() => Ok(None),
        Some(status) => {
            let what = format!("ended with {} after it had finished", end_in_words(status));
            Err(Failure::new(Role::Client, what).into())
        }
    }
}

fn ended_early(programs: &mut PeerPrograms<'_>, running: &Running) -> Result<Stopped, Stopped> {
    let what = programs.wait(running, CLOSING_LIMIT)?.map_or_else(
        || "has closed its standard output before it printed \"finished\"".to_owned(),
        |status| format!("ended with {} before it printed \"finished\"", end_in_words(status)),
    );
    Ok(Failure::new(Role::Client, what).into())
}

fn late(limit: Duration) -> Stopped {
    Failure::new(Role::Client, format!("did not finish within {:.0} s", limit.as_secs_f64())).into()
}

fn never_ready(limit: Duration) -> Stopped {
    Failure::new(Role::Client, format!("did not print \"ready\" within {}", seconds(limit))).into()
}

#[allow(clippy::needless_pass_by_value)] // for `map_err`
fn broken(violation: Violation) -> Stopped {
    Failure::new(Role::Client, format!("broke the peer protocol: {violation}")).into()
}
