//! A client and a server on two machines: what the two halves of a workload are to each other then.

use crate::WorkloadError;
use crate::context::Context;
use crate::measured::Measured;
use crate::seen::SeenByPort;
use crate::server::{Served, Server};
use crate::session::{ClientServer, add_server_side, check_settings, measured_of, run_clients};
use std::sync::OnceLock;

/// How the times of a client and of its server go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They have one clock.
    Same,
    /// They have two, whose offset is known well enough for one-way delays.
    Compared,
    /// They have two, and only times of the same end can be compared.
    Apart,
}

/// What a server on another machine leaves behind.
pub struct FarServed {
    /// What it leaves behind; the times in it are those of the client's clock as well as they can be.
    pub served: Served,
    /// How its times go together with the client's.
    pub clocks: Clocks,
    /// By how much its times may be wrong.
    pub uncertainty: crosswind_units::Duration,
}

/// The server of a cell, on another machine. It listens already.
pub trait FarServer: Sync {
    /// Ends it, and returns what it leaves behind.
    fn stop(&self) -> Result<FarServed, WorkloadError>;
}

/// Runs the clients against a server on another machine.
pub fn run_clients_alone<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    server: &dyn FarServer,
) -> Result<Measured, WorkloadError> {
    let readback = OnceLock::new();
    let (mut exchanges, client_cpu_ns) = run_clients(workload, context, &readback)?;
    let FarServed { served, clocks, uncertainty } = server.stop()?;
    let expected = !served.seen.is_empty();
    let seen = SeenByPort::new(served.seen, uncertainty);
    let matched = add_server_side(workload, &mut exchanges, &seen, clocks);
    let sockets = [readback.into_inner(), served.readback];
    check_settings(context, &sockets)?;
    let mut measured = Measured { sockets, cpu_ns: [client_cpu_ns, served.cpu_ns], ..measured_of(context, exchanges) };
    if expected && matched == 0 {
        measured.warnings.push(
            "the server saw the client's connections come from other ports: something on the way translates addresses, so \
             that nothing is known of single exchanges at the server"
                .into(),
        );
    }
    Ok(measured)
}

/// Serves clients on another machine: starts to listen, calls `until_done`, which returns when they need the server no more, and stops.
pub fn serve<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    until_done: &mut dyn FnMut(),
) -> Result<Served, WorkloadError> {
    let serve = workload.server(context.clock());
    let server = Server::new(context, workload.needs(), &serve);
    std::thread::scope(|scope| {
        server.start(scope, workload.lanes())?;
        until_done();
        server.stop();
        Ok::<_, WorkloadError>(())
    })?;
    server.into_served()
}
