//! Echo: messages that come back. Closed loop: one in flight on each connection. Open loop: see `open_loop`.

use crate::config::{ConnectionMode, Echo, Mode};
use crate::context::Context;
use crate::lane::{Lane, Sent};
use crate::server::{self, Seen, SeenByPort};
use crate::{Measured, Sample, WorkloadError, message, open_loop, session};
use crosswind_transport::{Connection, Outcome, TransportError};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub fn run(config: &Echo, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let Some(transport) = crosswind_transport::find(&config.transport) else { return Ok(Measured::default()) };
    let timeout = Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let (clock, size) = (context.clock(), config.size_bytes as usize);
    let handler = |stopping: &AtomicBool, connection: &mut dyn Connection, seen: &mut Vec<Seen>| {
        server::echo(clock, size, stopping, connection, seen);
    };
    let readback = OnceLock::new();
    let client = |connection: u32| {
        let lane = Lane { config, context, transport, timeout, connection, readback: &readback };
        match config.mode {
            Mode::Closed => Ok(closed_loop(&lane)),
            Mode::Open => open_loop::run(&lane),
        }
    };
    let session = session::run(context, transport, timeout, config.connections, &handler, &client)?;
    let tagged = transport.is_datagram();
    Ok(Measured {
        samples: session.results.into_iter().map(|sent| complete(sent, &session.seen, tagged)).collect(),
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        warnings: Vec::new(),
    })
}

/// Adds what the server saw of the message.
fn complete(sent: Sent, seen: &SeenByPort, tagged: bool) -> Sample {
    let mut sample = sent.sample;
    if let Some(at) = sample.sent
        && let Some(seen) = seen.find(sent.client_port, at, tagged.then_some(sent.tag))
    {
        // A later message's sight is not this one's: it would lie after the reply.
        if sample.received.is_none_or(|received| seen.received <= received) {
            sample.server_received = Some(seen.received);
            sample.server_sent = Some(seen.sent);
        }
    }
    sample
}

fn closed_loop(lane: &Lane<'_>) -> Vec<Sent> {
    let clock = lane.context.clock();
    let size = lane.config.size_bytes as usize;
    let (mut message, mut reply) = (message::buffer(size), vec![0; size]);
    let mut kept: Option<Box<dyn Connection>> = None;
    let mut all = Vec::new();
    for number in lane.numbers() {
        let mut sample = Sample::new(number, lane.connection);
        let opened = match kept.take() {
            Some(connection) => Ok(connection),
            None => lane.open().map(|(connection, took)| {
                // A datagram's socket sets nothing up that takes a packet.
                sample.connect_ns = (!lane.transport.is_datagram()).then_some(took);
                connection
            }),
        };
        let mut connection = match opened {
            Ok(connection) => connection,
            Err(e) => {
                sample.outcome = e.outcome;
                lane.context.progress.exchange_done(None);
                all.push(Sent { sample, client_port: 0, tag: 0 });
                continue;
            }
        };
        message::write(&mut message, number);
        let before = clock.now();
        sample.sent = Some(before);
        sample.sent_bytes = size as u64;
        let result =
            connection.send(&message).and_then(|()| receive_own(lane, connection.as_mut(), &message, &mut reply));
        let after = clock.now();
        let client_port = connection.client_port();
        match result {
            Ok(length) => {
                sample.received = Some(after);
                sample.received_bytes = length as u64;
                sample.outcome = if reply[..length] == message[..] { Outcome::Ok } else { Outcome::Error };
            }
            Err(e) => sample.outcome = e.outcome,
        }
        let ok = sample.outcome == Outcome::Ok;
        lane.context.progress.exchange_done(ok.then(|| (after - before).as_nanos()));
        if lane.config.connection == ConnectionMode::Kept && (ok || lane.transport.is_datagram()) {
            kept = Some(connection);
        } else if !ok {
            // What is still on its way must not be taken for the next reply.
            let _ = connection.abort();
        }
        all.push(Sent { sample, client_port, tag: message::visible(number, size) });
    }
    all
}

/// Receives the reply to `message`. Late replies to earlier datagrams are passed over, within one timeout in all.
fn receive_own(
    lane: &Lane<'_>,
    connection: &mut dyn Connection,
    message: &[u8],
    reply: &mut [u8],
) -> Result<usize, TransportError> {
    let length = connection.receive(reply)?;
    if !lane.transport.is_datagram() || message::read(&reply[..length]) == message::read(message) {
        return Ok(length);
    }
    let clock = lane.context.clock();
    let deadline = clock.now() + crosswind_units::Duration::from_nanos(lane.timeout.as_nanos() as u64);
    let result = loop {
        let left = deadline.saturating_since(clock.now());
        if let Err(e) = connection.set_timeout(left.into()) {
            break Err(e);
        }
        match connection.receive(reply) {
            Ok(n) if message::read(&reply[..n]) != message::read(message) => {}
            Ok(n) => break Ok(n),
            Err(e) => break Err(e),
        }
    };
    connection.set_timeout(lane.timeout)?;
    result
}
