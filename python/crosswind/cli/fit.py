"""`crosswind fit`: models fitted to the transfers of a run, and how far they are from cells that were left out."""

from pathlib import Path

import click

from crosswind.cli.damage import warn_of_damage
from crosswind.cli.output import plain_console
from crosswind.errors import StoreError, UsageError


@click.command()
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
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
    # Fitting takes more than a second to import, for which --help should not wait.
    from crosswind.analysis.model_fit import FitError, fit_models
    from crosswind.cli.fit_text import fit_lines
    from crosswind.models.fitting import FORMS
    from crosswind.store.listing import latest_run
    from crosswind.store.run import load

    if unknown := [name for name in names if name not in FORMS]:
        raise UsageError(f"--model {unknown[0]}: there is no such model to fit", hint="one of " + ", ".join(FORMS))
    loaded = load(run or latest_run())
    try:
        record = loaded.measured()
        warn_of_damage(record)
        found = fit_models(record, names, simulated=simulated, seed=seed)
    except FitError as error:
        raise StoreError(f"{loaded.directory}: {error}", hint=error.hint) from None
    if as_json:
        click.echo(found.model_dump_json(indent=2))
    else:
        for line in fit_lines(found, plain_console().width):
            click.echo(line)
    return 1 if record.damaged else 0
