//! One run of clients against a server: the frame of every workload.

use crate::WorkloadError;
use crate::context::{Context, join};
use crate::server::{Handler, SeenByPort, Server, Work};
use crosswind_path::Side;
use crosswind_transport::{Driver, SocketReadback, TransportRef};
use futures_util::future::join_all;
use std::time::Duration;

/// What a client does on each of its lanes.
pub type Client<'a, T> = dyn Fn(u32) -> Work<'a, Result<Vec<T>, WorkloadError>> + Sync + 'a;

/// What came of it.
pub struct Session<T> {
    /// What the clients brought back.
    pub results: Vec<T>,
    /// What the server saw.
    pub seen: SeenByPort,
    /// Settings of a server's socket.
    pub server_readback: Option<SocketReadback>,
    /// CPU time of the client's and the server's threads.
    pub cpu_ns: [u64; 2],
}

/// Starts a server that serves by `handler`, runs `client` once for each of `lanes` side by side, and stops the server.
pub fn run<T: Send>(
    context: &Context<'_>,
    transport: TransportRef,
    timeout: Duration,
    lanes: u32,
    handler: &Handler<'_>,
    client: &Client<'_, T>,
) -> Result<Session<T>, WorkloadError> {
    let server = Server::new(context, transport, timeout, handler);
    let (results, client_cpu) = std::thread::scope(|scope| {
        server.start(scope, lanes)?;
        let clients: Vec<_> = match transport.features().driver {
            Driver::Thread => (0..lanes)
                .map(|lane| context.spawn(scope, Side::Forward, move || Driver::Thread.run(client(lane))?))
                .collect(),
            Driver::Reactor => vec![context.spawn(scope, Side::Forward, move || {
                let all = Driver::Reactor.run(join_all((0..lanes).map(client)))?;
                all.into_iter().try_fold(Vec::new(), |mut all, one| {
                    all.append(&mut one?);
                    Ok(all)
                })
            })],
        };
        let joined: Vec<_> = clients.into_iter().map(|client| client.and_then(join)).collect();
        server.stop();
        let (mut results, mut cpu) = (Vec::new(), 0);
        for one in joined {
            let (mut of_client, used) = one?;
            results.append(&mut of_client);
            cpu += used;
        }
        Ok::<_, WorkloadError>((results, cpu))
    })?;
    let (seen, server_readback, server_cpu) = server.into_seen()?;
    Ok(Session { results, seen, server_readback, cpu_ns: [client_cpu, server_cpu] })
}
