//! One run of clients against a server: the frame of every workload.

use crate::WorkloadError;
use crate::context::{Context, join};
use crate::server::{Handler, SeenByPort, Server};
use crosswind_path::Side;
use crosswind_transport::{SocketReadback, Transport};
use std::time::Duration;

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

/// Starts a server that serves by `handler`, runs `client` once for each of `connections` side by side, and stops the server.
pub fn run<T: Send>(
    context: &Context<'_>,
    transport: &'static dyn Transport,
    timeout: Duration,
    connections: u32,
    handler: &Handler<'_>,
    client: &(dyn Fn(u32) -> Result<Vec<T>, WorkloadError> + Sync),
) -> Result<Session<T>, WorkloadError> {
    let server = Server::listen(context, transport, timeout, handler)?;
    let (results, client_cpu) = std::thread::scope(|scope| {
        server.start(scope, connections)?;
        let clients: Vec<_> =
            (0..connections).map(|number| context.spawn(scope, Side::Forward, move || client(number))).collect();
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
