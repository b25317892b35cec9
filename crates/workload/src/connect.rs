//! Connect: setting up connections, and closing each at once.

use crate::answers::Answers;
use crate::config::Connect;
use crate::context::Context;
use crate::lane::{Lane, note_phases};
use crate::message::{Messages, Sizes};
use crate::{Measured, Sample, WorkloadError, session};
use crosswind_transport::{Outcome, Payload, Resumption};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub fn run(config: &Connect, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let transport = config.transport;
    let timeout = Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let (clock, messages) = (context.clock(), Messages { payload: Payload::Binary });
    let (answers, readback) = (Arc::new(Answers::new(clock, Sizes::both(1), messages)), OnceLock::new());
    let session = session::run(
        context,
        transport,
        timeout,
        config.connections,
        &|serve| Arc::clone(&answers).work(serve),
        &|number| {
            let lane =
                Lane { context, transport, timeout, number, messages, sizes: Sizes::both(1), readback: &readback };
            Box::pin(async move {
                lane.prime().await;
                let mut samples = Vec::new();
                for exchange in (u64::from(number)..config.count).step_by(config.connections as usize) {
                    samples.push(set_up(&lane, exchange).await);
                }
                Ok(samples)
            })
        },
    )?;
    Ok(Measured {
        samples: session.results,
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        ..Measured::default()
    })
}

async fn set_up(lane: &Lane<'_>, exchange: u64) -> Sample {
    let mut sample = Sample::new(exchange, lane.number);
    sample.sent = Some(lane.context.clock().now());
    match lane.open().await {
        Ok(mut opened) => {
            note_phases(&mut sample, opened.took_ns, &opened.phases);
            sample.outcome = Outcome::Ok;
            if lane.context.settings.resumption != Resumption::None {
                // Without the ticket that comes with it the next connection has nothing to resume.
                let _ = lane.settle(opened.connection.as_ref()).await;
            }
            lane.close(opened.connection.as_mut()).await;
        }
        Err(e) => sample.outcome = e.outcome,
    }
    lane.context.progress.exchange_done(sample.connect_ns);
    sample
}
