//! What every version of HTTP can do, and its limits.

use crate::{Driver, Features, Streams};

/// Requests at once on a connection of HTTP/2 (`SETTINGS_MAX_CONCURRENT_STREAMS`): beyond what a cell asks for.
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
