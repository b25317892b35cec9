//! A workload's clients and its server: the frame of every workload on a transport, wherever its ends are.

use crate::client::Client;
use crate::context::{Context, join};
use crate::ending::Ending;
use crate::exchange::{Exchange, first_errors};
use crate::measured::Measured;
use crate::message::Sizes;
use crate::needs::ConnectionNeeds;
use crate::served::Clocks;
use crate::server::ServeStream;
use crate::server_observation::{ObservationsByPort, ServerObservation};
use crate::workload::Workload;
use crate::{Sample, WorkloadError};
use crosswind_host::Clock;
use crosswind_path::Side;
use crosswind_transport::{Driver, Outcome, SocketReadback, TransportError};
use futures_util::future::join_all;
use std::sync::OnceLock;

/// A workload with clients and a server on connections. `session` runs it.
pub(crate) trait ClientServer: Workload {
    /// Serves each stream opened by a client.
    type Server: ServeStream;

    /// Its demands on connections.
    fn needs(&self) -> ConnectionNeeds;

    /// How many clients run side by side.
    fn clients(&self) -> u32 {
        1
    }

    /// Sizes of messages and answers.
    fn sizes(&self) -> Sizes {
        Sizes::both(1)
    }

    fn server(&self, clock: Clock) -> Self::Server;

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError>;

    /// Adds the server's observations of an exchange to its sample: when it had the message and when it began to answer.
    /// An error means the exchange failed after all.
    fn add_server_side(
        &self,
        sample: &mut Sample,
        observation: &ServerObservation,
        clocks: Clocks,
    ) -> Result<(), TransportError> {
        // Observations by the server after the reply's arrival belong to a later message.
        let is_own = sample.received.is_none_or(|received| observation.received <= received);
        if clocks != Clocks::Apart && is_own {
            sample.server_received = Some(observation.received);
            sample.server_sent = Some(observation.sent);
            sample.positions[1] = sample.positions[1].or(observation.position);
        }
        Ok(())
    }
}

/// Our own clients' measurements, without their sockets and threads.
pub fn measured_of(context: &Context<'_>, mut exchanges: Vec<Exchange>) -> Measured {
    let unfinished = leave_out_unfinished(context, &mut exchanges);
    exchanges.sort_by_key(|exchange| exchange.sample.exchange);
    let first_errors = first_errors(&exchanges);
    let (mut samples, mut objects) = (Vec::with_capacity(exchanges.len()), Vec::new());
    for mut exchange in exchanges {
        samples.push(exchange.sample);
        objects.append(&mut exchange.objects);
    }
    Measured {
        samples,
        first_errors,
        objects,
        unfinished,
        setup: context.setup(),
        warnings: context.resumptions.warning().into_iter().collect(),
        ..Measured::default()
    }
}

/// Leaves out exchanges interrupted or prevented by the end of their flow. Returns the number interrupted.
fn leave_out_unfinished(context: &Context<'_>, exchanges: &mut Vec<Exchange>) -> u64 {
    let Some(end) = context.ending.and_then(Ending::at) else { return 0 };
    let mut unfinished = 0;
    exchanges.retain(|Exchange { sample, .. }| {
        let is_done = sample.outcome == Outcome::Ok || sample.failed.is_some_and(|failed| failed < end);
        unfinished += u64::from(!is_done && sample.sent.is_some());
        is_done
    });
    unfinished
}

/// Runs every client to its end. Returns their exchanges and their threads' CPU time.
pub fn run_clients<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    readback: &OnceLock<SocketReadback>,
) -> Result<(Vec<Exchange>, u64), WorkloadError> {
    let needs = workload.needs();
    let run = async |number: u32| {
        let client = Client { context, needs, number, sizes: workload.sizes(), readback };
        client.prime().await;
        workload.client(&client).await
    };
    let (run, clients) = (&run, workload.clients());
    let finished = std::thread::scope(|scope| {
        let threads: Vec<_> = match needs.transport.features().driver {
            Driver::Thread => (0..clients)
                .map(|number| context.spawn(scope, Side::Forward, move || Driver::Thread.run(run(number))?))
                .collect(),
            Driver::Reactor => vec![context.spawn(scope, Side::Forward, move || {
                let all = Driver::Reactor.run(join_all((0..clients).map(run)))?;
                Ok(all.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
            })],
        };
        // Every thread is joined before the first error counts: the scope would wait for the others anyway.
        threads.into_iter().map(|thread| thread.and_then(join)).collect::<Vec<_>>()
    });
    let (mut exchanges, mut cpu_ns) = (Vec::new(), 0);
    for result in finished {
        let (mut own, used_ns) = result?;
        exchanges.append(&mut own);
        cpu_ns += used_ns;
    }
    Ok((exchanges, cpu_ns))
}

/// Adds the server's observations. Returns the number of matching exchanges.
pub fn add_server_side<W: ClientServer>(
    workload: &W,
    exchanges: &mut [Exchange],
    observations: &ObservationsByPort,
    clocks: Clocks,
) -> u64 {
    let mut matched = 0;
    for exchange in exchanges {
        exchange.sample.client_port = exchange.trace.map(|trace| trace.client_port).or(exchange.sample.client_port);
        let Some(observation) = exchange.trace.and_then(|trace| observations.find(trace)) else { continue };
        matched += 1;
        if let Err(error) = workload.add_server_side(&mut exchange.sample, &observation, clocks) {
            exchange.fail(error);
        }
    }
    matched
}

/// Whether the kernel accepted the sockets' settings.
pub fn check_settings(context: &Context<'_>, sockets: &[Option<SocketReadback>; 2]) -> Result<(), WorkloadError> {
    for readback in sockets.iter().flatten() {
        if let Some(mismatch) = context.settings.socket.mismatch(readback) {
            return Err(WorkloadError::Setting(mismatch));
        }
    }
    Ok(())
}
