//! Clients run against a server: here, with a peer in the place of either, or with the server on another machine.

use crate::WorkloadError;
use crate::client_server::{ClientServer, add_server_side, check_settings, measured_of, run_clients};
use crate::context::Context;
use crate::far::run_clients_alone;
use crate::measured::Measured;
use crate::peer;
use crate::seen::SeenByPort;
use crate::served::Clocks;
use crate::server::Server;
use crosswind_units::Duration;
use std::sync::OnceLock;

/// Starts the server, runs the clients side by side, stops the server, and puts together what both saw.
pub fn run<W: ClientServer>(workload: &W, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    if context.peers.any() {
        return peer::session::run(workload, context);
    }
    if let Some(server) = context.far_server {
        return run_clients_alone(workload, context, server);
    }
    let needs = workload.needs();
    let serve = workload.server(context.clock());
    let server = Server::new(context, needs, &serve);
    let readback = OnceLock::new();
    let (mut exchanges, client_cpu_ns) = std::thread::scope(|scope| {
        server.start(scope, workload.lanes())?;
        let clients = run_clients(workload, context, &readback);
        server.stop();
        clients
    })?;
    let served = server.into_served()?;
    add_server_side(workload, &mut exchanges, &SeenByPort::new(served.seen, Duration::ZERO), Clocks::Same);
    let sockets = [readback.into_inner(), served.readback];
    check_settings(context, &sockets)?;
    Ok(Measured { sockets, cpu_ns: [client_cpu_ns, served.cpu_ns], ..measured_of(context, exchanges) })
}
