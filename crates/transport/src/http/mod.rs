//! HTTP: a stream is one request and its response. A message is a request's body, its answer the response's.
//!
//! At the server `POST` to any path is a message or an upload, `GET /bytes/N` asks for N bytes; anything else is answered
//! without a stream, `GET /page/...` and `GET /image/...` with files for browsers.

mod body;
mod document;
mod file;
mod h3;
mod image;
mod request;
mod tcp;

pub use h3::Http3;
pub use tcp::recording::HttpEnds;
pub use tcp::{H2C, HTTP1, HTTP2, HTTPS1};

use crate::{Driver, Features, Streams};

/// Requests at once on a connection of HTTP/2 (`SETTINGS_MAX_CONCURRENT_STREAMS`): beyond what a cell asks for.
const MAX_STREAMS: u32 = 1_000;
/// The largest header, where the protocol lets an end say so: `request_bytes` and more.
const MAX_HEADER_BYTES: u32 = 128 * 1024;

const FEATURES: Features = Features {
    driver: Driver::Reactor,
    streams: Streams::PerMessage,
    http: true,
    server_speaks_first: false,
    ..Features::PLAIN
};
