//! The inputs of a new [`Session`](crate::Session), and the events it reports.

use crate::{Error, Payload};

/// The session's transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// One payload a message. The server speaks first.
    WebSocket,
    /// One payload a frame, see [`FrameDecoder`](crate::FrameDecoder). The client speaks first; no payload is empty.
    WebTransport,
}

/// An upgrading client's Socket.IO progress while polling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// It has not sent `40`.
    No,
    /// It has sent `40`; the answer will come over the new transport.
    Asked,
    /// It is connected, with this Socket.IO id.
    As(String),
}

/// A session's report to its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Client, upgrading: the new transport works. End the polling transport, then call [`Session::finish_upgrade`](crate::Session::finish_upgrade).
    Probed,
    /// Events can be sent from now on.
    Connected {
        /// The Socket.IO socket's id, different from the Engine.IO session's.
        sid: String,
    },
    /// The peer sent an event.
    Message {
        /// Its name.
        name: String,
        /// Its argument.
        argument: Payload,
    },
    /// The last event: poll the unsent payloads, then end the transport.
    Closed(CloseReason),
}

/// Why a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// [`Session::close`](crate::Session::close) was called.
    Local,
    /// The peer left the namespace (`41`).
    Disconnected,
    /// The peer closed the Engine.IO session (`1`).
    PeerClosed,
    /// The transport ended.
    TransportClosed,
    /// The server refused the namespace; its message.
    Refused(String),
    /// Not connected within the time limit.
    ConnectTimeout,
    /// Client: no ping was received. Server: no pong was received.
    PingTimeout,
    /// The peer violated the protocol.
    Protocol(Error),
}

impl From<Error> for CloseReason {
    fn from(error: Error) -> Self {
        Self::Protocol(error)
    }
}
