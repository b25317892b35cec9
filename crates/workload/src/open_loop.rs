//! Open loop: each message is sent when it is time, whatever became of the others. Two threads a connection: one sends, one
//! receives. The intended time is kept beside the actual one, so that a sender held up hides no delay (coordinated omission).

use crate::lane::{Lane, Sent};
use crate::{Sample, WorkloadError, message};
use crosswind_path::Side;
use crosswind_transport::{Connection, Outcome};
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// What the sending thread tells the receiving one.
struct Announced {
    number: u64,
    intended: Instant,
    sent: Instant,
}

pub(crate) fn run(lane: &Lane<'_>) -> Result<Vec<Sent>, WorkloadError> {
    let numbers: Vec<u64> = lane.numbers().collect();
    let (mut sender, took) = match lane.open() {
        Ok(opened) => opened,
        Err(e) => return Ok(numbers.into_iter().map(|number| unsent(lane, number, e.outcome)).collect()),
    };
    let receiver = sender.try_clone()?;
    let client_port = sender.client_port();
    let size = lane.config.size_bytes as usize;
    let (announce, announced) = channel();
    let over = AtomicBool::new(false);
    let expected = numbers.len();

    let (mut samples, failure) = std::thread::scope(|scope| {
        let over = &over;
        let receiving = lane
            .context
            .spawn(scope, Side::Forward, move || Ok(receive(lane, receiver, &announced, expected, over)))?;
        let failure = send(lane, sender.as_mut(), &numbers, &announce);
        drop(announce);
        // The last reply has one timeout to come; whoever still waits then is woken.
        let clock = lane.context.clock();
        let deadline = clock.now() + Duration::from_nanos(lane.timeout.as_nanos() as u64);
        while !receiving.is_finished() && clock.now() < deadline && failure.is_none() {
            std::thread::park_timeout(std::time::Duration::from_millis(5));
        }
        over.store(true, Ordering::Release);
        let _ = sender.abort();
        let samples = crate::context::join(receiving)?.0;
        Ok::<_, WorkloadError>((samples, failure))
    })?;

    let mut all: Vec<Sent> = Vec::with_capacity(expected);
    for number in numbers {
        let mut one = match samples.remove(&number) {
            Some(sample) => Sent { sample, client_port, tag: message::visible(number, size) },
            None => unsent(lane, number, failure.unwrap_or(Outcome::Error)),
        };
        if number == u64::from(lane.connection) && !lane.transport.is_datagram() {
            one.sample.connect_ns = Some(took);
        }
        all.push(one);
    }
    Ok(all)
}

/// Sends every message at its time. Returns what ended it early, if anything did.
fn send(
    lane: &Lane<'_>,
    connection: &mut dyn Connection,
    numbers: &[u64],
    announce: &Sender<Announced>,
) -> Option<Outcome> {
    let clock = lane.context.clock();
    let interval = 1e9 / lane.config.rate_per_s.unwrap_or(1.0);
    let mut message = message::buffer(lane.config.size_bytes as usize);
    let start = clock.now() + Duration::from_millis(1);
    for &number in numbers {
        let intended = start + Duration::from_nanos((number as f64 * interval) as u64);
        let wait = intended.saturating_since(clock.now());
        if wait > Duration::ZERO {
            std::thread::sleep(wait.into());
        }
        message::write(&mut message, number);
        let sent = clock.now();
        // The receiver goes only when the connection does.
        let _ = announce.send(Announced { number, intended, sent });
        if let Err(e) = connection.send(&message) {
            if lane.transport.is_datagram() {
                continue;
            }
            return Some(e.outcome);
        }
    }
    None
}

/// Matches replies with messages: in order on a stream, by what is visible of their number among datagrams.
fn receive(
    lane: &Lane<'_>,
    mut connection: Box<dyn Connection>,
    announced: &Receiver<Announced>,
    expected: usize,
    over: &AtomicBool,
) -> HashMap<u64, Sample> {
    let clock = lane.context.clock();
    let size = lane.config.size_bytes as usize;
    let mut reply = vec![0; size];
    let mut samples: HashMap<u64, Sample> = HashMap::new();
    let mut waiting: HashMap<u64, u64> = HashMap::new();
    let mut replies = 0;
    while replies < expected {
        let received = connection.receive(&mut reply);
        let now = clock.now();
        while let Ok(one) = announced.try_recv() {
            waiting.insert(message::visible(one.number, size), one.number);
            samples.insert(one.number, announced_sample(lane, &one));
        }
        match received {
            Ok(length) if length == size => {
                // A reply to a message given up, or a second copy, matches nothing.
                let Some(number) = waiting.remove(&message::read(&reply[..length])) else { continue };
                if let Some(sample) = samples.get_mut(&number) {
                    let rtt = sample.sent.map(|sent| now.saturating_since(sent));
                    if rtt.is_some_and(|rtt| std::time::Duration::from(rtt) > lane.timeout) {
                        continue; // too late, as in a closed loop
                    }
                    sample.received = Some(now);
                    sample.received_bytes = length as u64;
                    sample.outcome = Outcome::Ok;
                    lane.context.progress.exchange_done(rtt.map(Duration::as_nanos));
                    replies += 1;
                }
            }
            Ok(_) if over.load(Ordering::Acquire) => break,
            Ok(_) => {}
            Err(e) if e.outcome == Outcome::Timeout && !over.load(Ordering::Acquire) => {}
            Err(_) => break,
        }
    }
    while let Ok(one) = announced.recv() {
        samples.entry(one.number).or_insert_with(|| announced_sample(lane, &one));
    }
    for _ in replies..samples.len() {
        lane.context.progress.exchange_done(None);
    }
    samples
}

fn announced_sample(lane: &Lane<'_>, one: &Announced) -> Sample {
    Sample {
        intended: Some(one.intended),
        sent: Some(one.sent),
        sent_bytes: lane.config.size_bytes,
        outcome: Outcome::Timeout,
        ..Sample::new(one.number, lane.connection)
    }
}

fn unsent(lane: &Lane<'_>, number: u64, outcome: Outcome) -> Sent {
    lane.context.progress.exchange_done(None);
    Sent { sample: Sample { outcome, ..Sample::new(number, lane.connection) }, client_port: 0, tag: 0 }
}
