"""What chance does in our path beside the kernel's own netem: the same parameters and datagrams, in the same guests.

Both draw from generators of their own: so what is compared are distributions, whose samples are fixed by the seed.
"""

import sys
from itertools import groupby, pairwise
from pathlib import Path

import pytest
import scipy.stats

import crosswind
from crosswind.cell.guests import Template
from virtual.test_netem import over_netem

# Datagrams one every `gap`, each with its number and when it was sent. Both ends read one clock.
SENDER = """
import socket, sys, time
host, count, gap_ns = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
time.sleep(0.5)
start = time.monotonic_ns()
for number in range(count):
    time.sleep(max(0, start + number * gap_ns - time.monotonic_ns()) / 1e9)
    sender.sendto(b"%d %d" % (number, time.monotonic_ns()), (host, 5001))
time.sleep(10)  # What receives has written all by then.
"""

RECEIVER = """
import socket, sys, time
receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
receiver.bind((sys.argv[1], 5001))
receiver.settimeout(5)
try:
    while True:
        number, sent = receiver.recv(100).split()
        print(int(number), time.monotonic_ns() - int(sent))
except TimeoutError:
    pass
"""

GAP_NS = 1_000_000

Arrivals = list[tuple[int, int]]
"""Number and delay in nanoseconds of the datagrams, in the order of their arrival."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """What sends, and what receives."""
    home = tmp_path_factory.mktemp("programs")
    for name, text in (("sender.py", SENDER), ("receiver.py", RECEIVER)):
        (home / name).write_text(text)
    return home / "sender.py", home / "receiver.py"


def arrivals_of(text: str) -> Arrivals:
    return [(int(number), int(delay)) for number, delay in map(str.split, text.splitlines())]


def both(
    template: Template, programs: tuple[Path, Path], netem: str, path: dict[str, object], count: int
) -> tuple[Arrivals, Arrivals]:
    """What arrives over netem in one direction, and over our path."""
    sender, receiver = programs
    commands = f"""
    tc -n b qdisc del dev v root
    ip netns exec b {sys.executable} {receiver} 10.0.0.2 &
    ip netns exec a {sys.executable} {sender} 10.0.0.2 {count} {GAP_NS}
    wait
    """
    cell = crosswind.virtual(
        {"forward": path},
        ["{python}", str(sender), "{server}", str(count), str(GAP_NS)],
        ["{python}", str(receiver), "{server}"],
        seed=3,
    )
    return arrivals_of(over_netem(template, netem, commands)), arrivals_of(cell.output["server"])


def bursts(arrivals: Arrivals, count: int) -> tuple[list[int], list[int]]:
    """Lengths of the runs of lost and of delivered packets."""
    arrived = {number for number, _ in arrivals}
    runs = [(got, len(list(run))) for got, run in groupby(number in arrived for number in range(count))][1:-1]
    return [length for got, length in runs if not got], [length for got, length in runs if got]


@pytest.mark.parametrize(
    ("netem", "path"),
    [
        ("loss gemodel 2% 25%", {"loss_enter": "2%", "loss_leave": "25%"}),
        (
            "loss gemodel 5% 30% 60% 1%",
            {"loss_enter": "5%", "loss_leave": "30%", "loss_in_bad": "60%", "loss_in_good": "1%"},
        ),
        (
            "loss state 3% 30% 20% 60% 1%",
            {"loss_p13": "3%", "loss_p31": "30%", "loss_p32": "20%", "loss_p23": "60%", "loss_p14": "1%"},
        ),
    ],
)
def test_bursts_of_loss_have_the_lengths_of_those_of_netem(
    template: Template, programs: tuple[Path, Path], netem: str, path: dict[str, object]
) -> None:
    count = 20_000
    theirs, ours = (bursts(arrivals, count) for arrivals in both(template, programs, netem, path, count))
    for their_lengths, our_lengths in zip(theirs, ours, strict=True):
        assert len(our_lengths) > 300
        # Chi-square over the lengths that are frequent enough; a fixed sample, which holds or does not.
        edges = [1, 2, 3, 5, 9, 20, 60, count]
        table = [
            [sum(low <= length < high for length in lengths) for low, high in pairwise(edges)]
            for lengths in (their_lengths, our_lengths)
        ]
        frequent = [[row[i] for i in range(len(table[0])) if table[0][i] + table[1][i] >= 10] for row in table]
        assert scipy.stats.chi2_contingency(frequent).pvalue > 0.001, table


def test_packets_overtake_at_the_distances_of_netem(template: Template, programs: tuple[Path, Path]) -> None:
    distances = []
    for arrivals in both(
        template,
        programs,
        "delay 10ms reorder 25% gap 5",
        {"delay": "10ms", "reorder_share": "25%", "reorder_gap": 5},
        8_000,
    ):
        at_once = sorted(number for number, delay in arrivals if delay < 1_000_000)
        assert all(delay < 10_010_000 for _, delay in arrivals)
        assert len(arrivals) == 8_000
        distances.append([after - before for before, after in pairwise(at_once)])
        assert min(distances[-1]) == 5
    table = [[sum(length == each for length in lengths) for each in range(5, 12)] for lengths in distances]
    assert scipy.stats.chi2_contingency(table).pvalue > 0.001, table


@pytest.mark.parametrize("distribution", ["uniform", "normal"])
def test_jitter_has_the_distribution_of_that_of_netem(
    template: Template, programs: tuple[Path, Path], distribution: str
) -> None:
    given = "" if distribution == "uniform" else f" distribution {distribution}"
    path = {"delay": "50ms", "jitter": "5ms", "jitter_distribution": distribution, "reorder": True}
    theirs, ours = both(template, programs, f"delay 50ms 5ms{given}", path, 5_000)
    assert len(theirs) == len(ours) == 5_000
    delays = [[delay for _, delay in arrivals] for arrivals in (theirs, ours)]
    assert scipy.stats.ks_2samp(*delays).pvalue > 0.001
    overtaken = []
    for arrivals in (theirs, ours):
        numbers = [number for number, _ in arrivals]
        overtaken.append(sum(number < max(numbers[: at + 1]) for at, number in enumerate(numbers)))
    # As many are overtaken: each with the same probability, and neighbours together.
    assert overtaken[1] == pytest.approx(overtaken[0], rel=0.1)
