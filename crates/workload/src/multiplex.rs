//! Multiplex: messages on several streams, in an open loop. What one stream's losses do to the others' messages is what shows.
//!
//! Streams are the transport's own where one connection has many; where it is one stream, channels of the application in it; and
//! where it cannot be shared, connections. Messages follow each other evenly: stream 0, 1, ..., k-1, 0, ...

use crate::answers::Answers;
use crate::config::Multiplex;
use crate::context::Context;
use crate::echo;
use crate::lane::{Lane, Opened, Sent, note_phases};
use crate::message::{Messages, Sizes};
use crate::open_loop::{Due, Flow, Shape, flows, requests, unsent};
use crate::{Measured, WorkloadError, session};
use crosswind_transport::{Connection, Purpose, Streams, TransportError};
use crosswind_units::Duration;
use std::sync::{Arc, OnceLock};

pub fn run(config: &Multiplex, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let transport = config.transport;
    let timeout = std::time::Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let (clock, messages) = (context.clock(), Messages { payload: config.payload });
    let (answers, readback) =
        (Arc::new(Answers::new(clock, Sizes::both(config.size_bytes), messages)), OnceLock::new());
    let session = session::run(context, transport, timeout, 1, &|serve| Arc::clone(&answers).work(serve), &|number| {
        let lane = Lane {
            context,
            transport,
            timeout,
            number,
            messages,
            sizes: Sizes::both(config.size_bytes),
            readback: &readback,
        };
        Box::pin(async move { streams(config, &lane).await })
    })?;
    Ok(Measured {
        samples: session.results.into_iter().map(|sent| echo::complete(sent, &session.seen)).collect(),
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        ..Measured::default()
    })
}

async fn streams(config: &Multiplex, lane: &Lane<'_>) -> Result<Vec<Sent>, WorkloadError> {
    let features = lane.features();
    let connections = if features.shares_connection { 1 } else { config.streams };
    let due = schedule(config, connections);
    let mut opened = Vec::new();
    for _ in 0..connections {
        match lane.open().await {
            Ok(one) => opened.push(one),
            Err(e) => return Ok(due.iter().map(|due| unsent(lane, due, e.outcome)).collect()),
        }
    }
    lane.context.setup_done();
    let mut all = if lane.stream_per_message() {
        let shape = Shape::now(lane.context, config.size_bytes);
        let connections: Vec<&dyn Connection> = opened.iter().map(|one| one.connection.as_ref()).collect();
        requests(lane, shape, &connections, &due).await?
    } else {
        match open_flows(config, lane, &opened, &due).await {
            Ok(open) => {
                let shape = Shape::now(lane.context, config.size_bytes);
                let mut connections: Vec<&mut dyn Connection> =
                    opened.iter_mut().map(|one| one.connection.as_mut() as &mut dyn Connection).collect();
                flows(lane, shape, open, &mut connections).await?
            }
            Err(e) => due.iter().map(|due| unsent(lane, due, e.outcome)).collect(),
        }
    };
    for (number, one) in opened.iter_mut().enumerate() {
        let first = all.iter_mut().find(|sent| sent.sample.exchange == number as u64);
        if let (Some(first), true) = (first, !features.datagram || features.secure) {
            note_phases(&mut first.sample, one.took_ns, &one.phases);
        }
        lane.close(one.connection.as_mut()).await;
    }
    Ok(all)
}

fn schedule(config: &Multiplex, connections: u32) -> Vec<Due> {
    let streams = u64::from(config.streams);
    let interval = 1e9 / (config.rate_per_s * streams as f64);
    (0..config.messages)
        .map(|number| {
            let stream = (number % streams) as u32;
            Due {
                number,
                stream,
                connection: stream % connections,
                after: Duration::from_nanos((number as f64 * interval) as u64),
            }
        })
        .collect()
}

/// As many flows as there are streams to be told apart by the transport: one for all channels, or one each.
async fn open_flows(
    config: &Multiplex,
    lane: &Lane<'_>,
    opened: &[Opened],
    due: &[Due],
) -> Result<Vec<Flow>, TransportError> {
    let apart = lane.features().streams == Streams::Many || opened.len() > 1;
    let count = if apart { config.streams } else { 1 };
    let mut all = Vec::new();
    for number in 0..count {
        let connection = opened[number as usize % opened.len()].connection.as_ref();
        let stream = lane.within("cannot open a stream", connection.open(Purpose::Messages)).await?;
        let due = due.iter().filter(|due| !apart || due.stream == number).copied().collect();
        all.push(Flow { stream, client_port: connection.client_port(), due });
    }
    Ok(all)
}
