//! Requests for one byte on a connection with a transfer: how long its user waits for something new.
//!
//! They are the self probes of draft-ietf-ippm-responsiveness-09, section 5.3: equally spread over time, whether or not
//! earlier ones were answered, and without priority. A request still unanswered at its transfer's end is no sample.

use crate::client::Client;
use crate::exchange::Exchange;
use crate::pace::Pace;
use crate::server::ServerStream;
use crate::{Sample, WorkloadError};
use crosswind_transport::{Connection, Features, Outcome, Purpose, TransportError};
use crosswind_units::{Duration, Instant};
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::future::Future;

/// The bytes requested.
pub const BYTES: u64 = 1;
/// The requests' stream in samples; transfers have 0.
const STREAM: u32 = 1;

/// Whether a connection carries requests beside a transfer.
pub const fn can_share(features: &Features) -> bool {
    features.http && features.shares_connection
}

/// Answers one. The server notes nothing: a note would count as a transfer.
pub async fn answer(mut served: ServerStream<'_>) {
    let sender = served.stream.sender.as_mut();
    // A vanished client needs no answer.
    if sender.send_some(&[0; BYTES as usize]).await.is_ok() {
        let _ = sender.finish().await;
    }
}

/// A connection's requests.
pub struct Probes<'a> {
    pub client: &'a Client<'a>,
    pub connection: &'a dyn Connection,
    pub rate_per_s: f64,
}

impl Probes<'_> {
    /// Sends them until the transfer is done. Their results go to `exchanges`.
    pub async fn beside<T>(
        &self,
        transfer: impl Future<Output = T>,
        exchanges: &mut Vec<Exchange>,
    ) -> Result<T, WorkloadError> {
        let clock = self.client.context.clock();
        let pace = Pace::new(self.client.driver())?;
        let start = clock.now();
        let mut under_way = FuturesUnordered::new();
        tokio::pin!(transfer);
        for number in 1_u64.. {
            let due = start + Duration::from_nanos((number as f64 * 1e9 / self.rate_per_s) as u64);
            let waiting = pace.until(clock, due);
            tokio::pin!(waiting);
            loop {
                tokio::select! {
                    biased;
                    result = &mut transfer => return Ok(result),
                    Some(exchange) = under_way.next(), if !under_way.is_empty() => exchanges.push(exchange),
                    () = &mut waiting => break,
                }
            }
            under_way.push(self.request(number - 1, due));
        }
        unreachable!("a transfer ends before 2^64 requests")
    }

    async fn request(&self, number: u64, due: Instant) -> Exchange {
        let (client, clock) = (self.client, self.client.context.clock());
        let sent = clock.now();
        let mut byte = [0; BYTES as usize];
        let asking = async {
            let mut stream = self.connection.open(Purpose::Download(Some(BYTES))).await?;
            match stream.receiver.receive(&mut byte).await? {
                1 => Ok(()),
                _ => Err(TransportError::with("cannot request", Outcome::Closed, "the answer is empty")),
            }
        };
        let result = client.within("cannot request", asking).await;
        let now = clock.now();
        let sample = Sample {
            client_port: Some(self.connection.client_port()),
            stream: STREAM,
            intended: Some(due),
            sent: Some(sent),
            received: result.is_ok().then_some(now),
            failed: result.is_err().then_some(now),
            received_bytes: u64::from(result.is_ok()),
            ..Sample::new(number, client.number)
        };
        Exchange::new(sample, result)
    }
}
