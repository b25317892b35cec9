//! Open loop: each message is sent when it is time, whatever the fate of the others. The intended time is kept beside
//! the actual one, so a delayed sender hides no delay (coordinated omission).
//!
//! A timed stream has one task or thread to send messages and another to receive answers. If every message needs a
//! stream of its own (HTTP), each exchange is one task.

use crate::client::{Client, exchange};
use crate::exchange::Exchange;
use crate::pace::Pace;
use crate::schedule::{Due, Schedule};
use crate::timed_streams::{self, TimedStream};
use crate::{Sample, WorkloadError};
use crosswind_transport::{Connection, Purpose};
use crosswind_units::Duration;
use futures_util::stream::{FuturesUnordered, StreamExt};

/// Sends the messages with these `numbers` over one connection, message `n` at n / `rate_per_s` after the start.
pub async fn run_client(
    client: &Client<'_>,
    rate_per_s: f64,
    alone: bool,
    numbers: impl Iterator<Item = u64>,
) -> Result<Vec<Exchange>, WorkloadError> {
    let interval_ns = 1e9 / rate_per_s;
    let due: Vec<Due> = numbers
        .map(|number| Due {
            number,
            stream: 0,
            connection: client.number,
            after: Duration::from_nanos((number as f64 * interval_ns) as u64),
        })
        .collect();
    let mut opened = match client.open().await {
        Ok(opened) => opened,
        Err(error) => return Ok(due.iter().map(|due| due.unsent(client, &error)).collect()),
    };
    if alone {
        client.context.setup_done();
    }
    let connection = opened.connection.as_mut();
    let schedule = Schedule::starting_now(client.context, client.sizes.request);
    let mut exchanges = if client.stream_per_message() {
        requests(client, schedule, &[&*connection], &due).await?
    } else {
        match client.within("cannot open a stream", connection.open(Purpose::Messages)).await {
            Ok(stream) => {
                let client_port = connection.client_port();
                timed_streams::run(client, schedule, vec![TimedStream { stream, client_port, due }], &mut [connection])
                    .await?
            }
            Err(error) => due.iter().map(|due| due.unsent(client, &error)).collect(),
        }
    };
    if client.connections_take_packets() {
        let first = exchanges.iter_mut().find(|exchange| exchange.sample.exchange == u64::from(client.number));
        if let Some(first) = first {
            opened.note_phases(&mut first.sample);
        }
    }
    client.close(opened.connection.as_mut()).await;
    Ok(exchanges)
}

/// Sends every message on a stream of its own, on its connection among `connections`.
pub async fn requests(
    client: &Client<'_>,
    schedule: Schedule,
    connections: &[&dyn Connection],
    all: &[Due],
) -> Result<Vec<Exchange>, WorkloadError> {
    let pace = Pace::new(client.driver())?;
    let mut under_way = FuturesUnordered::new();
    let mut done = Vec::with_capacity(all.len());
    for due in all {
        let waiting = client.until_due(&pace, schedule.start + due.after);
        tokio::pin!(waiting);
        let is_on = loop {
            tokio::select! {
                biased;
                is_on = &mut waiting => break is_on,
                Some(exchange) = under_way.next(), if !under_way.is_empty() => done.push(exchange),
            }
        };
        if !is_on {
            break;
        }
        let connection = connections[due.connection as usize % connections.len()];
        under_way.push(request(client, schedule, connection, *due));
    }
    while let Some(exchange) = under_way.next().await {
        done.push(exchange);
    }
    Ok(done)
}

async fn request(client: &Client<'_>, schedule: Schedule, connection: &dyn Connection, due: Due) -> Exchange {
    let clock = client.context.clock();
    let mut message = client.messages().buffer(schedule.size);
    client.messages().write(&mut message, due.number);
    let mut reply = vec![0; schedule.size];
    let before = clock.now();
    let result = client
        .within("cannot exchange", async {
            let mut stream = connection.open(Purpose::Messages).await?;
            let length = exchange(&mut stream, &message, &mut reply).await?;
            let positions = stream.positions();
            stream.sender.finish().await?;
            Ok((length, positions))
        })
        .await;
    let after = clock.now();
    let sample = Sample {
        intended: Some(schedule.start + due.after),
        sent: Some(before),
        sent_bytes: schedule.size as u64,
        ..due.sample()
    };
    let is_expected = |length: usize| reply[..length] == message[..];
    let exchange = Exchange::replied(sample, &message, connection.client_port(), after, result, is_expected);
    let is_done = exchange.error.is_none();
    client.context.progress.exchange_done(is_done.then(|| (after - before).as_nanos()));
    exchange
}
