//! Clients run against a server: here, with a peer in the place of either, or with the server on another machine.

use crate::WorkloadError;
use crate::client_server::{ClientServer, add_server_side, check_settings, measured_of, run_clients};
use crate::context::Context;
use crate::measured::Measured;
use crate::peer;
use crate::served::{Clocks, FarServed, Served};
use crate::server::Server;
use crate::server_observation::ObservationsByPort;
use crate::warning::Warning;
use crate::workload::Runnable;
use crosswind_units::Duration;
use std::sync::OnceLock;

impl<W: ClientServer> Runnable for W {
    /// Runs the clients and the server, wherever these are, and joins both sides' observations.
    fn run(&self, context: &Context<'_>) -> Result<Measured, WorkloadError> {
        if context.peers.any() {
            return peer::session::run(self, context);
        }
        let readback = OnceLock::new();
        let clients = || run_clients(self, context, &readback);
        let ((mut exchanges, client_cpu_ns), far) = if let Some(server) = context.far_server {
            (clients()?, server.stop()?)
        } else {
            let mut ran = None;
            let served = serve(self, context, || ran = Some(clients()));
            // Where both fail, the clients' error counts.
            let ran = ran.transpose()?;
            let far = FarServed { served: served?, clocks: Clocks::Same, uncertainty: Duration::ZERO };
            (ran.ok_or(WorkloadError::Panicked)?, far)
        };
        let FarServed { served, clocks, uncertainty } = far;
        let expected = context.far_server.is_some() && !served.observations.is_empty();
        let observations = ObservationsByPort::new(served.observations, uncertainty);
        let matched = add_server_side(self, &mut exchanges, &observations, clocks);
        let sockets = [readback.into_inner(), served.readback];
        check_settings(context, &sockets)?;
        let cpu_ns = [client_cpu_ns, served.cpu_ns];
        let mut measured = Measured { sockets, cpu_ns, ..measured_of(context, exchanges) };
        measured.warnings.extend((expected && matched == 0).then(Warning::addresses_translated));
        Ok(measured)
    }

    fn serve(&self, context: &Context<'_>, until_done: &mut dyn FnMut()) -> Result<Served, WorkloadError> {
        serve(self, context, until_done)
    }
}

/// Listens, calls `until_done`, which returns when the clients are done, and stops.
fn serve<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    until_done: impl FnOnce(),
) -> Result<Served, WorkloadError> {
    let serve = workload.server(context.clock());
    let server = Server::new(context, workload.needs(), &serve);
    std::thread::scope(|scope| {
        server.start(scope, workload.clients())?;
        until_done();
        server.stop();
        Ok::<_, WorkloadError>(())
    })?;
    server.into_served()
}
