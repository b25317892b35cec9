//! A connection of programs, and what its time was spent on.

use crate::Part;
use crate::trail::{PacketId, Piece};
use crate::walk::Window;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant, named};

/// A connection, or the datagrams between two ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// IP protocol number: TCP or UDP.
    pub protocol: u8,
    /// What is known of QUIC.
    pub quic: Quic,
    /// Port at the client's host.
    pub client_port: u16,
    /// Port at the server's host.
    pub server_port: u16,
    /// The direction of the first packet.
    pub opened: Side,
    /// When the first packet entered the path.
    pub from: Instant,
    /// When the last one ended; or, where nothing answered, when that was waited for no more, as far as it is known.
    pub to: Instant,
    /// How it began.
    pub beginning: Beginning,
    /// How it ended.
    pub ending: Ending,
    /// What each host sent: the client's first.
    pub sent: [Sent; 2],
    /// How often a host waited for what the other was to send.
    pub turns: u32,
    /// What its time was spent on, by the direction of the data that waited and by part. All of it is its time.
    pub spent: [[Duration; Part::ALL.len()]; 2],
    /// The same in the order of time: each begins where the one before it ended. Of many flows the longest have them, of very long
    /// ones the first.
    pub pieces: Vec<Piece>,
    /// Windows that were waited for.
    pub windows: Vec<Window>,
    pub(crate) waits: Option<Waits>,
}

/// What one host sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Payload in them.
    pub bytes: u64,
    /// Packets that did not arrive, or not as they were sent.
    pub lost: u64,
    /// TCP segments whose bytes, SYN or FIN had all been sent before; datagrams of QUIC with bytes that had been.
    pub again: u64,
}

/// What is known of the packets of QUIC of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quic {
    /// It is another protocol, as far as that is known.
    None,
    /// It is QUIC, and keys are missing.
    Sealed,
    /// What its packets have in them.
    Opened,
}

named! {
/// How a flow began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With TCP's handshake.
    Handshake = "handshake",
    /// With a SYN that was answered with RST.
    Refused = "refused",
    /// With SYNs that nothing answered.
    Unanswered = "unanswered",
    /// Before its first packet that is known.
    Before = "before",
    /// With a datagram.
    Datagram = "datagram",
}
}

named! {
/// How a flow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With FIN.
    Closed = "closed",
    /// With RST.
    Reset = "reset",
    /// It did not, as far as packets tell.
    Open = "open",
}
}

/// What a flow that nothing answered waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Its last SYN's answer, which its kernel gives up at that time at the latest.
    Syn { until: Instant, last: PacketId },
    /// Its last datagram's answer: some datagram was lost.
    Datagram { last: PacketId },
}
