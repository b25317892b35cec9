//! A transport's capabilities, as data: workloads are checked against them, and the catalogue publishes them.

use crate::Driver;
use serde::Serialize;

/// The layer below a transport.
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

/// A connection's streams.
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

/// A transport's capabilities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[allow(clippy::struct_excessive_bools)] // a table of features
pub struct Features {
    /// How its calls are driven.
    #[serde(skip)]
    pub driver: Driver,
    /// The layer below.
    pub carrier: Carrier,
    /// Round trips from the first packet until a message may be sent, without resumption.
    pub setup_round_trips: u32,
    /// Messages can be lost, and their size has a limit.
    pub datagram: bool,
    /// A connection's streams.
    pub streams: Streams,
    /// Encrypted, with a certificate.
    pub secure: bool,
    /// A message can travel in a resumed connection's first flight.
    pub early_data: bool,
    /// A client requests a path, and receives its content.
    pub http: bool,
    /// Messages can be text.
    pub text: bool,
    /// Can begin with HTTP long polling.
    pub polling: bool,
    /// A connection carries several exchanges at once, in frames of the transport or the application.
    pub shares_connection: bool,
    /// The server can send on a new stream before the client has sent.
    pub server_speaks_first: bool,
}

/// A transport's description.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct About {
    /// Its name in a study.
    pub name: &'static str,
    /// A one-sentence description.
    pub summary: &'static str,
    /// Its capabilities.
    #[serde(flatten)]
    pub features: Features,
}

impl Features {
    /// A byte stream on threads: the base for other transports.
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

    /// Whether in virtual time another seed changes how the same messages travel.
    ///
    /// Over QUIC it does: quinn skips packet numbers at random, which changes its acknowledgements, and its handshake
    /// has parameters of random size. The others' random values (ports, masks, session ids, and in virtual time
    /// signatures) always have the same size.
    pub const fn is_random(&self) -> bool {
        matches!(self.carrier, Carrier::Quic)
    }
}
