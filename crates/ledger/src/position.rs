//! Which bytes of its connection a message has.

/// Where a message is among the bytes of its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// On a connection that is one stream of bytes.
    Bytes {
        /// How many bytes were before it.
        start: u64,
        /// How many there were when it had been written.
        end: u64,
    },
    /// On a stream of QUIC or HTTP/2; over HTTP/1.1 an exchange, the first of a connection being 1.
    Stream {
        /// The number of the stream or the exchange.
        stream: u64,
        /// How many bytes the stream had before the message; none where only the size of the message is known.
        start: Option<u64>,
        /// How many bytes the stream has up to the end of the message; without one it is all that follows its start.
        end: Option<u64>,
    },
    /// A datagram of QUIC: how many this end has sent before it.
    Datagram(u64),
}

impl Position {
    /// All of a stream.
    pub const fn whole_stream(stream: u64) -> Self {
        Self::Stream { stream, start: None, end: None }
    }
}
