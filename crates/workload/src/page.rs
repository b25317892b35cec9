//! Page: a document and what belongs to it, loaded as a browser does. The document first; when it is whole, everything that it
//! names at once, as far as the protocol lets it: one request after another on each connection (HTTP/1.1), or all on one.

use crate::config::Page;
use crate::context::Context;
use crate::lane::{Lane, note_phases};
use crate::message::{Messages, Sizes};
use crate::server::Serve;
use crate::{Measured, Sample, WorkloadError, session};
use crosswind_transport::{Connection, Outcome, Payload, Purpose, TransportError, serving};
use crosswind_units::Instant;
use futures_util::future::{join, join_all};
use std::collections::VecDeque;
use std::sync::{Mutex, OnceLock};
use std::time::Duration;

/// Bytes a call.
const CHUNK: usize = 64 * 1024;

/// One thing that a page is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageObject {
    /// Number of the page.
    pub page: u64,
    /// What it is.
    pub object: String,
    /// Connection that it came over.
    pub connection: u32,
    /// When it was known to be needed.
    pub queued: Instant,
    /// When it was asked for.
    pub sent: Option<Instant>,
    /// When its first byte came.
    pub first: Option<Instant>,
    /// When it was whole.
    pub received: Option<Instant>,
    /// Bytes received.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// Something to load.
struct Wanted {
    name: String,
    bytes: u64,
}

pub fn run(config: &Page, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let transport = config.transport;
    let timeout = Duration::from_nanos(config.timeout_ns.unwrap_or(60_000_000_000));
    let messages = Messages { payload: Payload::Binary };
    let readback = OnceLock::new();
    let objects = Mutex::new(Vec::new());
    let session =
        session::run(context, transport, timeout, 1, &|serve| Box::pin(answer(messages, serve)), &|number| {
            let lane =
                Lane { context, transport, timeout, number, messages, sizes: Sizes::both(1), readback: &readback };
            let objects = &objects;
            Box::pin(async move {
                let mut samples = Vec::new();
                for number in 0..config.count {
                    let page = Loading { config, lane: &lane, number, objects: Mutex::default() };
                    samples.push(page.load().await);
                    if let (Ok(mut all), Ok(mut own)) = (objects.lock(), page.objects.into_inner()) {
                        all.append(&mut own);
                    }
                }
                Ok(samples)
            })
        })?;
    Ok(Measured {
        samples: session.results,
        objects: objects.into_inner().unwrap_or_default(),
        sockets: [readback.into_inner(), session.server_readback],
        cpu_ns: session.cpu_ns,
        ..Measured::default()
    })
}

/// Sends as many bytes as were asked for.
async fn answer(messages: Messages, mut serve: Serve<'_>) {
    // A client that is gone needs no answer.
    let _ = serving::give(serve.stream.sender.as_mut(), serve.stream.asked.unwrap_or(0), &messages.buffer(CHUNK)).await;
}

/// A page that is being loaded.
struct Loading<'a> {
    config: &'a Page,
    lane: &'a Lane<'a>,
    number: u64,
    objects: Mutex<Vec<PageObject>>,
}

impl Loading<'_> {
    async fn load(&self) -> Sample {
        let clock = self.lane.context.clock();
        let mut sample = Sample::new(self.number, 0);
        let begin = clock.now();
        sample.sent = Some(begin);
        sample.outcome = match self.lane.within("cannot load a page", self.everything(&mut sample)).await {
            Ok(()) => Outcome::Ok,
            Err(e) => e.outcome,
        };
        let objects = self.objects.lock().map(|objects| objects.clone()).unwrap_or_default();
        sample.received_bytes = objects.iter().map(|object| object.bytes).sum();
        if sample.outcome == Outcome::Ok {
            sample.received = objects.iter().filter_map(|object| object.received).max();
        }
        self.lane.context.progress.exchange_done(sample.received.map(|end| (end - begin).as_nanos()));
        sample
    }

    async fn everything(&self, sample: &mut Sample) -> Result<(), TransportError> {
        let clock = self.lane.context.clock();
        let begin = clock.now();
        let mut first = self.lane.open().await?;
        note_phases(sample, first.took_ns, &first.phases);
        let document = Wanted { name: "html".into(), bytes: self.config.html_bytes };
        self.get(first.connection.as_ref(), 0, begin, document).await?;
        let found = clock.now();
        let wanted: VecDeque<Wanted> = pieces("script", self.config.scripts_bytes, self.config.scripts)
            .chain(pieces("image", self.config.images_bytes, self.config.images))
            .collect();
        if self.lane.features().shares_connection {
            let connection = first.connection.as_ref();
            all(join_all(wanted.into_iter().map(|one| self.get(connection, 0, found, one))).await)?;
        } else {
            let queue = Mutex::new(wanted);
            let others = 1..self.config.connections.unwrap_or(1);
            let (own, others) = join(
                self.work_off(&queue, first.connection.as_ref(), 0, found),
                join_all(others.map(|number| self.another(&queue, number, found))),
            )
            .await;
            own?;
            all(others)?;
        }
        self.lane.close(first.connection.as_mut()).await;
        Ok(())
    }

    /// One more connection, which takes its share of the queue.
    async fn another(
        &self,
        queue: &Mutex<VecDeque<Wanted>>,
        number: u32,
        found: Instant,
    ) -> Result<(), TransportError> {
        let mut opened = self.lane.open().await?;
        self.work_off(queue, opened.connection.as_ref(), number, found).await?;
        self.lane.close(opened.connection.as_mut()).await;
        Ok(())
    }

    async fn work_off(
        &self,
        queue: &Mutex<VecDeque<Wanted>>,
        connection: &dyn Connection,
        number: u32,
        found: Instant,
    ) -> Result<(), TransportError> {
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
            let Some(wanted) = next else { return Ok(()) };
            self.get(connection, number, found, wanted).await?;
        }
    }

    async fn get(
        &self,
        connection: &dyn Connection,
        number: u32,
        queued: Instant,
        wanted: Wanted,
    ) -> Result<(), TransportError> {
        let mut object = PageObject {
            page: self.number,
            object: wanted.name,
            connection: number,
            queued,
            sent: None,
            first: None,
            received: None,
            bytes: 0,
            outcome: Outcome::Error,
        };
        let result = self.receive(connection, wanted.bytes, &mut object).await;
        object.outcome = result.as_ref().map_or_else(|e| e.outcome, |()| Outcome::Ok);
        if let Ok(mut objects) = self.objects.lock() {
            objects.push(object);
        }
        result
    }

    async fn receive(
        &self,
        connection: &dyn Connection,
        bytes: u64,
        object: &mut PageObject,
    ) -> Result<(), TransportError> {
        let clock = self.lane.context.clock();
        let mut buffer = vec![0; CHUNK];
        object.sent = Some(clock.now());
        let mut stream = connection.open(Purpose::Download(Some(bytes))).await?;
        loop {
            let count = stream.receiver.receive_some(&mut buffer).await?;
            let now = clock.now();
            if count == 0 {
                break;
            }
            object.first.get_or_insert(now);
            object.bytes += count as u64;
            object.received = Some(now);
        }
        if object.bytes == bytes {
            return Ok(());
        }
        object.received = None;
        Err(TransportError::with("cannot receive an object", Outcome::Closed, "it ended early"))
    }
}

/// `total` bytes in `count` pieces, the first ones a byte larger where it does not come out even.
fn pieces(name: &'static str, total: u64, count: u32) -> impl Iterator<Item = Wanted> {
    let (count, each, rest) = (u64::from(count), total / u64::from(count.max(1)), total % u64::from(count.max(1)));
    (0..count).map(move |i| Wanted { name: format!("{name} {}", i + 1), bytes: each + u64::from(i < rest) })
}

fn all(results: Vec<Result<(), TransportError>>) -> Result<(), TransportError> {
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up() {
        let sizes: Vec<u64> = pieces("image", 10, 3).map(|one| one.bytes).collect();
        assert_eq!(sizes, [4, 3, 3]);
        assert_eq!(pieces("script", 10, 0).count(), 0);
        assert_eq!(pieces("script", 6, 2).map(|one| one.name).collect::<Vec<_>>(), ["script 1", "script 2"]);
    }
}
