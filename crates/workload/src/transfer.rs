//! Transfer: bytes in one direction, by size or by duration, each on a connection of its own.
//!
//! By size, a transfer lasts from the first byte handed over to the last byte received. By duration, the receiver counts
//! for that long from the first byte that it received, and both ends then drop the connection.

use crate::config::{Transfer, TransferDirection};
use crate::context::Context;
use crate::lane::{Lane, note_phases};
use crate::message::{Messages, Sizes};
use crate::server::{Seen, Serve};
use crate::{Measured, Sample, WorkloadError, session};
use crosswind_host::Clock;
use crosswind_path::Side;
use crosswind_transport::{Connection, Features, Outcome, Purpose, Receiver, Sender, TransportError};
use crosswind_units::{Duration, Instant};
use std::future::Future;
use std::sync::OnceLock;

/// Bytes a call.
const CHUNK: usize = 128 * 1024;
/// How often a receiver by duration looks at the clock while nothing comes.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(20);
/// What an HTTP client asks for that takes for as long as it likes.
const ENDLESS: u64 = 1 << 50;

/// What the receiver saw.
struct Received {
    first: Option<Instant>,
    last: Option<Instant>,
    bytes: u64,
    outcome: Outcome,
}

pub fn run(config: &Transfer, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let transport = config.transport;
    let timeout = std::time::Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let (clock, messages) = (context.clock(), Messages { payload: config.payload });
    let end = End { config: config.clone(), clock, messages, features: transport.features(), timeout };
    let readback = OnceLock::new();
    let session = session::run(
        context,
        transport,
        timeout,
        config.connections,
        &|serve| {
            let end = end.clone();
            Box::pin(async move { end.serve(serve).await })
        },
        &|number| {
            let lane =
                Lane { context, transport, timeout, number, messages, sizes: Sizes::both(1), readback: &readback };
            let end = &end;
            Box::pin(async move {
                let mut all = Vec::new();
                for exchange in (u64::from(number)..config.count).step_by(config.connections as usize) {
                    all.push(one_transfer(end, &lane, Sample::new(exchange, number)).await);
                }
                Ok(all)
            })
        },
    )?;
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
        ..Measured::default()
    })
}

/// One transfer, from the client: its sample as far as the client knows it, its port, and when it began to connect.
async fn one_transfer(end: &End, lane: &Lane<'_>, mut sample: Sample) -> (Sample, u16, Option<Instant>) {
    let (config, clock) = (&end.config, end.clock);
    let before = clock.now();
    let mut opened = match lane.open().await {
        Ok(opened) => opened,
        Err(e) => {
            sample.outcome = e.outcome;
            lane.context.progress.exchange_done(None);
            return (sample, 0, None);
        }
    };
    let open = clock.now();
    note_phases(&mut sample, opened.took_ns, &opened.phases);
    let connection = opened.connection.as_mut();
    let port = connection.client_port();
    if let Err(e) = end.transfer(lane, &*connection, &mut sample, open).await {
        sample.outcome = e.outcome;
    }
    let side = if config.direction == TransferDirection::Upload { Side::Forward } else { Side::Reverse };
    if config.size_bytes.is_some() {
        let clock = &lane.context.testbed.payload_clock;
        sample.wire_ns = clock.read(side, port).map(|(first, last)| (last - first).as_nanos());
    }
    let ok = sample.outcome == Outcome::Ok;
    lane.context.progress.exchange_done(ok.then(|| (clock.now() - open).as_nanos()));
    end_connection(config, lane, connection).await;
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

/// One end of a transfer, client or server.
#[derive(Clone)]
struct End {
    config: Transfer,
    clock: Clock,
    messages: Messages,
    features: Features,
    timeout: std::time::Duration,
}

impl End {
    /// Where the server does not speak first, a byte asks it to; HTTP has requests for that.
    const fn asks(&self) -> bool {
        !self.features.server_speaks_first && !self.features.http
    }

    async fn serve(&self, mut serve: Serve<'_>) {
        let client_port = serve.client_port;
        let started = self.clock.now();
        let one = match self.config.direction {
            TransferDirection::Upload => {
                let received = self.receive(serve.stream.receiver.as_mut()).await;
                let last = received.last.unwrap_or(started);
                let first = received.first.unwrap_or(last);
                Seen { client_port, tag: 0, first, received: last, sent: last, bytes: received.bytes }
            }
            TransferDirection::Download => {
                if self.asks() && serve.stream.receiver.receive(&mut [0; 1]).await.is_err() {
                    return;
                }
                let started = self.clock.now();
                self.send(serve.stream.sender.as_mut()).await;
                Seen { client_port, tag: 0, first: started, received: started, sent: started, bytes: 0 }
            }
        };
        serve.saw(one);
        // The other end learns of it, or is gone.
        let _ = serve.stream.sender.finish().await;
        if self.config.direction == TransferDirection::Download && self.config.size_bytes.is_some() {
            // The connection is the client's to end: what is on its way must not be cut off.
            let _ = self.within(serve.stream.receiver.receive_some(&mut [0; 1])).await;
        }
    }

    async fn transfer(
        &self,
        lane: &Lane<'_>,
        connection: &dyn Connection,
        sample: &mut Sample,
        open: Instant,
    ) -> Result<(), TransportError> {
        let config = &self.config;
        let purpose = match config.direction {
            TransferDirection::Upload => Purpose::Upload(config.size_bytes),
            TransferDirection::Download => Purpose::Download(Some(config.size_bytes.unwrap_or(ENDLESS))),
        };
        let mut stream = lane.within("cannot open a stream", connection.open(purpose)).await?;
        match config.direction {
            TransferDirection::Upload => {
                sample.sent = Some(open);
                let (bytes, outcome) = self.send(stream.sender.as_mut()).await;
                (sample.sent_bytes, sample.outcome) = (bytes, outcome);
                if config.size_bytes.is_some() && outcome == Outcome::Ok {
                    // The server ends when it has everything.
                    self.within(stream.receiver.receive_some(&mut [0; 1])).await?;
                }
            }
            TransferDirection::Download => {
                if self.asks() {
                    self.within(stream.sender.send(&self.messages.buffer(1))).await?;
                }
                let received = self.receive(stream.receiver.as_mut()).await;
                sample.received = received.last;
                sample.received_bytes = received.bytes;
                sample.outcome = received.outcome;
                if config.duration_ns.is_some() {
                    sample.sent = received.first;
                }
                if config.size_bytes.is_some() {
                    let _ = self.within(stream.sender.finish()).await;
                }
            }
        }
        Ok(())
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, TransportError>>) -> Result<T, TransportError> {
        self.features.driver.within(self.timeout, "cannot transfer", call).await
    }

    /// Sends until it is enough: all of the size, or until the receiver has gone.
    async fn send(&self, sender: &mut dyn Sender) -> (u64, Outcome) {
        let buffer = self.messages.buffer(CHUNK);
        let config = &self.config;
        // A receiver by duration counts from its first byte and then goes; the sender gives up some time after that.
        let give_up =
            config.duration_ns.map(|ns| self.clock.now() + Duration::from_nanos(2 * ns) + Duration::from_secs(60));
        let mut sent = 0;
        loop {
            let left = config.size_bytes.map_or(CHUNK as u64, |size| size - sent).min(CHUNK as u64);
            if left == 0 {
                // An error here shows on the receiver's side as missing bytes.
                let _ = self.within(sender.finish()).await;
                return (sent, Outcome::Ok);
            }
            if let Err(e) = self.within(sender.send_some(&buffer[..left as usize])).await {
                return (sent, e.outcome);
            }
            sent += left;
            if give_up.is_some_and(|time| self.clock.now() > time) {
                return (sent, Outcome::Timeout);
            }
        }
    }

    /// Receives until it is enough: the size, or the duration since the first byte.
    async fn receive(&self, receiver: &mut dyn Receiver) -> Received {
        let config = &self.config;
        let mut buffer = vec![0; CHUNK];
        let mut received = Received { first: None, last: None, bytes: 0, outcome: Outcome::Ok };
        let mut end = None;
        let mut patience = self.timeout;
        loop {
            let result =
                self.features.driver.within(patience, "cannot receive", receiver.receive_some(&mut buffer)).await;
            let now = self.clock.now();
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
                            patience = PATIENCE;
                            // What fails here fails at the next receive too.
                            let _ = receiver.set_timeout(PATIENCE);
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
}

/// Ends a transfer's connection: by duration at once, by size in an orderly way.
async fn end_connection(config: &Transfer, lane: &Lane<'_>, connection: &mut dyn Connection) {
    if config.duration_ns.is_some() {
        connection.abort();
    } else {
        lane.close(connection).await;
    }
}
