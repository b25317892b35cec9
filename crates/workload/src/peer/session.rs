//! A workload with a peer as client, as server, or as both.

use super::client::{self, Task};
use super::client_report::{ClientReport, Expected};
use super::programs::{PeerPrograms, Stopped};
use super::report::{EndReport, PeerClock, PeersReport};
use super::server::ServerPeer;
use super::times::Times;
use crate::WorkloadError;
use crate::client_server::{ClientServer, check_settings, measured_of, run_clients};
use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::measured::Measured;
use crate::server::Server;
use crate::warning::Warning;
use crosswind_path::Side;
use crosswind_transport::SocketReadback;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How long a client may take, beyond its exchanges, to set up and to report.
const REPORT_LIMIT: Duration = Duration::from_secs(30);
/// The cell's own deadline ends everything; a client ended before it can still report.
const BEFORE_THE_DEADLINE: Duration = Duration::from_secs(1);
/// The interval for checks on a peer server while our own client runs.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// Runs it: the server first, and its client until it has finished.
pub fn run<W: ClientServer>(workload: &W, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let mut programs = PeerPrograms::new(context)?;
    match measure(workload, context, &mut programs) {
        Ok(mut measured) => {
            measured.warnings.extend(programs.end());
            Ok(measured)
        }
        Err(stopped) => Err(programs.explain(stopped)),
    }
}

/// The results of one end.
struct End {
    report: EndReport,
    socket: Option<SocketReadback>,
    cpu_ns: u64,
    warnings: Vec<Warning>,
}

fn measure<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    programs: &mut PeerPrograms<'_>,
) -> Result<Measured, Stopped> {
    let needs = workload.needs();
    let serve = workload.server(context.clock());
    let own_server = Server::new(context, needs, &serve);
    let mut times = Times::new(context);
    let (mut measured, client, is_verified, server) = std::thread::scope(|scope| -> Result<_, Stopped> {
        let other = if let Some(peer) = &context.peers.server {
            Some(ServerPeer::start(programs, peer)?)
        } else {
            own_server.start(scope, workload.clients())?;
            None
        };
        let clients = run_client(workload, context, programs, other.as_ref(), &mut times);
        own_server.stop();
        let (measured, client, is_verified) = clients?;
        Ok((
            measured,
            client,
            is_verified,
            other.map(|other| end_server(context, programs, other, &times)).transpose()?,
        ))
    })?;
    let server = if let Some(server) = server {
        server
    } else {
        let served = own_server.into_served()?;
        End { report: EndReport::native(), socket: served.readback, cpu_ns: served.cpu_ns, warnings: Vec::new() }
    };
    measured.sockets = [client.socket, server.socket];
    check_settings(context, &measured.sockets)?;
    measured.cpu_ns = [client.cpu_ns, server.cpu_ns];
    measured.warnings.extend(client.warnings.into_iter().chain(server.warnings));
    if context.threads().are_hidden() {
        measured.warnings.push(Warning::peers_unwatched());
    }
    measured.peers = Some(PeersReport {
        client: client.report,
        server: server.report,
        verified_transport: is_verified.then(|| needs.transport.name().to_owned()),
    });
    Ok(measured)
}

/// Runs the client, a peer or our own. The last of the three tells whether it found the cell's transport on every
/// connection.
fn run_client<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    programs: &mut PeerPrograms<'_>,
    server: Option<&ServerPeer>,
    times: &mut Times<'_>,
) -> Result<(Measured, End, bool), Stopped> {
    let Some(peer) = &context.peers.client else {
        let (measured, client) = run_own_client(workload, context, programs, server, times)?;
        return Ok((measured, client, true));
    };
    let (traffic, clock) = (workload.traffic(), context.clock());
    let transport = workload.needs().transport.name();
    let task = Task {
        expected: Expected::new(transport, workload.exchanges(), &traffic, clock.origin_ns(), clock.now()),
        limit: limit(workload, context),
        keeps_connections: context.ending.is_none() && keeps_connections(&traffic),
    };
    let done = client::run(programs, context, peer, task, server, times)?;
    let unfinished = u64::from(!done.is_finished);
    let Some(report) = done.report else {
        let report = EndReport::of_peer(&peer.name, None, None);
        let end = End { report, socket: None, cpu_ns: 0, warnings: Vec::new() };
        return Ok((Measured { unfinished, ..Measured::default() }, end, false));
    };
    let is_verified = report.is_verified;
    let (measured, client) = of_report(report, &peer.name, times);
    Ok((Measured { setup: done.setup, unfinished, ..measured }, client, is_verified))
}

fn of_report(report: ClientReport, name: &str, times: &Times<'_>) -> (Measured, End) {
    let own = times.of(Side::Forward);
    let end = EndReport {
        clock: Some(PeerClock::from(&report.clock)),
        facts: report.facts,
        ..EndReport::of_peer(name, Some(report.implementation), own.map(|own| own.wait_ns))
    };
    let measured = Measured {
        samples: report.samples,
        objects: report.objects,
        first_errors: report.first_errors,
        ..Measured::default()
    };
    let cpu_ns = own.map_or(0, |own| own.run_ns);
    (measured, End { report: end, socket: None, cpu_ns, warnings: report.warnings })
}

/// Runs our own client against a peer server, which is watched meanwhile.
fn run_own_client<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    programs: &mut PeerPrograms<'_>,
    server: Option<&ServerPeer>,
    times: &mut Times<'_>,
) -> Result<(Measured, End), Stopped> {
    times.begin(programs.all());
    let (readback, over) = (OnceLock::new(), AtomicBool::new(false));
    let (clients, fault) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| watch(context, programs, server, times, &over));
        let clients = run_clients(workload, context, &readback);
        over.store(true, Ordering::Release);
        watching.thread().unpark();
        (clients, watching.join().unwrap_or(Some(WorkloadError::Panicked)))
    });
    if let Some(fault) = fault {
        return Err(fault.into());
    }
    let (exchanges, cpu_ns) = clients?;
    times.finish();
    let measured = measured_of(context, exchanges);
    let report = EndReport::native().with_clock("CLOCK_MONOTONIC", 1);
    Ok((measured, End { report, socket: readback.into_inner(), cpu_ns, warnings: Vec::new() }))
}

/// Checks the server until the client is over. Without the server that client might wait for long, so a fault ends the
/// cell at once.
fn watch(
    context: &Context<'_>,
    programs: &mut PeerPrograms<'_>,
    server: Option<&ServerPeer>,
    times: &mut Times<'_>,
    over: &AtomicBool,
) -> Option<WorkloadError> {
    while !over.load(Ordering::Acquire) {
        times.look();
        if let Some(Err(stopped)) = server.map(|server| server.check(programs)) {
            let error = programs.explain(stopped);
            context.progress.fail(&error);
            return Some(error);
        }
        std::thread::park_timeout(LOOK_INTERVAL);
    }
    None
}

fn end_server(
    context: &Context<'_>,
    programs: &mut PeerPrograms<'_>,
    server: ServerPeer,
    times: &Times<'_>,
) -> Result<End, Stopped> {
    context.clients_ended();
    let own = times.of(Side::Reverse);
    let name = context.peers.server.as_ref().map_or("", |peer| peer.name.as_str());
    let implementation = server.implementation().map(str::to_owned);
    let report = EndReport::of_peer(name, implementation, own.map(|own| own.wait_ns));
    let warnings = server.stop(programs)?;
    Ok(End { report, socket: None, cpu_ns: own.map_or(0, |own| own.run_ns), warnings })
}

/// How long a client may take once it is ready.
fn limit<W: ClientServer>(workload: &W, context: &Context<'_>) -> Duration {
    let exchanges = u32::try_from(workload.exchanges().saturating_add(1)).unwrap_or(u32::MAX);
    let longest = workload.needs().timeout.saturating_mul(exchanges).saturating_add(REPORT_LIMIT);
    let longest = longest.saturating_add(paced(&workload.traffic()));
    let left = context.deadline.map(|deadline| deadline.saturating_duration_since(std::time::Instant::now()));
    left.map_or(longest, |left| longest.min(left.saturating_sub(BEFORE_THE_DEADLINE)))
}

/// The duration of a workload paced by the clock.
fn paced(traffic: &TrafficPattern) -> Duration {
    let seconds = match *traffic {
        TrafficPattern::Exchanges { count, rate_per_s: Some(rate_per_s), .. } => count as f64 / rate_per_s,
        TrafficPattern::Streams { messages, streams, rate_per_s, .. } => {
            messages as f64 / (rate_per_s * f64::from(streams))
        }
        TrafficPattern::Transfers { count, duration_ns: Some(ns), .. } => count as f64 * ns as f64 / 1e9,
        _ => 0.0,
    };
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Whether a client sets up all connections before its first exchange; not, where each exchange has its own, or where some are set up
/// while others are in use.
const fn keeps_connections(traffic: &TrafficPattern) -> bool {
    matches!(
        traffic,
        TrafficPattern::Exchanges { new_connections: false, connections: 1, .. } | TrafficPattern::Streams { .. }
    )
}
