"""The formula for transfer times, term by term."""

from dataclasses import replace

import pytest

from crosswind.models import predict_situation
from crosswind.models.situation import Situation, situation
from crosswind.models.transfer import Begun, Coefficients, Columns, transfer_time

NOTHING = Coefficients(window=1e9, repair=0.0, timeout_scale=0.0, timeout_power=2.0, tail=0.0)


def cell(loss: float, size: int = 64_000, *, rtt_ms: int = 100, rate: int | None = 6_000_000, **host) -> Situation:
    direction = {"delay_ns": rtt_ms * 500_000, "loss": loss, "rate_bps": rate}
    return situation({
        "path": {"forward": direction, "reverse": direction},
        "host": {"profile": "freebsd-8"} | host,
        "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": size},
    })  # fmt: skip


def seconds(of: Situation, coefficients: Coefficients = NOTHING) -> float:
    return float(transfer_time(Columns.of([of]), coefficients)[0])


def test_without_loss_it_is_slow_start() -> None:
    for size in (1, 5_000, 64_000, 1_000_000):
        assert seconds(cell(0.0, size)) == pytest.approx(predict_situation("slow-start", cell(0.0, size)).value / 1e9)


def test_slow_start_ends_at_the_first_loss_wherever_that_is() -> None:
    # Three segments of one window arrive after 0, 2 and 3.5 ms (the last has 500 of 1448 bytes); each is lost with 1/4.
    three = cell(0.25, 2 * 1448 + 1034)
    last = 0.002 + 0.002 * (52 + 1034) / 1500
    begun = Begun.of([three])
    assert begun.seconds[0] == pytest.approx(0.002 * 0.75 / 4 + last * 0.75**2 / 4 + last * 0.75**3, rel=1e-9)
    assert begun.left[0] == pytest.approx((3 + 2 * 0.75 + 1 * 0.75**2) / 4)
    # Of three left, the second loss is at the first, second or third with 1/4, 3/16, and 9/16 for none before the last.
    until_second = [1, 1 + 0.75, 1 + 0.75 + 0.75**2]
    expected = (until_second[2] + until_second[1] * 0.75 + until_second[0] * 0.75**2) / 4
    assert begun.soon[0] == pytest.approx(expected)
    # The window was 3, 4 or 5 segments; half of it is left.
    lost = 1 - 0.75**3
    assert begun.window[0] == pytest.approx((3 + 4 * 0.75 + 5 * 0.75**2) / 4 / lost / 2)


def test_each_term_adds_what_it_says() -> None:
    lossy = cell(0.04)
    begun = Begun.of([lossy])
    plain, left, soon = seconds(lossy), float(begun.left[0]), float(begun.soon[0])
    first = float(begun.seconds[0]) + soon * 0.102 / float(begun.window[0])
    assert plain == pytest.approx(first + (left - soon) * 0.102 / (65535 / 1448))
    # Of 45 segments 1.8 are lost; r = 102 ms, T0 = 330 ms.
    assert seconds(lossy, replace(NOTHING, repair=2.0)) - plain == pytest.approx(1.8 * 2 * 0.102)
    window = seconds(lossy, replace(NOTHING, window=1.0)) - plain
    assert window == pytest.approx((left - soon) * 0.102 * (1 / 5 - 1448 / 65535))
    assert seconds(lossy, replace(NOTHING, tail=1.0)) - plain == pytest.approx(0.33 * 0.04 / 0.92)
    backoff = 1 + 0.04 + 2 * 0.04**2 + 4 * 0.04**3 + 8 * 0.04**4 + 16 * 0.04**5 + 32 * 0.04**6
    timeouts = seconds(lossy, replace(NOTHING, timeout_scale=100.0)) - plain
    assert timeouts == pytest.approx(1.8 * 0.16 * 0.33 * backoff / 0.96)


def test_columns_are_computed_each_by_itself() -> None:
    cells = [cell(0.01), cell(0.1, 5_000, rtt_ms=30), cell(0.0, 1_000_000, rate=None)]
    fitted = Coefficients(2.0, 1.0, 30.0, 2.3, 1.0)
    assert transfer_time(Columns.of(cells), fitted).tolist() == pytest.approx([seconds(one, fitted) for one in cells])


@pytest.mark.parametrize(
    ("outside", "warning"),
    [
        (cell(0.2), "1 to 10 % loss"),
        (cell(0.02, rtt_ms=200), "100 ms"),
        (cell(0.02, 1_000), "5 kB"),
        (cell(0.02, sack=False), "without which"),
        (cell(0.02, congestion_control="vegas"), "not vegas"),
        (replace(cell(0.02, rtt_ms=30), queue_packets=12), "queue may overflow"),
    ],
)
def test_outside_its_range_the_number_has_a_warning(outside: Situation, warning: str) -> None:
    found = predict_situation("transfer", outside)
    assert found.value > 0
    assert any(warning in text for text in found.violated)
    assert predict_situation("transfer", cell(0.02)).violated == ()


def test_from_half_the_packets_lost_there_is_no_number() -> None:
    found = predict_situation("transfer", cell(0.5))
    assert found.value is None
    assert any("below 50 %" in note for note in found.notes)
