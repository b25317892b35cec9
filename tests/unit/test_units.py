"""Units: exact values, exact messages."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.text import units
from crosswind.text.units import Queue, UnitError


@pytest.mark.parametrize(
    ("written", "duration_ns"),
    [
        ("50ms", 50_000_000),
        ("1.5ms", 1_500_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("2s", 2_000_000_000),
        ("1m", 60_000_000_000),
        ("0.1 s", 100_000_000),
        ("1ns", 1),
        ("0", 0),
        (0, 0),
    ],
)
def test_durations(written: object, duration_ns: int) -> None:
    assert units.parse_duration(written) == duration_ns


@pytest.mark.parametrize(
    ("written", "rate_bps"),
    [
        ("10mbit", 10_000_000),
        ("10Mbit/s", 10_000_000),
        ("100kbit", 100_000),
        ("1gbit", 10**9),
        ("1.5mbit", 1_500_000),
        ("8Mibit", 8_388_608),
        ("1kibit", 1024),
        ("unlimited", None),
    ],
)
def test_rates(written: str, rate_bps: int | None) -> None:
    assert units.parse_rate(written) == rate_bps


@pytest.mark.parametrize(
    ("written", "size_bytes"),
    [
        ("256kB", 256_000),
        ("64KiB", 65_536),
        ("1MB", 10**6),
        ("20MB", 20_000_000),
        ("1MiB", 1_048_576),
        ("1.5kB", 1500),
        (1000, 1000),
        ("1000", 1000),
        ("7B", 7),
    ],
)
def test_sizes(written: object, size_bytes: int) -> None:
    assert units.parse_size(written) == size_bytes


@pytest.mark.parametrize(
    ("written", "probability"),
    [
        ("5%", "0.05"),
        (0.05, "0.05"),
        ("0.05", "0.05"),
        ("0.1 %", "0.001"),
        (1, "1"),
        ("100%", "1"),
        (1e-5, "0.00001"),
        ("1e-6", "0.000001"),
        ("2.5E-6", "0.0000025"),
        ("1e-4%", "0.000001"),
        ("1e+0", "1"),
    ],
)
def test_probabilities(written: object, probability: str) -> None:
    assert units.parse_probability(written) == Decimal(probability)


def test_an_exponent_means_the_same_of_every_quantity() -> None:
    assert units.parse_duration("1e-3s") == units.parse_duration("1ms")
    assert units.parse_rate("2.5e6bit") == units.parse_rate("2.5mbit")
    assert units.parse_size("1e6") == units.parse_size("1MB")
    assert units.parse_queue("1e2p") == Queue(packets=100)
    with pytest.raises(units.UnitError, match="negative"):
        units.parse_probability("-1e-6")
    for nothing in ("1e", "e-6", "1e-", "1e1000", "1e-6.5"):
        with pytest.raises(units.UnitError):
            units.parse_probability(nothing)


@pytest.mark.parametrize(
    ("written", "queue"),
    [("100p", Queue(packets=100)), ("64kB", Queue(size_bytes=64_000)), ("64KiB", Queue(size_bytes=65_536))],
)
def test_queues(written: str, queue: Queue) -> None:
    assert units.parse_queue(written) == queue


@pytest.mark.parametrize(
    ("parse", "written", "message", "hint"),
    [
        (units.parse_duration, 50, "50 has no unit", 'write "50ms" for milliseconds'),
        (units.parse_duration, "-5ms", '"-5ms" is negative', "a duration is a number"),
        (units.parse_duration, "5M", '"5M": "M" is not a unit here', 'did you mean "5m"?'),
        (units.parse_duration, "5sec", '"5sec": "sec" is not a unit here', 'did you mean "5s"?'),
        (units.parse_duration, "0.5ns", '"0.5ns" is not a whole number of nanoseconds', "the nearest are 0 and 1"),
        (units.parse_duration, True, "true is not a duration", "a duration is"),
        (units.parse_duration, ["1ms"], '["1ms"] is not a duration', "a duration is"),
        (units.parse_rate, "100 mbps", '"100 mbps": "mbps" is not a unit here', 'did you mean "100mbit"?'),
        (units.parse_rate, "1.5Mb/s", '"1.5Mb/s": "Mb/s" is not a unit here', 'did you mean "1.5mbit"?'),
        (units.parse_rate, 100, "100 has no unit", 'write "100mbit"'),
        (units.parse_rate, "0mbit", 'a rate of "0mbit" lets nothing through', "a rate is"),
        (units.parse_rate, "fast", '"fast" is not a rate', "a rate is"),
        (units.parse_size, "64KB", '"64KB": the unit "KB" is read in more than one way', 'write "64kB"'),
        (units.parse_size, "64kb", '"64kb": the unit "kb" is read in more than one way', 'or "64KiB" (1,024)'),
        (units.parse_size, "64kib", '"64kib": "kib" is not a unit here', 'did you mean "64KiB"?'),
        (units.parse_size, "1.5B", '"1.5B" is not a whole number of bytes', "the nearest are 1 and 2"),
        (units.parse_size, -1, "-1 is negative", "a size is"),
        (units.parse_probability, "101%", '"101%" is more than 100%', "from 0% to 100%"),
        (units.parse_probability, 5, "5 is more than 100%", 'did you mean "5%"?'),
        (units.parse_probability, -0.1, "-0.1 is negative", "from 0% to 100%"),
        (units.parse_probability, float("nan"), "NaN is not a number", "from 0% to 100%"),
        (units.parse_probability, "5ms", '"5ms": "ms" is not a unit of probability', "from 0% to 100%"),
        (units.parse_queue, 100, "100 has no unit", 'write "100p" for packets or "100B" for bytes'),
        (units.parse_queue, "0p", 'a queue of "0p" holds nothing', "a queue is"),
        (units.parse_queue, "1.5p", '"1.5p" is not a whole number of packets', "the nearest are 1 and 2"),
    ],
)
def test_mistakes_say_what_would_be_right(parse, written: object, message: str, hint: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UnitError) as caught:
        parse(written)
    assert caught.value.message == message
    assert hint in (caught.value.hint or "")


def test_what_is_printed() -> None:
    assert units.format_duration(1_500_000) == "1.5ms"
    assert units.format_duration(90 * 10**9) == "90s"
    assert units.format_duration(0) == "0ms"
    assert units.format_rate(1_500_000) == "1.5mbit"
    assert units.format_rate(None) == "unlimited"
    assert units.format_size(256_000) == "256kB"
    assert units.format_size(65_536) == "64KiB"
    assert units.format_probability(Decimal("0.05")) == "5%"
    assert units.format_probability(Decimal("0.001")) == "0.1%"
    assert units.format_probability(Decimal("1")) == "100%"
    assert units.format_queue(Queue(packets=100)) == "100p"


@given(st.integers(min_value=0, max_value=10**17))
def test_whole_numbers_survive_the_round_trip(number: int) -> None:
    assert units.parse_duration(units.format_duration(number)) == number
    assert units.parse_size(units.format_size(number)) == number
    if number:
        assert units.parse_rate(units.format_rate(number)) == number


@given(st.decimals(min_value=0, max_value=1, places=9))
def test_probabilities_survive_the_round_trip(probability: Decimal) -> None:
    assert units.parse_probability(units.format_probability(probability)) == probability


@given(st.one_of(st.text(), st.integers(), st.floats(), st.booleans(), st.none(), st.lists(st.integers())))
def test_anything_is_read_or_refused(value: object) -> None:
    for parse in (
        units.parse_duration,
        units.parse_rate,
        units.parse_size,
        units.parse_probability,
        units.parse_queue,
    ):
        try:
            parse(value)
        except UnitError as error:
            assert str(error)
