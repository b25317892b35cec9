"""What exchanges spend their time on: the parts that cells tell, and the groups that reports show (docs/explain.md).

A group is a metric: its formula is the sum of its parts, so that the groups of an exchange sum to its whole time.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class SpentGroup:
    """Parts that belong together.

    Attributes: name: of its metric, after `spent_`. title: in charts. noun: in sentences.
    """

    name: str
    title: str
    noun: str
    help: str
    parts: tuple[str, ...]

    @property
    def metric(self) -> str:
        """The name of its metric."""
        return f"spent_{self.name}"


WHOLE = "spent"
"""The metric of the whole time."""

GROUPS = (
    SpentGroup("handshakes", "Handshakes", "handshakes", "Setting connections up, without timers, and closing them.",
          ("tcp_handshake", "security_handshake", "upgrade_handshake", "closing")),
    SpentGroup("propagation", "Propagation", "propagation", "In flight, of the packets that carried the message.",
          ("propagation_forward", "propagation_reverse")),
    SpentGroup("link", "Link", "the rate of the link",
          "Being put on the wire: the link carried the message's own bytes and those of its connection.",
          ("serialisation_forward", "serialisation_reverse")),
    SpentGroup("queueing", "Queueing", "queues", "Waiting behind packets of others.",
          ("queueing_forward", "queueing_reverse")),
    SpentGroup("jitter", "Jitter", "jitter", "Otherwise held back by the path.", ("jitter_forward", "jitter_reverse")),
    SpentGroup("recovery", "Loss recovery", "loss recovery", "From sending what was lost to sending it again.",
          ("fast_recovery", "tail_loss_probe", "retransmission_timer", "syn_timer", "packet_threshold",
           "time_threshold", "probe_timer", "datagram_loss")),
    SpentGroup("head_of_line", "Head of line", "waiting for lost data that was sent before",
          "Received, and waiting for what was sent before it on the same connection and was lost.", ("head_of_line",)),
    SpentGroup("congestion_window", "Congestion window", "the congestion window",
          "Ready to be sent, and held back by the congestion window.", ("congestion_window", "slow_start_after_idle")),
    SpentGroup("receive_window", "Receive window", "the receiver's window",
          "Ready to be sent, and held back by the window that TCP's receiver gave, or by QUIC's flow control.",
          ("receive_window", "zero_window", "stream_window", "connection_window")),
    SpentGroup("send_buffer", "Send buffer", "the send buffer",
          "Held back because TCP's send buffer was full, so that nothing more was there to be sent.", ("send_buffer",)),
    SpentGroup("acknowledgements", "Waits for ACKs", "Nagle's algorithm and delayed acknowledgements",
          "Waiting for acknowledgements: Nagle's algorithm, and receivers that delay them.",
          ("nagle", "delayed_acknowledgement")),
    SpentGroup("pacing", "Pacing", "pacing", "Ready to be sent, and held back by the pace at which packets are sent.",
          ("pacing",)),
    SpentGroup("hosts", "Hosts", "the hosts",
          "The programs and kernels of both hosts, and the emulator where it was late.",
          ("client_host", "server_host", "late")),
    SpentGroup("unknown", "Unknown", "what packets do not tell", "What packets do not tell.", ("unknown",)),
)  # fmt: skip
"""Every group, in the order of charts. Each part of the catalogue is in one of them."""

TAKES = "that takes the emulator, exchanges that succeed, a cell of at most a million packets, and no --no-parts"
"""What to tell those whose cells do not tell."""

NOT_KEPT = "the run was started with --no-parts: run it again without"
"""The same where nobody wanted to know."""

_PROPER = {
    "tcp": "TCP's",
    "quic": "QUIC's",
    "syn": "SYN",
    "nagle": "Nagle's algorithm",
    "late": "lateness of the emulator",
}
_THINGS = ("handshake", "timer", "probe", "threshold", "window", "host")
"""Last words of parts that are a thing, and not a process: "the retransmission timer", but "fast recovery"."""


def noun_of(part: str) -> str:
    """A part in sentences, from its name: "the retransmission timer", "propagation to the server"."""
    words = part.split("_")
    towards = {"forward": " to the server", "reverse": " to the client"}.get(words[-1], "")
    words = words[:-1] if towards else words
    first = _PROPER.get(words[0], words[0])
    article = "the " if words[-1] in _THINGS and not first.endswith("'s") else ""
    return f"{article}{' '.join([first, *words[1:]])}{towards}"
