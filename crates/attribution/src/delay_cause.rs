//! The causes of delay, and their words in reports.

use crosswind_path::Side;
use serde::Serialize;

/// Hands all causes to a macro: for code with something for each. Each has its group and its name; its noun; its
/// meaning; its words about a connection's time, after a share; and its words about an exchange, empty if every
/// exchange has it.
#[macro_export]
macro_rules! with_parts {
    ($callback:ident) => {
        $callback! {
            TcpHandshake: Handshakes "tcp_handshake" "TCP's handshake"
                "TCP's handshake, without the wait for its timer."
                "was TCP's handshake" "TCP's handshake took {time}",
            SecurityHandshake: Handshakes "security_handshake" "the security handshake"
                "The handshake of TLS or QUIC."
                "was QUIC's handshake" "the handshake of TLS or QUIC took {time}",
            UpgradeHandshake: Handshakes "upgrade_handshake" "the upgrade handshake"
                "The upgrade to WebSocket, WebTransport or Socket.IO."
                "was the upgrade" "the upgrade took {time}",
            ClientHost: Hosts "client_host" "the client host"
                "The client's program and kernel."
                "was spent by the client's program" "",
            ServerHost: Hosts "server_host" "the server host"
                "The server's program and kernel."
                "was spent by the server's program" "",
            ClientTimer: Hosts "client_timer" "a timer of the client"
                "The client's program waited for a timer of its own, as its kernel says in virtual time."
                "was the client's program, waiting for a timer" "the client's program waited {time} for a timer",
            ServerTimer: Hosts "server_timer" "a timer of the server"
                "The server's program waited for a timer of its own, as its kernel says in virtual time."
                "was the server's program, waiting for a timer" "the server's program waited {time} for a timer",
            ClientConnection: Hosts "client_connection" "another connection of the client"
                "The client's program waited for what came on another connection of its host, as its kernel says in virtual time."
                "was the client's program, waiting for another connection" "the client's program waited {time} for another connection",
            ServerConnection: Hosts "server_connection" "another connection of the server"
                "The server's program waited for what came on another connection of its host, as its kernel says in virtual time."
                "was the server's program, waiting for another connection" "the server's program waited {time} for another connection",
            PropagationForward: Propagation "propagation_forward" "propagation to the server"
                "In flight to the server, of packets that carried the message."
                "was in flight" "",
            PropagationReverse: Propagation "propagation_reverse" "propagation to the client"
                "In flight to the client, of packets that carried the message."
                "was in flight" "",
            SerialisationForward: Link "serialisation_forward" "serialisation to the server"
                "Being put on the wire to the server."
                "was the rate of the link to the server" "the link to the server needed {time} for its bytes",
            SerialisationReverse: Link "serialisation_reverse" "serialisation to the client"
                "Being put on the wire to the client."
                "was the rate of the link to the client" "the link to the client needed {time} for its bytes",
            QueueingForward: Queueing "queueing_forward" "queueing to the server"
                "Waiting behind other packets on the way to the server."
                "was queueing behind other packets on the way to the server" "it queued {time} behind other packets on the way to the server",
            QueueingReverse: Queueing "queueing_reverse" "queueing to the client"
                "Waiting behind other packets on the way to the client."
                "was queueing behind other packets on the way to the client" "it queued {time} behind other packets on the way to the client",
            JitterForward: Jitter "jitter_forward" "jitter to the server"
                "Otherwise held back on the way to the server."
                "was jitter on the way to the server" "the path to the server held it back for another {time}",
            JitterReverse: Jitter "jitter_reverse" "jitter to the client"
                "Otherwise held back on the way to the client."
                "was jitter on the way to the client" "the path to the client held it back for another {time}",
            Late: Hosts "late" "lateness of the emulator"
                "Held by the emulator for longer than was due."
                "was spent in the emulator, which was late" "",
            FastRecovery: Recovery "fast_recovery" "fast recovery"
                "From sending what was lost to sending it again, because acknowledgements of what followed said so: TCP's fast retransmit and RACK."
                "waited for fast recovery of what was lost" "{packet} was lost, and sent again {time} later: acknowledgements of what followed it said so",
            TailLossProbe: Recovery "tail_loss_probe" "the tail loss probe"
                "From sending what was lost to a probe, which is sent because no acknowledgement came: TCP's tail loss probe."
                "waited for tail loss probes" "{packet} was lost, with nothing behind it to show that; a tail loss probe came {time} later",
            RetransmissionTimer: Recovery "retransmission_timer" "the retransmission timer"
                "From sending what was lost to sending it again when TCP's retransmission timer expired."
                "waited for the retransmission timer" "{packet} was lost, and sent again {time} later by the retransmission timer{expiry}",
            PersistTimer: Recovery "persist_timer" "the persist timer"
                "From a lost update of a closed window to its receiver's answer to the probe that TCP's persist timer sent."
                "waited for the persist timer after a window update was lost" "{packet}, which opened the receiver's window, was lost, and told again {time} later, when the persist timer asked",
            SynTimer: Recovery "syn_timer" "the SYN timer"
                "From sending a SYN that was lost, or whose answer was, to sending it again."
                "waited for an answer to a SYN" "TCP's handshake lost a packet, and its timer sent a SYN again after {time}",
            PacketThreshold: Recovery "packet_threshold" "the packet threshold"
                "From sending what was lost to sending it again, because enough packets that followed were acknowledged: QUIC's packet threshold."
                "waited until enough later packets were acknowledged to know a loss (packet threshold)" "{packet} was lost, and sent again {time} later, as enough later ones had arrived",
            TimeThreshold: Recovery "time_threshold" "the time threshold"
                "From sending what was lost to sending it again, because a packet that followed was acknowledged and enough time had passed: QUIC's time threshold."
                "waited until a loss was known by its time (time threshold)" "{packet} was lost, and sent again {time} later, as a later one had arrived",
            ProbeTimer: Recovery "probe_timer" "the probe timer"
                "From sending what was lost to sending a probe, or it again, when QUIC's probe timeout (PTO) had passed."
                "waited for the probe timeout" "{packet} was lost, and a probe sent {time} later by QUIC's probe timer{expiry}",
            DatagramLoss: Recovery "datagram_loss" "datagram loss"
                "From sending a datagram that was lost, or whose answer was, to sending the next one: of UDP whose recovery is the program's own."
                "waited after a lost datagram until the program sent the next" "{packet} was lost, and the next one was sent {time} later",
            ReducedWindow: Recovery "reduced_window" "the window after a loss"
                "Ready to be sent, and held back by a congestion window that a loss had cut, until it was as large as before."
                "waited for a congestion window that losses had cut" "it waited {time} for the congestion window, which a loss had cut",
            Reordering: Recovery "reordering" "reordering taken for loss"
                "Ready to be sent, and held back by a congestion window that had been cut although nothing was lost: packets had overtaken others."
                "waited for a congestion window that was cut because packets overtook others, as if some were lost" "it waited {time} for the congestion window, which was cut because packets overtook others, as if some were lost",
            HeadOfLine: HeadOfLine "head_of_line" "head of line"
                "Received, and waiting for what was sent before it on the same connection and was lost; over HTTP/1.1 also ready to be sent, and waiting for the exchange before it."
                "waited for what was lost before" "it was received, and waited {time} for {packet}, which was sent before it and had been lost",
            CongestionWindow: CongestionWindow "congestion_window" "the congestion window"
                "Ready to be sent, and held back by the congestion window: round trips of what had to be acknowledged first."
                "waited for the congestion window" "it waited {time} for the congestion window",
            SlowStartAfterIdle: CongestionWindow "slow_start_after_idle" "slow start after idle"
                "The same, where the window was larger before the connection was idle."
                "waited for the congestion window, which an idle time had shrunk" "it waited {time} for the congestion window, which an idle time had shrunk",
            ReceiveWindow: ReceiveWindow "receive_window" "the receive window"
                "Ready to be sent, and held back by the window that TCP's receiver gave."
                "waited for the receiver's window" "it waited {time} for the receiver's window",
            ZeroWindow: ReceiveWindow "zero_window" "the zero window"
                "Ready to be sent, and held back by a window of TCP's receiver that stayed closed until its program had read."
                "waited until the receiver's program had read, for its window was closed" "it waited {time} until the receiver's program had read, for its window was closed",
            SendBuffer: SendBuffer "send_buffer" "send buffer"
                "Held back because TCP's send buffer was full, so that nothing more was there to be sent."
                "waited for room in the send buffer" "it waited {time} for room in the send buffer",
            StreamWindow: ReceiveWindow "stream_window" "the stream window"
                "Ready to be sent, and held back by the flow control of its stream of QUIC or HTTP/2, until the receiver gave it more."
                "waited for the flow control of a stream" "it waited {time} for the flow control of its stream",
            ConnectionWindow: ReceiveWindow "connection_window" "the connection window"
                "Ready to be sent, and held back by the flow control of all streams of a connection of QUIC or HTTP/2 together, until the receiver gave it more."
                "waited for the flow control of the connection" "it waited {time} for the flow control of its connection",
            Nagle: Acknowledgements "nagle" "Nagle's algorithm"
                "Ready to be sent, and held back until what was sent before was acknowledged: Nagle's algorithm."
                "waited until what was sent before was acknowledged (Nagle's algorithm)" "it waited {time} until what was sent before was acknowledged (Nagle's algorithm)",
            DelayedAcknowledgement: Acknowledgements "delayed_acknowledgement" "delayed acknowledgement"
                "Waiting for an acknowledgement that the receiver delayed."
                "waited for delayed acknowledgements" "the receiver delayed acknowledgements that it waited for by {time}",
            Pacing: Pacing "pacing" "pacing"
                "Ready to be sent, and held back by the pace at which packets are sent."
                "was pacing" "it waited {time} for its turn at the pace at which packets are sent",
            Closing: Handshakes "closing" "closing"
                "Closing a connection: from the first FIN or RST to the last packet, once all data had arrived."
                "was closing" "closing the connection took {time}",
            Unknown: Unknown "unknown" "unknown"
                "What the wire does not tell."
                "is not told by packets" "of {time} packets do not tell what they were spent on",
        }
    };
}

/// A cause's words in reports.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PartWords {
    /// As it is stored.
    name: &'static str,
    /// In sentences.
    noun: &'static str,
    /// Its words about connections' time, after a share.
    of_connections: &'static str,
    /// Its words about an exchange, with `{time}`, `{packet}` and, for timers, `{expiry}`; empty if every exchange has
    /// it.
    of_exchange: &'static str,
}

/// Causes shown as one in reports.
#[derive(Clone, Debug, Serialize)]
pub struct PartGroup {
    name: &'static str,
    /// In charts.
    title: &'static str,
    /// In sentences.
    noun: &'static str,
    /// Its meaning.
    help: &'static str,
    /// In the order of tables.
    parts: Vec<PartWords>,
}

macro_rules! groups {
    ($($variant:ident $name:literal $title:literal $noun:literal $help:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        enum Group {
            $($variant,)*
        }

        impl PartGroup {
            /// All of them, in the order of charts.
            pub fn all() -> Vec<Self> {
                vec![$(Self { name: $name, title: $title, noun: $noun, help: $help, parts: DelayCause::of_group(Group::$variant) },)*]
            }
        }
    };
}

groups! {
    Handshakes "handshakes" "Handshakes" "handshakes"
        "Setting connections up, without timers, and closing them.",
    Propagation "propagation" "Propagation" "propagation"
        "In flight, of the packets that carried the message.",
    Link "link" "Link" "the rate of the link"
        "Being put on the wire: the link carried the message's own bytes and those of its connection.",
    Queueing "queueing" "Queueing" "queues"
        "Waiting behind packets of others.",
    Jitter "jitter" "Jitter" "jitter"
        "Otherwise held back by the path.",
    Recovery "recovery" "Loss recovery" "loss recovery"
        "From sending what was lost to sending it again, and waiting for the window that it had cut.",
    HeadOfLine "head_of_line" "Head of line" "waiting for lost data that was sent before"
        "Received, and waiting for what was sent before it on the same connection and was lost.",
    CongestionWindow "congestion_window" "Congestion window" "the congestion window"
        "Ready to be sent, and held back by the congestion window.",
    ReceiveWindow "receive_window" "Receive window" "the receiver's window"
        "Ready to be sent, and held back by the window that TCP's receiver gave, or by QUIC's flow control.",
    SendBuffer "send_buffer" "Send buffer" "the send buffer"
        "Held back because TCP's send buffer was full, so that nothing more was there to be sent.",
    Acknowledgements "acknowledgements" "Waits for ACKs" "Nagle's algorithm and delayed acknowledgements"
        "Waiting for acknowledgements: Nagle's algorithm, and receivers that delay them.",
    Pacing "pacing" "Pacing" "pacing"
        "Ready to be sent, and held back by the pace at which packets are sent.",
    Hosts "hosts" "Hosts" "the hosts"
        "The programs and kernels of both hosts, and the emulator where it was late.",
    Unknown "unknown" "Unknown" "what packets do not tell"
        "What packets do not tell.",
}

macro_rules! parts {
    ($($variant:ident: $group:ident $name:literal $noun:literal $help:literal $share:literal $exchange:literal,)*) => {
        /// A cause of delay.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum DelayCause {
            $(#[doc = $help] $variant,)*
        }

        impl DelayCause {
            /// All causes, in the order of tables.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];
            /// Their rows, in the same order.
            const ROWS: &[(Group, PartWords)] = &[$(
                (Group::$group, PartWords { name: $name, noun: $noun, of_connections: $share, of_exchange: $exchange }),
            )*];
        }
    };
}

with_parts!(parts);

impl DelayCause {
    /// As it is stored.
    pub const fn name(self) -> &'static str {
        Self::ROWS[self as usize].1.name
    }

    fn of_group(group: Group) -> Vec<PartWords> {
        Self::ROWS.iter().filter(|(of, _)| *of == group).map(|(_, words)| *words).collect()
    }

    /// Time at the sending host of direction `side`.
    pub fn sender(side: Side) -> Self {
        side.pick(Self::ClientHost, Self::ServerHost)
    }

    /// The sending program's wait for a timer, in direction `side`.
    pub(crate) fn timer(side: Side) -> Self {
        side.pick(Self::ClientTimer, Self::ServerTimer)
    }

    /// The sending program's wait for another connection, in direction `side`.
    pub(crate) fn other_connection(side: Side) -> Self {
        side.pick(Self::ClientConnection, Self::ServerConnection)
    }

    /// Time at the receiving host of direction `side`.
    pub fn receiver(side: Side) -> Self {
        side.pick(Self::ServerHost, Self::ClientHost)
    }

    pub(crate) fn propagation(side: Side) -> Self {
        side.pick(Self::PropagationForward, Self::PropagationReverse)
    }

    pub(crate) fn serialisation(side: Side) -> Self {
        side.pick(Self::SerialisationForward, Self::SerialisationReverse)
    }

    pub(crate) fn queueing(side: Side) -> Self {
        side.pick(Self::QueueingForward, Self::QueueingReverse)
    }

    pub(crate) fn jitter(side: Side) -> Self {
        side.pick(Self::JitterForward, Self::JitterReverse)
    }
}
