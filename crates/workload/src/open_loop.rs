//! Open loop: each message is sent when it is time, whatever became of the others. The intended time is kept beside the actual
//! one, so that a sender held up hides no delay (coordinated omission).
//!
//! A flow is a stream whose messages are sent by one task or thread and answered to another. Where every message needs a stream
//! of its own (HTTP), each exchange is one task.

use crate::config::Echo;
use crate::context::Context;
use crate::lane::{Lane, Sent, exchange, note_phases};
use crate::message;
use crate::pace::Pace;
use crate::{Sample, WorkloadError};
use crosswind_path::Side;
use crosswind_transport::{Connection, Driver, Outcome, Purpose, Receiver, Sender, Stream};
use crosswind_units::{Duration, Instant};
use futures_util::future::join_all;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A message to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Due {
    pub number: u64,
    /// Stream or channel.
    pub stream: u32,
    /// Connection that it counts to.
    pub connection: u32,
    /// When, after the start.
    pub after: Duration,
}

/// A stream and the messages that go through it.
pub struct Flow {
    pub stream: Stream,
    pub client_port: u16,
    pub due: Vec<Due>,
}

/// What all messages have in common.
#[derive(Clone, Copy)]
pub struct Shape {
    pub size: usize,
    pub start: Instant,
}

impl Shape {
    /// From a moment on.
    pub fn now(context: &Context<'_>, size: u64) -> Self {
        Self { size: size as usize, start: context.clock().now() + Duration::from_millis(1) }
    }
}

/// An echo's lane.
pub async fn run(config: &Echo, lane: &Lane<'_>) -> Result<Vec<Sent>, WorkloadError> {
    let interval = 1e9 / config.rate_per_s.unwrap_or(1.0);
    let due: Vec<Due> = config
        .numbers(lane.number)
        .map(|number| Due {
            number,
            stream: 0,
            connection: lane.number,
            after: Duration::from_nanos((number as f64 * interval) as u64),
        })
        .collect();
    let mut opened = match lane.open().await {
        Ok(opened) => opened,
        Err(e) => return Ok(due.iter().map(|due| unsent(lane, due, e.outcome)).collect()),
    };
    if config.connections == 1 {
        lane.context.setup_done();
    }
    let connection = opened.connection.as_mut();
    let shape = Shape::now(lane.context, config.size_bytes);
    let mut all = if lane.stream_per_message() {
        requests(lane, shape, &[&*connection], &due).await?
    } else {
        match lane.within("cannot open a stream", connection.open(Purpose::Messages)).await {
            Ok(stream) => {
                let client_port = connection.client_port();
                flows(lane, shape, vec![Flow { stream, client_port, due }], &mut [connection]).await?
            }
            Err(e) => due.iter().map(|due| unsent(lane, due, e.outcome)).collect(),
        }
    };
    if !lane.features().datagram || lane.features().secure {
        let first = all.iter_mut().find(|one| one.sample.exchange == u64::from(lane.number));
        if let Some(first) = first {
            note_phases(&mut first.sample, opened.took_ns, &opened.phases);
        }
    }
    lane.close(opened.connection.as_mut()).await;
    Ok(all)
}

/// Runs flows side by side; `connections` are theirs.
pub async fn flows(
    lane: &Lane<'_>,
    shape: Shape,
    flows: Vec<Flow>,
    connections: &mut [&mut dyn Connection],
) -> Result<Vec<Sent>, WorkloadError> {
    match lane.driver() {
        Driver::Thread => on_threads(lane, shape, flows, connections),
        Driver::Reactor => {
            let all = join_all(flows.into_iter().map(|flow| on_reactor(lane, shape, flow))).await;
            all.into_iter().try_fold(Vec::new(), |mut all, one| {
                all.append(&mut one?);
                Ok(all)
            })
        }
    }
}

async fn on_reactor(lane: &Lane<'_>, shape: Shape, flow: Flow) -> Result<Vec<Sent>, WorkloadError> {
    let Flow { stream: Stream { mut sender, mut receiver, .. }, client_port, due } = flow;
    let pace = Pace::new(lane.driver())?;
    let (book, over) = (Book::default(), AtomicBool::new(false));
    let failure = {
        let receiving = book.receive(lane, shape, receiver.as_mut(), due.len(), &over);
        tokio::pin!(receiving);
        let failure = tokio::select! {
            biased;
            () = &mut receiving => None,
            failure = book.send(lane, shape, &pace, sender.as_mut(), &due) => failure,
        };
        if failure.is_none() {
            // The last reply has one timeout to come.
            let rest = async {
                receiving.await;
                Ok(())
            };
            let _ = lane.within("cannot receive", rest).await;
        }
        failure
    };
    let _ = lane.driver().within(std::time::Duration::from_secs(1), "cannot finish", sender.finish()).await;
    Ok(book.close(lane, shape, client_port, &due, failure))
}

fn on_threads(
    lane: &Lane<'_>,
    shape: Shape,
    flows: Vec<Flow>,
    connections: &mut [&mut dyn Connection],
) -> Result<Vec<Sent>, WorkloadError> {
    let mut running = Vec::new();
    for Flow { stream: Stream { sender, receiver, .. }, client_port, due } in flows {
        running.push((Mutex::new((sender, receiver)), Book::default(), client_port, due));
    }
    let over = AtomicBool::new(false);
    let (over, clock) = (&over, lane.context.clock());
    let failures = std::thread::scope(|scope| {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for (halves, book, _, due) in &mut running {
            let Ok((sender, receiver)) = halves.get_mut() else { continue };
            let (book, due) = (&*book, &*due);
            receivers.push(lane.context.spawn(scope, Side::Forward, move || {
                Ok(Driver::Thread.run(book.receive(lane, shape, receiver.as_mut(), due.len(), over))?)
            })?);
            senders.push(lane.context.spawn(scope, Side::Forward, move || {
                let pace = Pace::new(Driver::Thread)?;
                Ok(Driver::Thread.run(book.send(lane, shape, &pace, sender.as_mut(), due))?)
            })?);
        }
        let failures: Vec<Option<Outcome>> =
            senders.into_iter().map(|one| Ok(crate::context::join(one)?.0)).collect::<Result<_, WorkloadError>>()?;
        // The last reply has one timeout to come; whoever still waits then is woken.
        let deadline = clock.now() + Duration::from_nanos(lane.timeout.as_nanos() as u64);
        let failed = failures.iter().any(Option::is_some);
        while !receivers.iter().all(std::thread::ScopedJoinHandle::is_finished) && clock.now() < deadline && !failed {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        over.store(true, Ordering::Release);
        for connection in connections {
            connection.abort();
        }
        receivers.into_iter().try_for_each(|one| crate::context::join(one).map(|_| ()))?;
        Ok::<_, WorkloadError>(failures)
    })?;
    let closed = running.into_iter().zip(failures);
    Ok(closed.flat_map(|((_, book, port, due), failure)| book.close(lane, shape, port, &due, failure)).collect())
}

/// What was sent and what came back: shared by the two who send and receive.
#[derive(Default)]
struct Book {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    samples: HashMap<u64, Sample>,
    /// Numbers that wait for a reply, by what is visible of them.
    waiting: HashMap<u64, u64>,
    replies: usize,
}

impl Book {
    /// Sends every message at its time. Returns what ended it early, if anything did.
    async fn send(
        &self,
        lane: &Lane<'_>,
        shape: Shape,
        pace: &Pace,
        sender: &mut dyn Sender,
        all: &[Due],
    ) -> Option<Outcome> {
        let clock = lane.context.clock();
        let mut message = lane.messages.buffer(shape.size);
        for due in all {
            let intended = shape.start + due.after;
            pace.until(clock, intended).await;
            lane.messages.write(&mut message, due.number);
            let sample = Sample {
                intended: Some(intended),
                sent: Some(clock.now()),
                sent_bytes: shape.size as u64,
                outcome: Outcome::Timeout,
                ..sample(due)
            };
            if let Ok(mut entries) = self.entries.lock() {
                entries.waiting.insert(message::read(&message), due.number);
                entries.samples.insert(due.number, sample);
            }
            if let Err(e) = lane.within("cannot send", sender.send(&message)).await {
                if lane.features().datagram {
                    continue;
                }
                return Some(e.outcome);
            }
        }
        None
    }

    /// Matches replies with messages by what is visible of their numbers, until all are there.
    async fn receive(
        &self,
        lane: &Lane<'_>,
        shape: Shape,
        receiver: &mut dyn Receiver,
        expected: usize,
        over: &AtomicBool,
    ) {
        let clock = lane.context.clock();
        let mut reply = vec![0; shape.size];
        loop {
            let received = receiver.receive(&mut reply).await;
            let now = clock.now();
            match received {
                Ok(length) if length == shape.size => {
                    if self.answered(lane, message::read(&reply), now) == expected {
                        return;
                    }
                }
                Ok(_) if over.load(Ordering::Acquire) => return,
                Ok(_) => {}
                Err(e) if e.outcome == Outcome::Timeout && !over.load(Ordering::Acquire) => {}
                Err(_) => return,
            }
        }
    }

    /// Notes a reply; says how many there are. One to a message given up, or a second copy, matches nothing.
    fn answered(&self, lane: &Lane<'_>, tag: u64, now: Instant) -> usize {
        let Ok(mut entries) = self.entries.lock() else { return 0 };
        let entries = &mut *entries;
        let sample = entries.waiting.remove(&tag).and_then(|number| entries.samples.get_mut(&number));
        if let Some(sample) = sample {
            let rtt = sample.sent.map(|sent| now.saturating_since(sent));
            // Too late is lost, as in a closed loop.
            if rtt.is_none_or(|rtt| std::time::Duration::from(rtt) <= lane.timeout) {
                sample.received = Some(now);
                sample.received_bytes = sample.sent_bytes;
                sample.outcome = Outcome::Ok;
                lane.context.progress.exchange_done(rtt.map(Duration::as_nanos));
                entries.replies += 1;
            }
        }
        entries.replies
    }

    fn close(
        self,
        lane: &Lane<'_>,
        shape: Shape,
        client_port: u16,
        all: &[Due],
        failure: Option<Outcome>,
    ) -> Vec<Sent> {
        let mut entries = self.entries.into_inner().unwrap_or_default();
        all.iter()
            .map(|due| match entries.samples.remove(&due.number) {
                Some(sample) => {
                    if sample.outcome != Outcome::Ok {
                        lane.context.progress.exchange_done(None);
                    }
                    Sent { sample, client_port, tag: lane.messages.tag(due.number, shape.size) }
                }
                None => unsent(lane, due, failure.unwrap_or(Outcome::Error)),
            })
            .collect()
    }
}

/// Every message on a stream of its own, on one of `connections`: that with its number, where there are several.
pub async fn requests(
    lane: &Lane<'_>,
    shape: Shape,
    connections: &[&dyn Connection],
    all: &[Due],
) -> Result<Vec<Sent>, WorkloadError> {
    let pace = Pace::new(lane.driver())?;
    let clock = lane.context.clock();
    let mut under_way = FuturesUnordered::new();
    let mut done = Vec::with_capacity(all.len());
    for due in all {
        let waiting = pace.until(clock, shape.start + due.after);
        tokio::pin!(waiting);
        loop {
            tokio::select! {
                biased;
                () = &mut waiting => break,
                Some(sent) = under_way.next(), if !under_way.is_empty() => done.push(sent),
            }
        }
        let connection = connections[due.connection as usize % connections.len()];
        under_way.push(request(lane, shape, connection, *due));
    }
    while let Some(sent) = under_way.next().await {
        done.push(sent);
    }
    Ok(done)
}

async fn request(lane: &Lane<'_>, shape: Shape, connection: &dyn Connection, due: Due) -> Sent {
    let clock = lane.context.clock();
    let mut message = lane.messages.buffer(shape.size);
    lane.messages.write(&mut message, due.number);
    let mut reply = vec![0; shape.size];
    let before = clock.now();
    let result = lane
        .within("cannot exchange", async {
            let mut stream = connection.open(Purpose::Messages).await?;
            let length = exchange(&mut stream, &message, &mut reply).await?;
            stream.sender.finish().await?;
            Ok(length)
        })
        .await;
    let after = clock.now();
    let mut sample = Sample {
        intended: Some(shape.start + due.after),
        sent: Some(before),
        sent_bytes: shape.size as u64,
        ..sample(&due)
    };
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
    Sent { sample, client_port: connection.client_port(), tag: message::read(&message) }
}

fn sample(due: &Due) -> Sample {
    Sample { stream: due.stream, ..Sample::new(due.number, due.connection) }
}

/// A message that was never sent.
pub fn unsent(lane: &Lane<'_>, due: &Due, outcome: Outcome) -> Sent {
    lane.context.progress.exchange_done(None);
    Sent { sample: Sample { outcome, ..sample(due) }, client_port: 0, tag: 0 }
}
