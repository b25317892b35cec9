//! Connect: setting up connections, and closing each at once.

use crate::config::Connect;
use crate::context::Context;
use crate::server::Seen;
use crate::{Measured, Sample, WorkloadError, session};
use crosswind_transport::{Connection, Outcome, SocketReadback};
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub fn run(config: &Connect, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let Some(transport) = crosswind_transport::find(&config.transport) else { return Ok(Measured::default()) };
    let timeout = Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    // The server waits for the client's orderly end.
    let handler = |_: &AtomicBool, connection: &mut dyn Connection, _: &mut Vec<Seen>| {
        let mut nothing = [0; 1];
        let _ = connection.receive_some(&mut nothing);
    };
    let readback: OnceLock<SocketReadback> = OnceLock::new();
    let client = |lane: u32| {
        let clock = context.clock();
        let mut samples = Vec::new();
        for number in (u64::from(lane)..config.count).step_by(config.connections as usize) {
            let mut sample = Sample::new(number, lane);
            let before = clock.now();
            sample.sent = Some(before);
            match transport.connect(context.server_address(), &context.settings, timeout) {
                Ok(connection) => {
                    sample.connect_ns = Some((clock.now() - before).as_nanos());
                    sample.outcome = Outcome::Ok;
                    if readback.get().is_none()
                        && let Ok(found) = connection.readback()
                    {
                        let _ = readback.set(found);
                    }
                }
                Err(e) => sample.outcome = e.outcome,
            }
            context.progress.exchange_done(sample.connect_ns);
            samples.push(sample);
        }
        Ok(samples)
    };
    let session = session::run(context, transport, timeout, config.connections, &handler, &client)?;
    Ok(Measured {
        samples: session.results,
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        warnings: Vec::new(),
    })
}
