"""Networks of the documents whose experiments the built-in studies repeat."""

from crosswind.study.networks.network import MBIT, ROUND_QUEUE, Source, network

DOCUMENTS = (
    network(
        "wan", "a fixed line of 2013 to a server in the same part of the world",
        Source("delay, rate", "round numbers; the article of the study websocket-or-http describes no line"),
        ROUND_QUEUE,
        rtt_ms=40, rates=(20 * MBIT, 5 * MBIT),
    ),
    network(
        "hsdpa+", "a mobile network of 2013",
        Source(
            "rate",
            "somewhat over a third of what 3GPP Release 7 gives to a cell that is shared: 21.1 Mbit/s down (category "
            "14) and 5.76 Mbit/s up (HSUPA category 6)",
        ),
        Source("delay", "a round number"),
        Source(
            "queue",
            "what the link carries in 250 ms, because operators keep deep queues (Jiang et al., Tackling Bufferbloat "
            "in 3G/4G Networks, IMC 2012); the number is round",
        ),
        rtt_ms=70, rates=(8 * MBIT, 2 * MBIT), buffer_ms=250,
    ),
    network(
        "thesis-lo", "the thesis's client and server on one machine, with loss by netem",
        Source(
            "loss",
            "the least of its 10, 15 and 20 %; on a loopback device netem acts on both directions, so a round "
            "trip meets it twice. Set path.loss for the others",
        ),
        Source(
            "delay, rate",
            "a loopback device has neither; its packets may be larger, which makes no difference to messages of one "
            "packet",
        ),
        rtt_ms=0, rates=None, loss="0.1",
    ),
)  # fmt: skip
