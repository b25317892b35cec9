//! A file that a server makes for browsers, as large as its path says.

use hyper::header::HeaderValue;

/// The largest file, bytes: it is held in memory.
pub(super) const MAX_BYTES: usize = 64 << 20;

/// What a browser gets whole.
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
