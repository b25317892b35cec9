//! Streams with scheduled messages, whose answers are received meanwhile.

use crate::client::Client;
use crate::context::join;
use crate::exchange::{Exchange, Trace};
use crate::message;
use crate::pace::Pace;
use crate::schedule::{Due, Schedule};
use crate::{Sample, WorkloadError};
use crosswind_ledger::Position;
use crosswind_path::Side;
use crosswind_transport::{Connection, Driver, Outcome, Receiver, Sender, Stream, TransportError};
use crosswind_units::{Duration, Instant};
use futures_util::future::join_all;
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The time limit for a stream's orderly end.
const FINISH_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(1);
/// The polling interval for the last replies.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(5);

/// A stream and its messages.
pub struct TimedStream {
    pub stream: Stream,
    pub client_port: u16,
    pub due: Vec<Due>,
}

/// Runs streams side by side, over `connections`.
pub async fn run(
    client: &Client<'_>,
    schedule: Schedule,
    streams: Vec<TimedStream>,
    connections: &mut [&mut dyn Connection],
) -> Result<Vec<Exchange>, WorkloadError> {
    match client.driver() {
        Driver::Thread => on_threads(client, schedule, streams, connections),
        Driver::Reactor => {
            let finished = join_all(streams.into_iter().map(|stream| on_reactor(client, schedule, stream))).await;
            Ok(finished.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }
    }
}

async fn on_reactor(
    client: &Client<'_>,
    schedule: Schedule,
    stream: TimedStream,
) -> Result<Vec<Exchange>, WorkloadError> {
    let TimedStream { stream: Stream { mut sender, mut receiver, .. }, client_port, due } = stream;
    let pace = Pace::new(client.driver())?;
    let (record, over) = (Record::default(), AtomicBool::new(false));
    let failure = {
        let receiving = record.receive(client, schedule, receiver.as_mut(), due.len(), &over);
        tokio::pin!(receiving);
        let (failure, has_ended) = tokio::select! {
            biased;
            () = &mut receiving => (None, true),
            failure = record.send(client, schedule, &pace, sender.as_mut(), &due) => (failure, false),
        };
        if failure.is_none() && !has_ended {
            // The last reply may take as long as the timeout.
            let rest = async {
                receiving.await;
                Ok(())
            };
            let _ = client.within("cannot receive", rest).await;
        }
        failure
    };
    let _ = client.driver().within(FINISH_TIMEOUT, "cannot finish", sender.finish()).await;
    Ok(record.close(client, schedule, client_port, &due, failure.as_ref()))
}

fn on_threads(
    client: &Client<'_>,
    schedule: Schedule,
    streams: Vec<TimedStream>,
    connections: &mut [&mut dyn Connection],
) -> Result<Vec<Exchange>, WorkloadError> {
    let mut running = Vec::new();
    for TimedStream { stream: Stream { sender, receiver, .. }, client_port, due } in streams {
        running.push((sender, receiver, Record::default(), client_port, due));
    }
    let over = AtomicBool::new(false);
    let (over, clock) = (&over, client.context.clock());
    let failures = std::thread::scope(|scope| {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        for (sender, receiver, record, _, due) in &mut running {
            let (record, due) = (&*record, &*due);
            receivers.push(client.context.spawn(scope, Side::Forward, move || {
                Ok(Driver::Thread.run(record.receive(client, schedule, receiver.as_mut(), due.len(), over))?)
            })?);
            senders.push(client.context.spawn(scope, Side::Forward, move || {
                let pace = Pace::new(Driver::Thread)?;
                Ok(Driver::Thread.run(record.send(client, schedule, &pace, sender.as_mut(), due))?)
            })?);
        }
        let failures: Vec<Option<TransportError>> =
            senders.into_iter().map(|sender| Ok(join(sender)?.0)).collect::<Result<_, WorkloadError>>()?;
        // The last reply may take as long as the timeout; whoever still waits then is woken.
        let deadline = clock.now() + Duration::from_nanos(client.timeout().as_nanos() as u64);
        let failed = failures.iter().any(Option::is_some);
        while !receivers.iter().all(std::thread::ScopedJoinHandle::is_finished) && clock.now() < deadline && !failed {
            std::thread::park_timeout(LOOK_INTERVAL);
        }
        over.store(true, Ordering::Release);
        for connection in connections {
            connection.abort();
        }
        receivers.into_iter().try_for_each(|receiver| join(receiver).map(|_| ()))?;
        Ok::<_, WorkloadError>(failures)
    })?;
    let ended = running.into_iter().zip(failures);
    Ok(ended
        .flat_map(|((_, _, record, port, due), failure)| record.close(client, schedule, port, &due, failure.as_ref()))
        .collect())
}

/// Messages sent and replies received: shared by a stream's sender and receiver.
#[derive(Default)]
struct Record {
    entries: Mutex<Entries>,
}

#[derive(Default)]
struct Entries {
    samples: HashMap<u64, Sample>,
    /// Numbers awaiting a reply, by their visible part.
    waiting: HashMap<u64, u64>,
    replies: usize,
}

impl Record {
    /// Sends every message at its time. Returns the reason for an early end, if any.
    async fn send(
        &self,
        client: &Client<'_>,
        schedule: Schedule,
        pace: &Pace,
        sender: &mut dyn Sender,
        all: &[Due],
    ) -> Option<TransportError> {
        let clock = client.context.clock();
        let mut message = client.messages().buffer(schedule.size);
        for due in all {
            let intended = schedule.start + due.after;
            if !client.until_due(pace, intended).await {
                return None;
            }
            client.messages().write(&mut message, due.number);
            let sample = Sample {
                intended: Some(intended),
                sent: Some(clock.now()),
                sent_bytes: schedule.size as u64,
                outcome: Outcome::Timeout,
                ..due.sample()
            };
            if let Ok(mut entries) = self.entries.lock() {
                entries.waiting.insert(message::read(&message), due.number);
                entries.samples.insert(due.number, sample);
            }
            if let Err(error) = client.within("cannot send", sender.send(&message)).await {
                if client.features().datagram {
                    continue;
                }
                return Some(error);
            }
            if let (Some(position), Ok(mut entries)) = (sender.position(), self.entries.lock())
                && let Some(sample) = entries.samples.get_mut(&due.number)
            {
                sample.positions[0] = Some(position);
            }
        }
        None
    }

    /// Matches replies with messages by the visible part of their numbers, until all are there.
    async fn receive(
        &self,
        client: &Client<'_>,
        schedule: Schedule,
        receiver: &mut dyn Receiver,
        expected: usize,
        over: &AtomicBool,
    ) {
        let clock = client.context.clock();
        let mut reply = vec![0; schedule.size];
        loop {
            let received = receiver.receive(&mut reply).await;
            let now = clock.now();
            match received {
                Ok(length) if length == schedule.size => {
                    if self.note_reply(client, message::read(&reply), now, receiver.position()) == expected {
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

    /// Notes a reply, and returns the count. A reply to an abandoned message, or a second copy, matches nothing.
    fn note_reply(&self, client: &Client<'_>, tag: u64, now: Instant, position: Option<Position>) -> usize {
        let Ok(mut entries) = self.entries.lock() else { return 0 };
        let entries = &mut *entries;
        let sample = entries.waiting.remove(&tag).and_then(|number| entries.samples.get_mut(&number));
        if let Some(sample) = sample {
            let rtt = sample.sent.map(|sent| now.saturating_since(sent));
            // A late reply is lost, as in a closed loop.
            if rtt.is_none_or(|rtt| std::time::Duration::from(rtt) <= client.timeout()) {
                sample.received = Some(now);
                sample.received_bytes = sample.sent_bytes;
                sample.positions[1] = position;
                sample.outcome = Outcome::Ok;
                client.context.progress.exchange_done(rtt.map(Duration::as_nanos));
                entries.replies += 1;
            }
        }
        entries.replies
    }

    /// One exchange for each message, once nothing more can come. `failure` kept the last ones from being sent.
    fn close(
        self,
        client: &Client<'_>,
        schedule: Schedule,
        client_port: u16,
        all: &[Due],
        failure: Option<&TransportError>,
    ) -> Vec<Exchange> {
        let mut entries = self.entries.into_inner().unwrap_or_default();
        let not_sent = failure.cloned().unwrap_or_else(|| {
            TransportError::with("cannot send", Outcome::Error, "the connection ended before it was time")
        });
        all.iter()
            .map(|due| {
                let Some(sample) = entries.samples.remove(&due.number) else { return due.unsent(client, &not_sent) };
                let ok = sample.outcome == Outcome::Ok;
                if !ok {
                    client.context.progress.exchange_done(None);
                }
                let (sent, tag) = (sample.sent, Some(client.messages().tag(due.number, schedule.size)));
                let mut exchange = Exchange::new(sample, if ok { Ok(()) } else { Err(no_reply(client)) });
                exchange.trace = sent.map(|not_before| Trace { client_port, not_before, tag });
                exchange
            })
            .collect()
    }
}

fn no_reply(client: &Client<'_>) -> TransportError {
    let cause = format!("no reply came within {} s", client.timeout().as_secs_f64());
    TransportError::with("cannot receive", Outcome::Timeout, cause)
}
