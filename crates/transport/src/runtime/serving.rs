//! What every server of a connection does with its streams.

use crate::{Connection, Sender, Stream, TransportError};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;

/// Serves the streams that a client opens, side by side, until the connection has ended and each has been served. On a reactor.
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

/// Sends `total` bytes, a `part` of them at a time, over and over, and says that this is all.
///
/// # Errors
/// Those of sending: the other end may be gone.
pub async fn give(sender: &mut dyn Sender, total: u64, part: &[u8]) -> Result<(), TransportError> {
    let mut left = total;
    while left > 0 {
        let length = left.min(part.len() as u64);
        sender.send_some(&part[..length as usize]).await?;
        left -= length;
    }
    sender.finish().await
}
