"""`crosswind fit`: models fitted to a run's transfers, with errors on held-out cells."""

import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.cli.places import RUN_PATH
from crosswind.cli.text import warn_of_damage
from crosswind.errors import StoreError, UsageError
from crosswind.text.console import plain_console

if TYPE_CHECKING:
    from crosswind.analysis.fit_result import FitResult, FittedCoefficient, ModelFit
    from crosswind.models.fitting import LeftOut

_TOGETHER = "\N{NO-BREAK SPACE}"
"""In place of an unbreakable space; printed as a space."""


@click.command()
@click.argument("run", required=False, type=RUN_PATH, metavar="[RUN]")
@click.option("--model", "names", multiple=True, metavar="NAME", help="Fit this model; repeatable.  [default: all]")
@click.option("--simulated", is_flag=True, help="Fit to simulated times instead of measured ones.")
@click.option("--seed", type=click.IntRange(0), default=1, metavar="N", help="Seed of the split of cells into tenths.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object only.")
def command(*, run: Path | None, names: tuple[str, ...], simulated: bool, seed: int, as_json: bool) -> int:
    """Fit models of transfer time to the cells with loss in RUN, or in the latest run.

    Each coefficient has an interval. Each model has an error on held-out cells: a tenth of the cells at a time, and all
    cells of one level of a factor at a time. The model with the smallest held-out error comes first.

    Exit status: 0, or 1 when a file of the run is damaged.
    """
    # Fitting takes over a second to import: --help should not wait.
    from crosswind.analysis.model_fit import FitError, fit_models
    from crosswind.models.fitting import FORMS
    from crosswind.store.addresses import shown
    from crosswind.store.listing import latest_run
    from crosswind.store.run import load

    if unknown := [name for name in names if name not in FORMS]:
        raise UsageError(f"--model {unknown[0]}: there is no such model to fit", hint="one of " + ", ".join(FORMS))
    loaded = load(run or latest_run())
    try:
        record = loaded.measured()
        warn_of_damage(record)
        fits = fit_models(record, names, simulated=simulated, seed=seed)
    except FitError as error:
        raise StoreError(f"{shown(loaded.directory)}: {error}", hint=error.hint) from None
    if as_json:
        click.echo(fits.model_dump_json(indent=2))
    else:
        for line in fit_lines(fits, plain_console().width):
            click.echo(line)
    return 1 if record.damaged else 0


def fit_lines(result: "FitResult", width: int) -> Iterator[str]:
    """Every fit with its errors, and how they were made."""
    means = "simulated means" if result.simulated else "means"
    error = _percent(result.measured_error)
    yield f"{result.study}: {result.cells} cells with loss, whose {means} are known to {error}"
    for why, count in result.left_out.items():
        yield f"  left out: {count} {why}"
    for name in dict.fromkeys(made.congestion_control for made in result.fits):
        yield from _group([made for made in result.fits if made.congestion_control == name], result, width)
    yield ""
    yield from textwrap.wrap(result.method, width)


def _group(fits: "list[ModelFit]", result: "FitResult", width: int) -> Iterator[str]:
    """Fits to cells under one congestion control."""
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
        where = " · ".join(result.cell_levels[made.worst_cell].values())
        yield f"  {made.model:<13} {fitted:>8} {held_out:>9} {mean:>8} {worst:>8}  {where}"
    for made in fits:
        yield from _model(made, width)


def _model(made: "ModelFit", width: int) -> Iterator[str]:
    yield ""
    yield f"{made.model}: {made.title}"
    yield from _wrapped(made.formula, 4, width)
    yield "  coefficients, with 95 % intervals"
    for coefficient in made.coefficients:
        yield from _wrapped(
            f"{coefficient.name:<19} {_coefficient(coefficient)}".replace("  ", 2 * _TOGETHER), 33, width
        )
    yield "  median error by level, fitted to all and (fitted without it)"
    by_factor: dict[str, list[LeftOut]] = {}
    for level in made.levels:
        by_factor.setdefault(level.factor, []).append(level)
    for factor, levels in by_factor.items():
        shown = [f"{level.level} {_percent(level.fitted)} {_held_out(level)}" for level in levels]
        listed = ", ".join(text.replace(" ", _TOGETHER) for text in shown)
        yield from _wrapped(f"{factor:<19} ".replace(" ", _TOGETHER) + listed, 22, width)


def _wrapped(text: str, indent: int, width: int) -> Iterator[str]:
    """Lines, indented after the first."""
    for line in textwrap.wrap(text, width, initial_indent="  ", subsequent_indent=indent * " "):
        yield line.replace(_TOGETHER, " ")


def _coefficient(part: "FittedCoefficient") -> str:
    """Its value with its interval, or why there is none."""
    value = "–" if part.value is None else f"{part.value:.3g}"
    interval = part.reason if part.low is None or part.high is None else f"[{part.low:.3g}, {part.high:.3g}]"
    return f"{value:>8}  {interval}"


def _held_out(level: "LeftOut") -> str:
    return "(too few others)" if level.held_out is None else f"({_percent(level.held_out)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.9995 else f"{100 * share:.0f} %"
