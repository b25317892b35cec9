//! Echo: messages that are answered. Closed loop: one in flight on each connection. Open loop: see `open_loop`.

use crate::answers::Answers;
use crate::config::{ConnectionMode, Echo, EchoDirection, Mode};
use crate::context::Context;
use crate::lane::{Lane, Sent, exchange, note_phases};
use crate::message::{self, Messages, Sizes};
use crate::server::SeenByPort;
use crate::{Measured, Sample, WorkloadError, open_loop, session};
use crosswind_transport::driver::Bound;
use crosswind_transport::{Connection, Outcome, Purpose, Stream, TransportError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

impl Echo {
    const fn sizes(&self) -> Sizes {
        let all = Sizes::both(self.size_bytes);
        match self.direction {
            EchoDirection::Echo => all,
            EchoDirection::Upload => Sizes { reply: 1, ..all },
            EchoDirection::Download => Sizes { request: 1, ..all },
        }
    }

    /// The numbers of a lane's messages: every `connections`-th of all.
    pub fn numbers(&self, lane: u32) -> impl Iterator<Item = u64> + use<> {
        (u64::from(lane)..self.messages).step_by(self.connections as usize)
    }
}

pub fn run(config: &Echo, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let transport = config.transport;
    let timeout = Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let (clock, sizes, messages) = (context.clock(), config.sizes(), Messages { payload: config.payload });
    let (answers, readback) = (Arc::new(Answers::new(clock, sizes, messages)), OnceLock::new());
    let session = session::run(
        context,
        transport,
        timeout,
        config.connections,
        &|serve| Arc::clone(&answers).work(serve),
        &|number| {
            let lane = Lane { context, transport, timeout, number, messages, sizes, readback: &readback };
            Box::pin(async move {
                lane.prime().await;
                match config.mode {
                    Mode::Closed => Ok(closed_loop(config, &lane).await),
                    Mode::Open => open_loop::run(config, &lane).await,
                }
            })
        },
    )?;
    Ok(Measured {
        samples: session.results.into_iter().map(|sent| complete(sent, &session.seen)).collect(),
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        ..Measured::default()
    })
}

/// Adds what the server saw of the message.
pub fn complete(sent: Sent, seen: &SeenByPort) -> Sample {
    let mut sample = sent.sample;
    if let Some(at) = sample.sent
        && let Some(seen) = seen.find(sent.client_port, at, Some(sent.tag))
    {
        // A later message's sight is not this one's: it would lie after the reply.
        if sample.received.is_none_or(|received| seen.received <= received) {
            sample.server_received = Some(seen.received);
            sample.server_sent = Some(seen.sent);
        }
    }
    sample
}

/// What a lane keeps from one exchange to the next.
struct Kept {
    connection: Box<dyn Connection>,
    stream: Option<Stream>,
}

async fn closed_loop(config: &Echo, lane: &Lane<'_>) -> Vec<Sent> {
    let clock = lane.context.clock();
    let sizes = config.sizes();
    let one_stream = !lane.stream_per_message() && config.stream == ConnectionMode::Kept;
    let (mut message, mut reply) = (lane.messages.buffer(sizes.request), vec![0; sizes.reply]);
    let mut expected = lane.messages.buffer(sizes.reply);
    let mut bound = Bound::new(lane.driver());
    let mut kept: Option<Kept> = None;
    let mut all = Vec::new();
    for number in config.numbers(lane.number) {
        let mut sample = Sample::new(number, lane.number);
        let mut open = match kept.take() {
            Some(open) => open,
            None => match open(lane, one_stream, &mut sample).await {
                Ok(open) => open,
                Err(e) => {
                    sample.outcome = e.outcome;
                    lane.context.progress.exchange_done(None);
                    all.push(Sent { sample, client_port: 0, tag: 0 });
                    continue;
                }
            },
        };
        if config.connection == ConnectionMode::Kept && config.connections == 1 {
            lane.context.setup_done();
        }
        lane.messages.write(&mut message, number);
        let common = sizes.request.min(sizes.reply);
        expected[..common].copy_from_slice(&message[..common]);
        let before = clock.now();
        sample.sent = Some(before);
        sample.sent_bytes = sizes.request as u64;
        let result = one_exchange(lane, &mut bound, &mut open, &message, &mut reply).await;
        let after = clock.now();
        match result {
            Ok(length) => {
                sample.received = Some(after);
                sample.received_bytes = length as u64;
                sample.outcome = if reply[..length] == expected[..] { Outcome::Ok } else { Outcome::Error };
            }
            Err(e) => sample.outcome = e.outcome,
        }
        let client_port = open.connection.client_port();
        let ok = sample.outcome == Outcome::Ok;
        lane.context.progress.exchange_done(ok.then(|| (after - before).as_nanos()));
        all.push(Sent { sample, client_port, tag: message::read(&message) });
        if config.connection == ConnectionMode::Kept && (ok || lane.features().datagram) {
            kept = Some(open);
        } else if ok {
            lane.close(open.connection.as_mut()).await;
        } else {
            // What is still on its way must not be taken for the next reply.
            open.connection.abort();
        }
    }
    if let Some(mut open) = kept {
        lane.close(open.connection.as_mut()).await;
    }
    all
}

async fn open(lane: &Lane<'_>, one_stream: bool, sample: &mut Sample) -> Result<Kept, TransportError> {
    let opened = lane.open().await?;
    // A plain datagram's socket sets nothing up that takes a packet.
    if !lane.features().datagram || lane.features().secure {
        note_phases(sample, opened.took_ns, &opened.phases);
    }
    let connection = opened.connection;
    let stream = if one_stream {
        Some(lane.within("cannot open a stream", connection.open(Purpose::Messages)).await?)
    } else {
        None
    };
    Ok(Kept { connection, stream })
}

async fn one_exchange(
    lane: &Lane<'_>,
    bound: &mut Bound,
    open: &mut Kept,
    message: &[u8],
    reply: &mut [u8],
) -> Result<usize, TransportError> {
    let exchanging = async {
        if let Some(stream) = &mut open.stream {
            if lane.features().datagram {
                return receive_own(lane, stream, message, reply).await;
            }
            return exchange(stream, message, reply).await;
        }
        let mut stream = open.connection.open(Purpose::Messages).await?;
        let length = exchange(&mut stream, message, reply).await?;
        stream.sender.finish().await?;
        Ok(length)
    };
    bound.within(lane.timeout, "cannot exchange", exchanging).await
}

/// Sends a datagram and receives its answer. Late answers to earlier ones are passed over, within one timeout in all.
async fn receive_own(
    lane: &Lane<'_>,
    stream: &mut Stream,
    message: &[u8],
    reply: &mut [u8],
) -> Result<usize, TransportError> {
    let common = message.len().min(reply.len()).min(size_of::<u64>());
    let is_own = |reply: &[u8]| message::read(&reply[..common.min(reply.len())]) == message::read(&message[..common]);
    let length = exchange(stream, message, reply).await?;
    if is_own(&reply[..length]) {
        return Ok(length);
    }
    let clock = lane.context.clock();
    let deadline = clock.now() + crosswind_units::Duration::from_nanos(lane.timeout.as_nanos() as u64);
    let result = loop {
        let left = deadline.saturating_since(clock.now());
        if let Err(e) = stream.receiver.set_timeout(left.into()) {
            break Err(e);
        }
        match stream.receiver.receive(reply).await {
            Ok(n) if !is_own(&reply[..n]) => {}
            result => break result,
        }
    };
    stream.receiver.set_timeout(lane.timeout)?;
    result
}
