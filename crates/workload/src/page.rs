//! Page: a document and its files, loaded as a browser does. The document first; when it is whole, all its files at
//! once, as far as the protocol allows: one request after another on each connection (HTTP/1.1), or all on one.

use crate::client::Client;
use crate::client_server::ClientServer;
use crate::demand::TrafficPattern;
use crate::exchange::Exchange;
use crate::message::Messages;
use crate::needs::ConnectionNeeds;
use crate::server::{ServeStream, ServerStream};
use crate::workload::{
    MAX_CONNECTIONS, MAX_COUNT, MAX_TIMEOUT_NS, MIN_TIMEOUT_NS, PathFacts, TIMEOUT_HELP, Workload, WorkloadSettings,
    default_timeout_ns, number, small,
};
use crate::{PageObject, Sample, SetupTimes, WorkloadError};
use crosswind_host::Clock;
use crosswind_settings::SettingError;
use crosswind_transport::{Connection, Features, Outcome, Payload, Purpose, TransportError, TransportRef, serving};
use crosswind_units::Instant;
use futures_util::future::{join, join_all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Mutex;

/// Browsers' connections to one host if each carries one request at a time.
const BROWSER_CONNECTIONS: u32 = 6;
const MAX_SIZE: u64 = 1 << 30;
const MAX_FILES: u32 = 1000;
const MAX_REQUEST: u64 = 16_000;
/// Bytes per send or receive call.
const CHUNK: usize = 64 * 1024;

/// Pages, one after another, each on new connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Transport that the pages are loaded over.
    #[schemars(with = "String", extend("kind" = "transport"))]
    pub transport: TransportRef,
    /// Pages in all.
    #[serde(default = "number::<10>")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub count: u64,
    /// Size of the HTML, which names everything else.
    #[serde(default = "number::<36_000>")]
    #[schemars(range(min = 1, max = MAX_SIZE), extend("study" = "html_size"))]
    pub html_bytes: u64,
    /// Size of all scripts together.
    #[serde(default = "number::<150_000>")]
    #[schemars(range(min = 1, max = MAX_SIZE), extend("study" = "scripts_size"))]
    pub scripts_bytes: u64,
    /// Number of scripts.
    #[serde(default = "small::<5>")]
    #[schemars(range(min = 0, max = MAX_FILES))]
    pub scripts: u32,
    /// Size of all images together.
    #[serde(default = "number::<450_000>")]
    #[schemars(range(min = 1, max = MAX_SIZE), extend("study" = "images_size"))]
    pub images_bytes: u64,
    /// Number of images.
    #[serde(default = "small::<15>")]
    #[schemars(range(min = 0, max = MAX_FILES))]
    pub images: u32,
    /// Size of a request's header; padding fills it.
    #[serde(default = "number::<400>")]
    #[schemars(range(min = 0, max = MAX_REQUEST), extend("study" = "request_size"))]
    pub request_bytes: u64,
    /// Connections side by side for one page.
    #[serde(default)]
    #[schemars(
        range(min = 1, max = MAX_CONNECTIONS),
        extend("default_help" = "6 where a connection carries one request at a time (http1, https1), else 1")
    )]
    pub connections: Option<u32>,
    /// How long one page may take.
    #[serde(default)]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = MAX_TIMEOUT_NS), extend("default_help" = TIMEOUT_HELP))]
    pub timeout_ns: Option<u64>,
}

impl WorkloadSettings for Page {
    const KIND: &'static str = "page";
    const SAMPLE: &'static str = "one page: from connecting to its last byte";

    fn fits(features: &Features) -> bool {
        features.http
    }

    fn fill_in(&mut self, path: &PathFacts) {
        self.timeout_ns.get_or_insert(default_timeout_ns(self.transport, path));
        let shared = self.transport.features().shares_connection;
        self.connections.get_or_insert(if shared { 1 } else { BROWSER_CONNECTIONS });
    }

    fn check(&self) -> Result<(), SettingError> {
        if self.transport.features().shares_connection && self.connections.is_some_and(|count| count > 1) {
            let problem = format!("is more than 1, and {} shares one", self.transport);
            return Err(SettingError::new("connections", problem, "leave it out"));
        }
        for (key, files, bytes) in
            [("scripts", self.scripts, self.scripts_bytes), ("images", self.images, self.images_bytes)]
        {
            if u64::from(files) > bytes {
                let problem = format!("{files} are more than the {bytes} bytes that they share");
                return Err(SettingError::new(key, problem, format!("each has at least one byte of {key}_size")));
            }
        }
        Ok(())
    }
}

impl Workload for Page {
    fn connections(&self) -> Option<ConnectionNeeds> {
        Some(self.needs())
    }

    fn exchanges(&self) -> u64 {
        self.count
    }

    fn traffic(&self) -> TrafficPattern {
        // Where there are no files, their size is not sent.
        let bytes = |files: u32, bytes: u64| if files > 0 { bytes } else { 0 };
        TrafficPattern::Pages {
            count: self.count,
            connections: self.connections.unwrap_or(1),
            html_bytes: self.html_bytes,
            objects_bytes: bytes(self.scripts, self.scripts_bytes) + bytes(self.images, self.images_bytes),
            objects: self.scripts + self.images,
            request_bytes: self.request_bytes,
        }
    }
}

impl ClientServer for Page {
    type Server = Files;

    fn needs(&self) -> ConnectionNeeds {
        ConnectionNeeds { request_bytes: self.request_bytes, ..ConnectionNeeds::plain(self.transport, self.timeout_ns) }
    }

    fn server(&self, _clock: Clock) -> Files {
        Files { part: Messages { payload: Payload::Binary }.buffer(CHUNK) }
    }

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError> {
        let mut exchanges = Vec::new();
        for number in (0..self.count).take_while(|_| !client.is_over()) {
            let page = Loading { config: self, client, number, objects: Mutex::default() };
            exchanges.push(page.load().await);
        }
        Ok(exchanges)
    }
}

/// A server that sends as many bytes as requested.
pub struct Files {
    part: Vec<u8>,
}

impl ServeStream for Files {
    async fn serve(&self, mut served: ServerStream<'_>) {
        let bytes = served.stream.asked.unwrap_or(0);
        // A vanished client needs no answer.
        let _ = serving::give(served.stream.sender.as_mut(), bytes, &self.part).await;
    }
}

/// Something to load.
struct Wanted {
    name: String,
    bytes: u64,
}

/// A connection for loading objects.
#[derive(Clone, Copy)]
struct OnConnection<'a> {
    connection: &'a dyn Connection,
    number: u32,
    /// How it was set up, for the first object on it.
    setup: Option<SetupTimes>,
}

/// A loading page.
struct Loading<'a> {
    config: &'a Page,
    client: &'a Client<'a>,
    number: u64,
    objects: Mutex<Vec<PageObject>>,
}

impl Loading<'_> {
    async fn load(self) -> Exchange {
        let clock = self.client.context.clock();
        let mut sample = Sample::new(self.number, 0);
        let begin = clock.now();
        sample.sent = Some(begin);
        let result = self.client.within("cannot load a page", self.everything(&mut sample)).await;
        let objects = self.objects.into_inner().unwrap_or_default();
        sample.failed = result.is_err().then(|| clock.now());
        sample.received_bytes = objects.iter().map(|object| object.bytes).sum();
        if result.is_ok() {
            sample.received = objects.iter().filter_map(|object| object.received).max();
        }
        self.client.context.progress.exchange_done(sample.received.map(|end| (end - begin).as_nanos()));
        Exchange { objects, ..Exchange::new(sample, result) }
    }

    async fn everything(&self, sample: &mut Sample) -> Result<(), TransportError> {
        let clock = self.client.context.clock();
        let begin = clock.now();
        let mut first = self.client.open().await?;
        first.note_phases(sample);
        let document = Wanted { name: "html".into(), bytes: self.config.html_bytes };
        let mut on_first =
            OnConnection { connection: first.connection.as_ref(), number: 0, setup: Some(first.setup()) };
        self.get(&mut on_first, begin, document).await?;
        let found = clock.now();
        let wanted: VecDeque<Wanted> = pieces("script", self.config.scripts_bytes, self.config.scripts)
            .chain(pieces("image", self.config.images_bytes, self.config.images))
            .collect();
        if self.client.features().shares_connection {
            let gets = wanted.into_iter().map(|wanted| {
                let mut on = OnConnection { setup: None, ..on_first };
                async move { self.get(&mut on, found, wanted).await }
            });
            all(join_all(gets).await)?;
        } else {
            let queue = Mutex::new(wanted);
            let others = 1..self.config.connections.unwrap_or(1);
            let (own, others) = join(
                self.work_off(&queue, on_first, found),
                join_all(others.map(|number| self.another(&queue, number, found))),
            )
            .await;
            own?;
            all(others)?;
        }
        self.client.close(first.connection.as_mut()).await;
        Ok(())
    }

    /// One more connection, with its share of the queue.
    async fn another(
        &self,
        queue: &Mutex<VecDeque<Wanted>>,
        number: u32,
        found: Instant,
    ) -> Result<(), TransportError> {
        let mut opened = self.client.open().await?;
        let on = OnConnection { connection: opened.connection.as_ref(), number, setup: Some(opened.setup()) };
        self.work_off(queue, on, found).await?;
        self.client.close(opened.connection.as_mut()).await;
        Ok(())
    }

    async fn work_off(
        &self,
        queue: &Mutex<VecDeque<Wanted>>,
        mut on: OnConnection<'_>,
        found: Instant,
    ) -> Result<(), TransportError> {
        loop {
            let next = queue.lock().ok().and_then(|mut queue| queue.pop_front());
            let Some(wanted) = next else { return Ok(()) };
            self.get(&mut on, found, wanted).await?;
        }
    }

    async fn get(&self, on: &mut OnConnection<'_>, queued: Instant, wanted: Wanted) -> Result<(), TransportError> {
        let mut object = PageObject {
            page: self.number,
            object: wanted.name,
            connection: on.number,
            queued,
            sent: None,
            first: None,
            received: None,
            bytes: 0,
            outcome: Outcome::Error,
            client_port: Some(on.connection.client_port()),
            position: None,
            setup: on.setup.take(),
        };
        let result = self.receive(on.connection, wanted.bytes, &mut object).await;
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
        let clock = self.client.context.clock();
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
        object.position = stream.sender.position();
        if object.bytes == bytes {
            return Ok(());
        }
        object.received = None;
        Err(TransportError::with("cannot receive an object", Outcome::Closed, "it ended early"))
    }
}

/// `total` bytes in `count` pieces. Where they cannot be equal, the first ones are a byte larger.
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
        let sizes: Vec<u64> = pieces("image", 10, 3).map(|piece| piece.bytes).collect();
        assert_eq!(sizes, [4, 3, 3]);
        assert_eq!(pieces("script", 10, 0).count(), 0);
        assert_eq!(pieces("script", 6, 2).map(|piece| piece.name).collect::<Vec<_>>(), ["script 1", "script 2"]);
    }
}
