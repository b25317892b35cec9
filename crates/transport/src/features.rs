//! What a transport can do, as data: workloads are checked against it, and the catalogue publishes it.

use crate::Driver;
use serde::Serialize;

/// What a transport runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Carrier {
    /// The kernel's TCP.
    Tcp,
    /// The kernel's UDP, and nothing above it.
    Udp,
    /// QUIC over the kernel's UDP.
    Quic,
}

/// What streams a connection carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Streams {
    /// The connection is one stream from end to end.
    One,
    /// As many as are opened.
    Many,
    /// One for each message and its reply.
    PerMessage,
}

/// What a transport can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools)] // a table of features
pub struct Features {
    /// How its calls are driven.
    #[serde(skip)]
    pub driver: Driver,
    /// What it runs over.
    pub carrier: Carrier,
    /// Round trips from the first packet until a message may be sent, without resumption.
    pub setup_round_trips: u32,
    /// Messages can be lost, and their size has a limit.
    pub datagram: bool,
    /// What streams a connection carries.
    pub streams: Streams,
    /// Encrypted, with a certificate.
    pub secure: bool,
    /// A message can travel in the first flight of a resumed connection.
    pub early_data: bool,
    /// A client asks for a path, and receives what is there.
    pub http: bool,
    /// Messages can be text.
    pub text: bool,
    /// Can begin with HTTP long polling.
    pub polling: bool,
    /// Several exchanges can be in progress on one connection, in frames of the transport or of the application.
    pub shares_connection: bool,
    /// The server can send on a new stream before the client has sent.
    pub server_speaks_first: bool,
}

impl Features {
    /// A stream of bytes on threads: what other transports differ from.
    pub const PLAIN: Self = Self {
        driver: Driver::Thread,
        carrier: Carrier::Tcp,
        setup_round_trips: 1,
        datagram: false,
        streams: Streams::One,
        secure: false,
        early_data: false,
        http: false,
        text: false,
        polling: false,
        shares_connection: false,
        server_speaks_first: true,
    };

    /// Whether in virtual time the same messages travel otherwise with another seed.
    ///
    /// Over QUIC they do: it skips packet numbers at random, which changes its acknowledgements, and its handshake has parameters of
    /// a random size. What the others draw (ports, masks, session ids, and in virtual time signatures) always has the same size.
    pub const fn is_random(&self) -> bool {
        matches!(self.carrier, Carrier::Quic)
    }
}
