//! HTTP: a stream is one request and its response. A message is a request's body, its answer the response's.
//!
//! At the server `POST` to any path is a message or an upload, `GET /bytes/N` asks for N bytes; anything else is answered
//! without a stream, `GET /page/...` and `GET /image/...` with files for browsers.

mod body;
mod document;
mod features;
mod file;
mod h3;
mod image;
mod request;
mod tcp;

pub use h3::Http3;
pub use tcp::recording::HttpEnds;
pub use tcp::{H2C, HTTP1, HTTP2, HTTPS1};
