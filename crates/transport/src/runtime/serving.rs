//! Serving a connection's streams, for every server.

use crate::{Connection, Sender, Stream, TransportError};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;

/// Serves a client's streams, all at once, until the connection has ended and each has been served. On a reactor.
pub async fn side_by_side<S: Future<Output = ()>>(
    connection: &mut dyn Connection,
    mut serve: impl FnMut(&dyn Connection, Stream) -> S,
) {
    let mut streams = FuturesUnordered::new();
    loop {
        let accepted = {
            let mut accepting = connection.accept();
            loop {
                tokio::select! {
                    biased;
                    Some(()) = streams.next(), if !streams.is_empty() => {}
                    accepted = &mut accepting => break accepted,
                }
            }
        };
        match accepted {
            Ok(stream) => streams.push(serve(connection, stream)),
            Err(_) => break,
        }
    }
    while streams.next().await.is_some() {}
}

/// Sends `total` bytes, by sending `part` as often as it takes, and finishes.
///
/// # Errors
/// Those of sending: the other end may have gone.
pub async fn give(sender: &mut dyn Sender, total: u64, part: &[u8]) -> Result<(), TransportError> {
    let mut unsent = total;
    while unsent > 0 {
        let length = unsent.min(part.len() as u64);
        sender.send_some(&part[..length as usize]).await?;
        unsent -= length;
    }
    sender.finish().await
}
