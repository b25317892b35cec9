//! Engine.IO protocol 4 and Socket.IO protocol 5 without I/O: no sockets, no clock, no randomness.
//!
//! A WebTransport stream's bytes go into a [`FrameDecoder`], which yields [`Payload`]s; a WebSocket message is a
//! `Payload` as it is. Payloads go into a [`Session`], which hands out payloads to send and [`Event`]s. Below it,
//! [`Packet`] is Engine.IO's packet and [`Message`] is Socket.IO's; both can be used alone.
//!
//! Whatever a peer sends, nothing here panics, and no buffer grows beyond the received bytes and the stated limits.

mod error;
mod event;
mod frame;
mod handshake;
mod kind;
mod message;
mod packet;
mod session;
mod text;

pub use error::Error;
pub use event::{Carrier, CloseReason, Event, Joined};
pub use frame::{FrameDecoder, encode_frame, encode_frame_header};
pub use handshake::{Handshake, encode_client_open, parse_client_open};
pub use kind::{MAX_ATTACHMENTS, MessageKind};
pub use message::{Message, MessageDecoder};
pub use packet::{Packet, Payload, decode_polling, encode_polling};
pub use session::{CLIENT_CONNECT_TIMEOUT_NS, SERVER_CONNECT_TIMEOUT_NS, Session};
