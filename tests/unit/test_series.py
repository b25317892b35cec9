"""Keys that hold a series of numbers: a list, a text, or a file, and a factor of such."""

import pytest

from crosswind.catalog import CellUnit, Key, KeyType
from crosswind.study.levels import SeriesFile
from crosswind.study.value_types import type_of
from crosswind.text.units import UnitError

RATES = Key(
    name="rates_bps", study="rates", type=KeyType.SERIES, unit=CellUnit.BITS_PER_SECOND, default=None,
    default_help=None, minimum=1, maximum=10**9, choices=(), required=False, varies=True, help="Rates.", only_with=None,
    on_sockets=False,
)  # fmt: skip
NUMBERS = Key(**{**vars(RATES), "unit": CellUnit.PACKETS, "minimum": 0, "maximum": 9})


@pytest.mark.parametrize(
    ("key", "raw", "meant"),
    [
        (RATES, ["1mbit", "2kbit"], [(10**6, 2000)]),
        (RATES, "1mbit 2kbit", [(10**6, 2000)]),
        (RATES, "1mbit", [(10**6,)]),
        (RATES, "@rates.txt", [SeriesFile("rates.txt")]),
        (RATES, ["@a.txt", "@b c.txt"], [SeriesFile("a.txt"), SeriesFile("b c.txt")]),
        (NUMBERS, [0, 2.5], [(0, 2.5)]),
        (NUMBERS, [[0, 1], [2]], [(0, 1), (2,)]),
        (NUMBERS, ["0 1", "2"], [(0, 1), (2,)]),
    ],
)
def test_a_series_is_a_list_a_text_or_a_file(key: Key, raw: object, meant: list[object]) -> None:
    values = type_of([key]).values(raw)
    assert [level.value for level in values.levels] == meant
    assert values.is_factor == (len(meant) > 1)


@pytest.mark.parametrize(
    ("key", "raw", "message"),
    [
        (NUMBERS, ["a"], '"a" is not a number'),
        (NUMBERS, [], "is no series"),
        (NUMBERS, [[0], [0]], "the levels of a factor must differ"),
        (RATES, [True, "1mbit"], "true is not a rate"),
    ],
)
def test_what_is_no_number_is_refused(key: Key, raw: object, message: str) -> None:
    with pytest.raises(UnitError) as error:
        type_of([key]).values(raw)
    assert message in f"{error.value.message} {error.value.hint}"
