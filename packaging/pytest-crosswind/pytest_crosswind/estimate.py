"""A statistic of a run with its interval, which is compared with a number as a threshold of a study is."""

from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from crosswind.analysis.cells import CellData
    from crosswind.findings.threshold.result import ThresholdResult
    from crosswind.stats.estimate import Interval

_NS = 1e9
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Estimate:
    """A statistic of the times of a run, in seconds.

        result.p95 < 300 * ms

    is true where the whole 95 % interval is below 300 ms. Where it is not, a failing assertion says whether the
    interval is above, or how many more repetitions would probably tell.
    """

    __hash__ = None  # type: ignore[assignment]  # There is no equality.

    def __init__(self, data: "CellData", metric: str, statistic: str) -> None:
        """Args: data: of the run's one cell. metric, statistic: their names in crosswind.catalog.metrics."""
        self._data = data
        self._metric = metric
        self._statistic = statistic

    @property
    def value(self) -> float | None:
        """The estimate, s; None where it is an exchange that timed out, or there is none."""
        return _seconds(self._interval.value)

    @property
    def low(self) -> float | None:
        """Lower limit of the interval, s; None where it has none."""
        return _seconds(self._interval.low)

    @property
    def high(self) -> float | None:
        """Upper limit of the interval, s; None where it has none."""
        return _seconds(self._interval.high)

    @property
    def n(self) -> int:
        """How many times it rests on."""
        return self._interval.n

    @property
    def repetitions(self) -> int:
        """How many repetitions they are from."""
        return self._interval.units

    @property
    def reason(self) -> str | None:
        """Why the interval is not whole; None where it is."""
        return self._interval.reason

    def __lt__(self, bound: float) -> bool:
        return self._is_kept("<", bound)

    def __le__(self, bound: float) -> bool:
        return self._is_kept("<=", bound)

    def __gt__(self, bound: float) -> bool:
        return self._is_kept(">", bound)

    def __ge__(self, bound: float) -> bool:
        return self._is_kept(">=", bound)

    def __eq__(self, other: object) -> NoReturn:
        raise TypeError("an estimate with an interval equals no number: ask whether it is below or above one")

    def __float__(self) -> float:
        value = self.value
        if value is None:
            raise ValueError(f"{self!r} has no value")
        return value

    def __repr__(self) -> str:
        from crosswind.catalog.metrics import METRICS, STATISTICS
        from crosswind.report.text.format import count, count_of, interval, scale_of

        made, metric = self._interval, METRICS[self._metric]
        middle = made.value if made.value is not None else made.low
        divisor, unit = scale_of([middle], metric.unit.name)
        heading = f"{STATISTICS[self._statistic].heading} {metric.title.lower()}"
        if middle is None:
            return f"{heading}: {made.reason}"
        size = f"n = {count(made.n)}, {count_of(max(made.units, 1), 'repetition')}"
        return f"{heading} {interval(made, divisor)} {unit} ({size})"

    def explain(self, operator: str, bound: float) -> list[str]:
        """Why a comparison is false, in sentences."""
        from crosswind.findings.threshold.sentence import cell_sentence
        from crosswind.report.text.format import quantity

        judged = self._judged(operator, bound)
        (cell,) = judged.cells
        made = cell.value
        lines = [f"{self!r} {operator} {quantity(bound * _NS, 'ns')}", cell_sentence(judged, cell)]
        if made.low is not None and made.high is not None:
            lines.append(f"The interval is one of {100 * made.level:g} %: {made.method}.")
        return lines

    @property
    def _interval(self) -> "Interval":
        return self._judged("<", 0.0).cells[0].value

    def _is_kept(self, operator: str, bound: float) -> bool:
        if isinstance(bound, Estimate):
            raise TypeError(
                "two estimates are not compared by whether their intervals overlap: run both as levels of a study "
                "(crosswind run program), which compares them repetition by repetition"
            )
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            raise TypeError(f"an estimate is compared with a number of seconds, as 300 * ms, not with {bound!r}")
        return self._judged(operator, bound).verdict == "pass"

    def _judged(self, operator: str, bound: float) -> "ThresholdResult":
        # Statistics take a second to import, for which tests that use none should not wait.
        from crosswind.decisions.statement import Statement
        from crosswind.findings.threshold.judge import judged

        is_at_most = operator.startswith("<")
        statement = Statement(
            asks=f"not {operator} {bound:g} s",
            metric=self._metric,
            statistic=self._statistic,
            scale="value",
            yes="within",
            low=None if is_at_most else bound * _NS,
            high=bound * _NS if is_at_most else None,
            is_open=not operator.endswith("="),
            cells=frozenset({self._data.cell}),
        )
        (threshold,) = judged([statement], [self._data])
        return threshold


def explanation_of(operator: str, left: Any, right: Any) -> list[str] | None:
    """What a failing assertion says of a comparison with an estimate; None of every other one."""
    if operator not in _MIRRORED:
        return None
    if isinstance(left, Estimate) and isinstance(right, int | float):
        return left.explain(operator, right)
    if isinstance(right, Estimate) and isinstance(left, int | float):
        return right.explain(_MIRRORED[operator], left)
    return None


def _seconds(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / _NS
