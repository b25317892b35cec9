//! A server's file for browsers; its path gives its size.

use hyper::header::HeaderValue;

/// The largest file, bytes: it is held in memory.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// A whole response for a browser.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct File {
    /// Its media type.
    pub(super) kind: HeaderValue,
    pub(super) bytes: Vec<u8>,
}

/// A number in a path: digits and nothing else, as in a length (RFC 9110, section 8.6).
pub(super) fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}
