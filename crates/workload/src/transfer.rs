//! Transfer: bytes in one direction, by size or by duration, each on a connection of its own.
//!
//! By size, a transfer lasts from the first byte handed over to the last byte received. By duration, the receiver counts
//! for that long from the first byte that it received, and both ends then drop the connection.

use crate::config::{Transfer, TransferDirection};
use crate::context::Context;
use crate::server::Seen;
use crate::{Measured, Sample, WorkloadError, message, session};
use crosswind_host::Clock;
use crosswind_path::Side;
use crosswind_transport::{Connection, Outcome, SocketReadback};
use crosswind_units::{Duration, Instant};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

/// Bytes a call.
const CHUNK: usize = 128 * 1024;
/// How often a receiver by duration looks at the clock while nothing comes.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);

/// What the receiver saw.
struct Received {
    first: Option<Instant>,
    last: Option<Instant>,
    bytes: u64,
    outcome: Outcome,
}

pub fn run(config: &Transfer, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let Some(transport) = crosswind_transport::find(&config.transport) else { return Ok(Measured::default()) };
    let timeout = std::time::Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let clock = context.clock();
    let handler = |_: &AtomicBool, connection: &mut dyn Connection, seen: &mut Vec<Seen>| {
        let client_port = connection.client_port();
        let started = clock.now();
        let one = match config.direction {
            TransferDirection::Upload => {
                let received = receive(config, clock, connection);
                let last = received.last.unwrap_or(started);
                Seen {
                    client_port,
                    tag: 0,
                    first: received.first.unwrap_or(last),
                    received: last,
                    sent: last,
                    bytes: received.bytes,
                }
            }
            TransferDirection::Download => {
                send(config, clock, connection);
                Seen { client_port, tag: 0, first: started, received: started, sent: started, bytes: 0 }
            }
        };
        seen.push(one);
        end(config, connection);
    };
    let readback: OnceLock<SocketReadback> = OnceLock::new();
    let client = |lane: u32| {
        Ok((u64::from(lane)..config.count)
            .step_by(config.connections as usize)
            .map(|number| one_transfer(config, context, Sample::new(number, lane), timeout, &readback))
            .collect())
    };
    let session = session::run(context, transport, timeout, config.connections, &handler, &client)?;
    let samples = session
        .results
        .into_iter()
        .map(|(sample, port, opened)| match opened.and_then(|opened| session.seen.find(port, opened, None)) {
            Some(seen) => with_server_side(config, sample, seen),
            None => sample,
        })
        .collect();
    Ok(Measured {
        samples,
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        warnings: Vec::new(),
    })
}

/// One transfer, from the client: its sample as far as the client knows it, its port, and when it began to connect.
fn one_transfer(
    config: &Transfer,
    context: &Context<'_>,
    mut sample: Sample,
    timeout: std::time::Duration,
    readback: &OnceLock<SocketReadback>,
) -> (Sample, u16, Option<Instant>) {
    let clock = context.clock();
    let before = clock.now();
    let opened = crosswind_transport::find(&config.transport)
        .map(|transport| transport.connect(context.server_address(), &context.settings, timeout));
    let mut connection = match opened {
        Some(Ok(connection)) => connection,
        Some(Err(e)) => {
            sample.outcome = e.outcome;
            context.progress.exchange_done(None);
            return (sample, 0, None);
        }
        None => return (sample, 0, None),
    };
    let open = clock.now();
    sample.connect_ns = Some((open - before).as_nanos());
    if readback.get().is_none()
        && let Ok(found) = connection.readback()
    {
        let _ = readback.set(found);
    }
    let port = connection.client_port();
    match config.direction {
        TransferDirection::Upload => {
            sample.sent = Some(open);
            let (bytes, outcome) = send(config, clock, connection.as_mut());
            (sample.sent_bytes, sample.outcome) = (bytes, outcome);
            if config.size_bytes.is_some() && outcome == Outcome::Ok {
                // The server closes when it has everything.
                sample.outcome = match connection.receive_some(&mut [0; 1]) {
                    Ok(_) => Outcome::Ok,
                    Err(e) => e.outcome,
                };
            }
        }
        TransferDirection::Download => {
            let received = receive(config, clock, connection.as_mut());
            sample.received = received.last;
            sample.received_bytes = received.bytes;
            sample.outcome = received.outcome;
            if config.duration_ns.is_some() {
                sample.sent = received.first;
            }
        }
    }
    let side = if config.direction == TransferDirection::Upload { Side::Forward } else { Side::Reverse };
    if config.size_bytes.is_some() {
        sample.wire_ns = context.testbed.payload_clock.read(side, port).map(|(first, last)| (last - first).as_nanos());
    }
    end(config, connection.as_mut());
    let ok = sample.outcome == Outcome::Ok;
    context.progress.exchange_done(ok.then(|| (clock.now() - open).as_nanos()));
    (sample, port, Some(before))
}

fn with_server_side(config: &Transfer, mut sample: Sample, seen: Seen) -> Sample {
    match config.direction {
        TransferDirection::Upload => {
            sample.received_bytes = seen.bytes;
            sample.received = (seen.bytes > 0).then_some(seen.received);
            if config.duration_ns.is_some() {
                sample.sent = Some(seen.first);
                sample.outcome = if seen.bytes > 0 { Outcome::Ok } else { sample.outcome };
            } else if Some(seen.bytes) != config.size_bytes && sample.outcome == Outcome::Ok {
                sample.outcome = Outcome::Closed;
            }
        }
        TransferDirection::Download => {
            if config.size_bytes.is_some() {
                sample.sent = Some(seen.sent);
            }
            sample.sent_bytes = config.size_bytes.unwrap_or(sample.received_bytes);
        }
    }
    sample
}

/// Sends until it is enough: all of the size, or until the receiver has gone.
fn send(config: &Transfer, clock: Clock, connection: &mut dyn Connection) -> (u64, Outcome) {
    let buffer = message::buffer(CHUNK);
    // A receiver by duration counts from its first byte and then goes; the sender gives up some time after that.
    let give_up = config.duration_ns.map(|ns| clock.now() + Duration::from_nanos(2 * ns) + Duration::from_secs(60));
    let mut sent = 0;
    loop {
        let left = config.size_bytes.map_or(CHUNK as u64, |size| size - sent).min(CHUNK as u64);
        if left == 0 {
            // An error here shows on the receiver's side as missing bytes.
            let _ = connection.finish_sending();
            return (sent, Outcome::Ok);
        }
        if let Err(e) = connection.send(&buffer[..left as usize]) {
            return (sent, e.outcome);
        }
        sent += left;
        if give_up.is_some_and(|time| clock.now() > time) {
            return (sent, Outcome::Timeout);
        }
    }
}

/// Receives until it is enough: the size, or the duration since the first byte.
fn receive(config: &Transfer, clock: Clock, connection: &mut dyn Connection) -> Received {
    let mut buffer = vec![0; CHUNK];
    let mut received = Received { first: None, last: None, bytes: 0, outcome: Outcome::Ok };
    let mut end = None;
    loop {
        let result = connection.receive_some(&mut buffer);
        let now = clock.now();
        if end.is_some_and(|end| now > end) {
            received.last = end;
            return received;
        }
        match result {
            Ok(0) => {
                if received.last.is_none() || config.size_bytes.is_some_and(|size| received.bytes < size) {
                    received.outcome = Outcome::Closed;
                }
                return received;
            }
            Ok(n) => {
                received.bytes += n as u64;
                received.last = Some(now);
                if received.first.is_none() {
                    received.first = Some(now);
                    end = config.duration_ns.map(|ns| now + Duration::from_nanos(ns));
                    if end.is_some() {
                        // What fails here fails at the next receive too.
                        let _ = connection.set_timeout(PATIENCE);
                    }
                }
                if config.size_bytes.is_some_and(|size| received.bytes >= size) {
                    return received;
                }
            }
            Err(e) if e.outcome == Outcome::Timeout && end.is_some() => {}
            Err(e) => {
                received.outcome = e.outcome;
                return received;
            }
        }
    }
}

/// Ends a transfer's connection: by duration at once, by size in an orderly way (when it is dropped).
fn end(config: &Transfer, connection: &mut dyn Connection) {
    if config.duration_ns.is_some() {
        let _ = connection.abort();
    }
}
