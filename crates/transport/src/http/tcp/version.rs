//! HTTP versions over TCP.

/// An HTTP version over TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// RFC 9112.
    Http1,
    /// RFC 9113.
    Http2,
}

impl Version {
    /// Its name in TLS (ALPN).
    pub const fn protocol(self) -> &'static [u8] {
        match self {
            Self::Http1 => b"http/1.1",
            Self::Http2 => b"h2",
        }
    }
}
