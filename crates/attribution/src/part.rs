//! The names that time can have.

use crosswind_path::Side;

/// Hands all parts, each with its name and what it is, to a macro: for what has something for each of them.
#[macro_export]
macro_rules! with_parts {
    ($callback:ident) => {
        $callback! {
            TcpHandshake "tcp_handshake" "TCP's handshake, without the wait for its timer.",
            SecurityHandshake "security_handshake" "The handshake of TLS or QUIC.",
            UpgradeHandshake "upgrade_handshake" "The upgrade to WebSocket, WebTransport or Socket.IO.",
            ClientHost "client_host" "The client's program and kernel.",
            ServerHost "server_host" "The server's program and kernel.",
            PropagationForward "propagation_forward" "In flight to the server, of packets that carried the message.",
            PropagationReverse "propagation_reverse" "In flight to the client, of packets that carried the message.",
            SerialisationForward "serialisation_forward" "Being put on the wire to the server.",
            SerialisationReverse "serialisation_reverse" "Being put on the wire to the client.",
            QueueingForward "queueing_forward" "Waiting behind other packets on the way to the server.",
            QueueingReverse "queueing_reverse" "Waiting behind other packets on the way to the client.",
            JitterForward "jitter_forward" "Otherwise held back on the way to the server.",
            JitterReverse "jitter_reverse" "Otherwise held back on the way to the client.",
            Late "late" "Held by the emulator for longer than was due.",
            FastRecovery "fast_recovery" "From sending what was lost to sending it again, because acknowledgements of what followed said so: TCP's fast retransmit and RACK.",
            TailLossProbe "tail_loss_probe" "From sending what was lost to sending it again as a probe, because no acknowledgement came: TCP's tail loss probe.",
            RetransmissionTimer "retransmission_timer" "From sending what was lost to sending it again when TCP's retransmission timer expired.",
            SynTimer "syn_timer" "From sending a SYN that was lost, or whose answer was, to sending it again.",
            PacketThreshold "packet_threshold" "From sending what was lost to sending it again, because enough packets that followed were acknowledged: QUIC's packet threshold.",
            TimeThreshold "time_threshold" "From sending what was lost to sending it again, because a packet that followed was acknowledged and enough time had passed: QUIC's time threshold.",
            ProbeTimer "probe_timer" "From sending what was lost to sending a probe, or it again, when QUIC's probe timeout (PTO) had passed.",
            DatagramLoss "datagram_loss" "From sending a datagram that was lost, or whose answer was, to sending the next one: of UDP whose recovery is the program's own.",
            HeadOfLine "head_of_line" "Received, and waiting for what was sent before it on the same connection and was lost; over HTTP/1.1 also ready to be sent, and waiting for the exchange before it.",
            CongestionWindow "congestion_window" "Ready to be sent, and held back by the congestion window: round trips of what had to be acknowledged first.",
            SlowStartAfterIdle "slow_start_after_idle" "The same, where the window was larger before the connection was idle.",
            ReceiveWindow "receive_window" "Ready to be sent, and held back by the window that TCP's receiver gave.",
            ZeroWindow "zero_window" "Ready to be sent, and held back by a window of TCP's receiver that stayed closed until its program had read.",
            SendBuffer "send_buffer" "Held back because TCP's send buffer was full, so that nothing more was there to be sent.",
            StreamWindow "stream_window" "Ready to be sent, and held back by the flow control of its stream of QUIC or HTTP/2, until the receiver gave it more.",
            ConnectionWindow "connection_window" "Ready to be sent, and held back by the flow control of all streams of a connection of QUIC or HTTP/2 together, until the receiver gave it more.",
            Nagle "nagle" "Ready to be sent, and held back until what was sent before was acknowledged: Nagle's algorithm.",
            DelayedAcknowledgement "delayed_acknowledgement" "Waiting for an acknowledgement that the receiver delayed.",
            Pacing "pacing" "Ready to be sent, and held back by the pace at which packets are sent.",
            Closing "closing" "Closing a connection: from the first FIN or RST to the last packet, once all data had arrived.",
            Unknown "unknown" "What the wire does not tell.",
        }
    };
}

macro_rules! parts {
    ($($variant:ident $name:literal $help:literal,)*) => {
        /// What time was spent on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Part {
            $(#[doc = $help] $variant,)*
        }

        impl Part {
            /// All of them, in the order of tables.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// As it is stored.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }
    };
}

with_parts!(parts);

impl Part {
    /// Time at the host that sends in the direction of `side`.
    pub fn sender(side: Side) -> Self {
        side.pick(Self::ClientHost, Self::ServerHost)
    }

    /// Time at the host that receives from the direction of `side`.
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
