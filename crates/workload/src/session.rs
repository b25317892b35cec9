//! Clients run against a server: here, with a peer in the place of either, or with the server on another machine.

use crate::WorkloadError;
use crate::client_server::{ClientServer, add_server_side, check_settings, measured_of, run_clients};
use crate::context::Context;
use crate::far;
use crate::measured::Measured;
use crate::peer;
use crate::served::{Clocks, Served};
use crate::server::Server;
use crate::server_observation::ObservationsByPort;
use crate::workload::Runnable;
use crosswind_units::Duration;
use std::sync::OnceLock;

impl<W: ClientServer> Runnable for W {
    /// Runs the clients and the server, wherever these are.
    fn run(&self, context: &Context<'_>) -> Result<Measured, WorkloadError> {
        if context.peers.any() {
            return peer::session::run(self, context);
        }
        match context.far_server {
            Some(server) => far::run_clients_alone(self, context, server),
            None => run_both(self, context),
        }
    }

    fn serve(&self, context: &Context<'_>, until_done: &mut dyn FnMut()) -> Result<Served, WorkloadError> {
        far::serve(self, context, until_done)
    }
}

/// Starts the server, runs the clients side by side, stops the server, and joins both sides' observations.
fn run_both<W: ClientServer>(workload: &W, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let needs = workload.needs();
    let serve = workload.server(context.clock());
    let server = Server::new(context, needs, &serve);
    let readback = OnceLock::new();
    let (mut exchanges, client_cpu_ns) = std::thread::scope(|scope| {
        server.start(scope, workload.clients())?;
        let clients = run_clients(workload, context, &readback);
        server.stop();
        clients
    })?;
    let served = server.into_served()?;
    add_server_side(
        workload,
        &mut exchanges,
        &ObservationsByPort::new(served.observations, Duration::ZERO),
        Clocks::Same,
    );
    let sockets = [readback.into_inner(), served.readback];
    check_settings(context, &sockets)?;
    Ok(Measured { sockets, cpu_ns: [client_cpu_ns, served.cpu_ns], ..measured_of(context, exchanges) })
}
