//! Capabilities and limits of every HTTP version.

use crate::{Driver, Features, Streams};

/// Concurrent requests on an HTTP/2 connection (`SETTINGS_MAX_CONCURRENT_STREAMS`): more than a cell asks for.
pub const MAX_STREAMS: u32 = 1_000;
/// The largest header, where the protocol lets an end say so: `request_bytes` and more.
pub const MAX_HEADER_BYTES: u32 = 128 * 1024;

pub const FEATURES: Features = Features {
    driver: Driver::Reactor,
    streams: Streams::PerMessage,
    http: true,
    server_speaks_first: false,
    ..Features::PLAIN
};
