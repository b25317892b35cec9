"""`crosswind fit`: models fitted to the transfers of a run, and how far they are from cells that were left out."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from crosswind.errors import StoreError, UsageError

if TYPE_CHECKING:
    from crosswind.analysis.result.model_fits import FitResult, FittedCoefficient, FittedLevel, ModelFit


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option("--model", "names", multiple=True, metavar="NAME", help="This model; may be repeated.  [default: all]")
@click.option("--simulated", is_flag=True, help="Fit to simulated times of the run's cells, not to the measured ones.")
@click.option("--seed", type=click.IntRange(0), default=1, metavar="N", help="Of the tenths of the cells.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, and nothing else.")
def command(*, run: Path | None, names: tuple[str, ...], simulated: bool, seed: int, as_json: bool) -> None:
    """Fit models of transfer time to the cells with loss of the run in directory RUN, else of the latest.

    Every coefficient has its interval, and every model its error on cells that it was not fitted to: tenths of the
    cells, and all cells of one level of a factor at a time. The model with the least held-out error comes first.
    """
    # Fitting takes more than a second to import, for which --help should not wait.
    from crosswind.analysis.model_fit import FitError, fit_models
    from crosswind.models.fitting import FORMS
    from crosswind.store.listing import latest_run
    from crosswind.store.run import load

    if unknown := [name for name in names if name not in FORMS]:
        raise UsageError(f"--model {unknown[0]}: there is no such model to fit", hint="one of " + ", ".join(FORMS))
    loaded = load(run or latest_run())
    try:
        found = fit_models(loaded.record(), names, simulated=simulated, seed=seed)
    except FitError as error:
        raise StoreError(f"{loaded.directory}: {error}", hint=error.hint) from None
    if as_json:
        click.echo(found.model_dump_json(indent=2))
        return
    _print(found)


def _print(found: "FitResult") -> None:
    means = "simulated means" if found.simulated else "means"
    click.echo(
        f"{found.study}: {found.cells} cells with loss, whose {means} are known to {_percent(found.measured_error)}"
    )
    for why, count in found.left_out.items():
        click.echo(f"  left out: {count} {why}")
    for name in dict.fromkeys(made.congestion_control for made in found.fits):
        _print_group([made for made in found.fits if made.congestion_control == name], found)
    click.echo(f"\n{found.method}")


def _print_group(fits: Sequence["ModelFit"], found: "FitResult") -> None:
    """The fits to the cells of one congestion control."""
    first = fits[0]
    click.echo(
        f"\nErrors of means predicted for the {first.cells} cells under {first.congestion_control}, "
        "|predicted / measured − 1|"
    )
    click.echo(f"  {'model':<13} {'fitted':>8} {'held out':>9} {'mean':>8} {'worst':>8}  worst cell")
    for made in fits:
        errors = (made.fitted_median, made.held_out_median, made.held_out_mean, made.worst)
        fitted, held_out, mean, worst = map(_percent, errors)
        where = " · ".join(found.cell_levels[made.worst_cell].values())
        click.echo(f"  {made.model:<13} {fitted:>8} {held_out:>9} {mean:>8} {worst:>8}  {where}")
    for made in fits:
        _print_model(made)


def _print_model(made: "ModelFit") -> None:
    click.echo(f"\n{made.model}: {made.title}\n  {made.formula}")
    for coefficient in made.coefficients:
        click.echo(f"  {coefficient.name:<15} {_coefficient(coefficient)}")
    click.echo("  median error by level, fitted to all and fitted without it")
    by_factor: dict[str, list[FittedLevel]] = {}
    for level in made.levels:
        by_factor.setdefault(level.factor, []).append(level)
    for factor, levels in by_factor.items():
        shown = (f"{level.level} {_percent(level.fitted)} {_held_out(level)}" for level in levels)
        click.echo(f"  {factor:<19} {', '.join(shown)}")


def _coefficient(part: "FittedCoefficient") -> str:
    """Its value with its interval, or that there is none."""
    value = "–" if part.value is None else f"{part.value:.3g}"
    interval = part.reason if part.low is None or part.high is None else f"[{part.low:.3g}, {part.high:.3g}]"
    return f"{value:>8}  {interval}"


def _held_out(level: "FittedLevel") -> str:
    return "(too few others)" if level.held_out is None else f"({_percent(level.held_out)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.9995 else f"{100 * share:.0f} %"
