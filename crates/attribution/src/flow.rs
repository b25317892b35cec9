//! A program's connection, and its time by cause.

use crate::DelayCause;
use crate::critical_path::{Interval, PacketId};
use crate::wakers::Other;
use crate::walk::Window;
use crate::what_if::Changed;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant, named};

/// A connection, or the datagrams between two ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// IP protocol number: TCP or UDP.
    pub protocol: u8,
    /// Knowledge about its QUIC packets.
    pub quic: Quic,
    /// Port at the client's host.
    pub client_port: u16,
    /// Port at the server's host.
    pub server_port: u16,
    /// The direction of the first packet.
    pub opened: Side,
    /// When the first packet entered the path.
    pub from: Instant,
    /// The last one's end; or, if nothing answered, the end of the wait, as far as known.
    pub to: Instant,
    /// How it began.
    pub beginning: Beginning,
    /// How it ended.
    pub ending: Ending,
    /// Each host's sending: the client's first.
    pub sent: [Sent; 2],
    /// How often a host waited for the other's data.
    pub turns: u32,
    /// All its time, by direction of the waiting data and by cause.
    pub spent: [[Duration; DelayCause::ALL.len()]; 2],
    /// The same in order of time, without gaps. Among many flows the longest have them, in very long ones the first.
    pub pieces: Vec<Interval>,
    /// Limiting windows.
    pub windows: Vec<Window>,
    /// Its time with each change, where a model is near its packets.
    pub changed: Option<Changed>,
    /// Its hosts' waits for other events.
    pub others: Vec<Other>,
    pub(crate) waits: Option<Waits>,
}

/// One host's sending.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Packets.
    pub packets: u64,
    /// Payload in them.
    pub bytes: u64,
    /// Packets lost, or damaged.
    pub lost: u64,
    /// Retransmissions: TCP segments without new bytes, SYN or FIN; QUIC datagrams with old bytes.
    pub again: u64,
}

/// Knowledge about a flow's QUIC packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quic {
    /// Another protocol, as far as known.
    None,
    /// It is QUIC, and keys are missing.
    Sealed,
    /// Its packets are decrypted.
    Opened,
}

named! {
/// How a flow began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beginning {
    /// With TCP's handshake.
    Handshake = "handshake",
    /// With a SYN answered by RST.
    Refused = "refused",
    /// With unanswered SYNs.
    Unanswered = "unanswered",
    /// Before its first known packet.
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

/// An unanswered flow's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// For its last SYN's answer; its kernel gives up at that time at the latest.
    Syn { until: Instant, last: PacketId },
    /// Its last datagram's answer: some datagram was lost.
    Datagram { last: PacketId },
}
