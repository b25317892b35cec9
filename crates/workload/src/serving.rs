//! The loop of every server, a workload's or alone: it accepts connections and serves their streams.

use crosswind_transport::{Connection, Features, Listener, Stream, Streams, TransportError, serving};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

/// A server on a reactor waits for the next connection for as long as it takes: something else ends it.
pub const FOREVER: Duration = Duration::from_hours(24);

/// The event a reactor's server was waiting for.
enum Awaited {
    Stopped,
    Accepted(Result<Box<dyn Connection>, TransportError>),
    Served,
}

/// On a reactor: accepts connections and serves them side by side with `serve`, until `stop` is done. Each is polled only when
/// it was woken, and so is the wait for the next.
pub async fn serve_connections<S: Future<Output = ()>>(
    listener: &dyn Listener,
    stop: impl Future<Output = ()>,
    serve: impl Fn(Box<dyn Connection>) -> S,
) {
    let mut waiting = FuturesUnordered::<Pin<Box<dyn Future<Output = Awaited> + '_>>>::new();
    waiting.push(Box::pin(async {
        stop.await;
        Awaited::Stopped
    }));
    let next = || Box::pin(async { Awaited::Accepted(listener.accept(FOREVER).await) });
    waiting.push(next());
    while let Some(awaited) = waiting.next().await {
        match awaited {
            Awaited::Stopped => return,
            Awaited::Served => {}
            Awaited::Accepted(accepted) => {
                match accepted {
                    Ok(connection) => {
                        let serving = serve(connection);
                        waiting.push(Box::pin(async {
                            serving.await;
                            Awaited::Served
                        }));
                    }
                    // A connection gone before it was accepted, or no file descriptors: the client sees it.
                    Err(_) => tokio::task::yield_now().await,
                }
                waiting.push(next());
            }
        }
    }
}

/// Serves one connection's streams with `serve` to their ends: its only one, or all the client opens, side by side.
pub async fn serve_streams<S: Future<Output = ()>>(
    features: Features,
    connection: &mut dyn Connection,
    mut serve: impl FnMut(&dyn Connection, Stream) -> S,
) {
    if features.streams == Streams::One {
        if let Ok(stream) = connection.accept().await {
            serve(connection, stream).await;
        }
    } else {
        serving::side_by_side(connection, serve).await;
    }
}
