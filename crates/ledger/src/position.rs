//! A message's bytes on its connection.

/// A message's place among its connection's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// On a connection with one byte stream.
    Bytes {
        /// How many bytes were before it.
        start: u64,
        /// How many there were when it had been written.
        end: u64,
    },
    /// On a QUIC or HTTP/2 stream; over HTTP/1.1 an exchange, counted from 1 on each connection.
    Stream {
        /// The number of the stream or the exchange.
        stream: u64,
        /// How many bytes the stream had before the message; none where only the size of the message is known.
        start: Option<u64>,
        /// The stream's length up to the message's end; without one the message has everything after its start.
        end: Option<u64>,
    },
    /// A QUIC datagram: how many this end has sent before it.
    Datagram(u64),
}

impl Position {
    /// All of a stream.
    pub const fn whole_stream(stream: u64) -> Self {
        Self::Stream { stream, start: None, end: None }
    }
}
