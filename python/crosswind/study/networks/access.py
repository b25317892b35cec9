"""Kinds of access, each as a round picture of many: real ones differ by a factor of two and more, by place and hour."""

from crosswind.study.networks.network import KBIT, MBIT, ROUND_QUEUE, Source, network

_OOKLA_SATELLITES = "median of Ookla's Speedtest in the USA, third quarter of 2021"
_WIFI = "Sui et al., Characterizing and Improving WiFi Latency in Large-Scale Operational Networks, MobiSys 2016: "
_DEEP_QUEUE = Source(
    "queue",
    "what the link carries in 250 ms, because mobile operators keep deep queues (Jiang et al., Tackling Bufferbloat in "
    "3G/4G Networks, IMC 2012); the number is round",
)

ACCESS = (
    network(
        "localhost", "one machine",
        Source("delay, rate", "no link and no distance, only processors"),
        rtt_ms=0, rates=None,
    ),
    network(
        "lan", "a wired office network",
        Source("rate", "Fast Ethernet, IEEE 802.3u"),
        Source("delay, queue", "round numbers: 0.5 ms there and back, a queue of 20 ms"),
        rtt_ms=0.5, rates=(100 * MBIT, 100 * MBIT), buffer_ms=20,
    ),
    network(
        "wifi", "a good wireless network, to the next wired host",
        Source("delay", f"{_WIFI}the median is 3 ms"),
        Source("rate", "a round number"),
        ROUND_QUEUE,
        rtt_ms=3, rates=(50 * MBIT, 50 * MBIT),
    ),
    network(
        "wifi-lossy", "a crowded or distant wireless network, to the next wired host",
        Source("delay", f"{_WIFI}the 90th percentile is around 20 ms"),
        Source("rate, loss", "round numbers"),
        ROUND_QUEUE,
        rtt_ms=20, rates=(10 * MBIT, 10 * MBIT), loss="0.02",
    ),
    network(
        "dsl", "a slow telephone line",
        Source("delay, rate", "WebPageTest's DSL (wpt-dsl)"),
        ROUND_QUEUE,
        rtt_ms=50, rates=(1500 * KBIT, 384 * KBIT),
    ),
    network(
        "cable", "a slow cable line",
        Source("delay, rate", "WebPageTest's Cable (wpt-cable)"),
        ROUND_QUEUE,
        rtt_ms=28, rates=(5 * MBIT, 1 * MBIT),
    ),
    network(
        "fibre", "fibre to the home",
        Source(
            "delay, rate",
            "the tier of 75/75 Mbit/s of Verizon Fios in the FCC's Measuring Broadband America of 2016, as Verizon "
            "publishes it: medians of 11.55 ms, 79.74 Mbit/s down and 85.68 Mbit/s up",
        ),
        ROUND_QUEUE,
        rtt_ms=11.55, rates=(79_740 * KBIT, 85_680 * KBIT),
    ),
    network(
        "2g", "a mobile network of the second generation",
        Source("delay, rate", "WebPageTest's 2G (wpt-2g)"),
        ROUND_QUEUE,
        rtt_ms=800, rates=(280 * KBIT, 256 * KBIT),
    ),
    network(
        "3g", "a mobile network of the third generation",
        Source("delay, rate", "WebPageTest's 3G (wpt-3g)"),
        ROUND_QUEUE,
        rtt_ms=300, rates=(1600 * KBIT, 768 * KBIT),
    ),
    network(
        "hspa", "a mobile network of the third generation with HSPA",
        Source(
            "rate",
            "the peaks of terminals of HSDPA category 6 (7298 bits in 2 ms) and HSUPA category 3 (14484 bits in 10 ms) "
            "in 3GPP TS 25.306, in tenths of a Mbit/s",
        ),
        Source(
            "delay", "the least of the 100 to 500 ms that Grigorik, High Performance Browser Networking, has for 3G"
        ),
        _DEEP_QUEUE,
        rtt_ms=100, rates=(3600 * KBIT, 1400 * KBIT), buffer_ms=250,
    ),
    network(
        "4g", "a mobile network of the fourth generation",
        Source("delay, rate", "WebPageTest's 4G (wpt-4g)"),
        ROUND_QUEUE,
        rtt_ms=170, rates=(9 * MBIT, 9 * MBIT),
    ),
    network(
        "5g", "a mobile network of the fifth generation",
        Source("rate", "median of Ookla's Speedtest over the world, third quarter of 2021: 166.13 / 21.08 Mbit/s"),
        Source("delay", "a round number"),
        ROUND_QUEUE,
        rtt_ms=30, rates=(166_130 * KBIT, 21_080 * KBIT),
    ),
    network(
        "satellite-geo", "a geostationary satellite",
        Source("delay, rate", f"{_OOKLA_SATELLITES}, for Viasat: 629 ms, 18.75 / 2.96 Mbit/s"),
        Source("queue", "what the link carries in one round trip, the rule of Villamizar and Song, 1994"),
        rtt_ms=629, rates=(18_750 * KBIT, 2_960 * KBIT), buffer_ms=629,
    ),
    network(
        "satellite-leo", "satellites in low orbits",
        Source("delay, rate", f"{_OOKLA_SATELLITES}, for Starlink: 44 ms, 87.25 / 13.54 Mbit/s"),
        ROUND_QUEUE,
        rtt_ms=44, rates=(87_250 * KBIT, 13_540 * KBIT),
    ),
    network(
        "transatlantic", "a server on the other side of the Atlantic",
        Source("delay", "what Verizon's service level agreement allows between New York and London: 90 ms"),
        Source("rate", "a round number"),
        ROUND_QUEUE,
        rtt_ms=90, rates=(100 * MBIT, 100 * MBIT),
    ),
)  # fmt: skip
