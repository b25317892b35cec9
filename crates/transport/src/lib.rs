//! Ways to carry messages between the hosts. One file or folder a protocol; a line in `registry` makes it known.
//!
//! A connection carries streams, a stream carries messages. Some transports are one stream from end to end (tcp,
//! WebSocket), some open any number (QUIC), some need one for each message (HTTP: a request and its response).
//!
//! Calls are futures, driven in one of two ways ([`Driver`]): tcp's and udp's block the polling thread, so nothing
//! stands between a workload and the kernel; the others run on a tokio runtime with one thread per host. Sockets belong
//! to the namespace of the thread opening them.

mod api;
pub mod authority;
mod error;
mod features;
mod http;
mod quic;
mod registry;
mod runtime;
pub mod security;
mod settings;
mod signatures;
mod socketio;
mod tcp;
mod tls;
mod udp;
mod websocket;
mod webtransport;

pub use api::{Connecting, Connection, Listener, Phases, Purpose, Receiver, Sender, Stream, Transport};
pub use error::{Outcome, TransportError};
pub use features::{About, Carrier, Features, Streams};
pub use http::HttpEnds;
pub use quic::packets::QuicPackets;
pub use registry::{TransportRef, UnknownTransport, all, find};
pub use runtime::call::Call;
pub use runtime::driver::Driver;
pub use runtime::{driver, serving};
pub use security::Resumption;
pub use settings::{Http2Windows, Payload, QuicSettings, Settings, SocketReadback, SocketSettings};
pub use tcp::sockets::{TcpSample, TcpSockets};
pub use tcp::totals::{TcpReport, TcpTotals};
