"""The fits to a run, as text of a width."""

import textwrap
from collections.abc import Iterator

from crosswind.analysis.result.model_fits import FitResult, FittedCoefficient, FittedLevel, ModelFit

_TOGETHER = "\N{NO-BREAK SPACE}"
"""In place of a space at which no line may end; it is printed as a space."""


def fit_lines(found: FitResult, width: int) -> Iterator[str]:
    """Every fit with its errors, and how they were made."""
    means = "simulated means" if found.simulated else "means"
    yield f"{found.study}: {found.cells} cells with loss, whose {means} are known to {_percent(found.measured_error)}"
    for why, count in found.left_out.items():
        yield f"  left out: {count} {why}"
    for name in dict.fromkeys(made.congestion_control for made in found.fits):
        yield from _group([made for made in found.fits if made.congestion_control == name], found, width)
    yield ""
    yield from textwrap.wrap(found.method, width)


def _group(fits: list[ModelFit], found: FitResult, width: int) -> Iterator[str]:
    """The fits to the cells of one congestion control."""
    first = fits[0]
    yield ""
    yield from textwrap.wrap(
        f"Errors of means predicted for the {first.cells} cells under {first.congestion_control}, "
        "|predicted / measured − 1|",
        width,
    )
    yield f"  {'model':<13} {'fitted':>8} {'held out':>9} {'mean':>8} {'worst':>8}  worst cell"
    for made in fits:
        errors = (made.fitted_median, made.held_out_median, made.held_out_mean, made.worst)
        fitted, held_out, mean, worst = map(_percent, errors)
        where = " · ".join(found.cell_levels[made.worst_cell].values())
        yield f"  {made.model:<13} {fitted:>8} {held_out:>9} {mean:>8} {worst:>8}  {where}"
    for made in fits:
        yield from _model(made, width)


def _model(made: ModelFit, width: int) -> Iterator[str]:
    yield ""
    yield f"{made.model}: {made.title}"
    yield from _wrapped(made.formula, 4, width)
    yield "  coefficients, with 95 % intervals"
    for one in made.coefficients:
        yield from _wrapped(f"{one.name:<19} {_coefficient(one)}".replace("  ", 2 * _TOGETHER), 33, width)
    yield "  median error by level, fitted to all and (fitted without it)"
    by_factor: dict[str, list[FittedLevel]] = {}
    for level in made.levels:
        by_factor.setdefault(level.factor, []).append(level)
    for factor, levels in by_factor.items():
        shown = [f"{level.level} {_percent(level.fitted)} {_held_out(level)}" for level in levels]
        rest = ", ".join(text.replace(" ", _TOGETHER) for text in shown)
        yield from _wrapped(f"{factor:<19} ".replace(" ", _TOGETHER) + rest, 22, width)


def _wrapped(text: str, indent: int, width: int) -> Iterator[str]:
    """Lines, of which those after the first are indented."""
    for line in textwrap.wrap(text, width, initial_indent="  ", subsequent_indent=indent * " "):
        yield line.replace(_TOGETHER, " ")


def _coefficient(part: FittedCoefficient) -> str:
    """Its value with its interval, or why there is none."""
    value = "–" if part.value is None else f"{part.value:.3g}"
    interval = part.reason if part.low is None or part.high is None else f"[{part.low:.3g}, {part.high:.3g}]"
    return f"{value:>8}  {interval}"


def _held_out(level: FittedLevel) -> str:
    return "(too few others)" if level.held_out is None else f"({_percent(level.held_out)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.9995 else f"{100 * share:.0f} %"
