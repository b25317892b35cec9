//! A client and a server on two machines: the interface between a workload's two halves.

use crate::WorkloadError;
use crate::client_server::{ClientServer, add_server_side, check_settings, measured_of, run_clients};
use crate::context::Context;
use crate::measured::Measured;
use crate::served::{FarServed, FarServer, Served};
use crate::server::Server;
use crate::server_observation::ObservationsByPort;
use crate::warning::Warning;
use std::sync::OnceLock;

/// Runs the clients against a server on another machine.
pub fn run_clients_alone<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    server: &dyn FarServer,
) -> Result<Measured, WorkloadError> {
    let readback = OnceLock::new();
    let (mut exchanges, client_cpu_ns) = run_clients(workload, context, &readback)?;
    let FarServed { served, clocks, uncertainty } = server.stop()?;
    let expected = !served.observations.is_empty();
    let observations = ObservationsByPort::new(served.observations, uncertainty);
    let matched = add_server_side(workload, &mut exchanges, &observations, clocks);
    let sockets = [readback.into_inner(), served.readback];
    check_settings(context, &sockets)?;
    let mut measured = Measured { sockets, cpu_ns: [client_cpu_ns, served.cpu_ns], ..measured_of(context, exchanges) };
    if expected && matched == 0 {
        measured.warnings.push(Warning::AddressesTranslated);
    }
    Ok(measured)
}

/// Serves clients on another machine: listens, calls `until_done`, which returns when they are done, and stops.
pub fn serve<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    until_done: &mut dyn FnMut(),
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
