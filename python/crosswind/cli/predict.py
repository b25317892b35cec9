"""`crosswind predict`: the models' predictions for a path, side by side, without running anything."""

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import click

from crosswind.catalog import catalog
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import DirectionEffect, PathEffect
from crosswind.cli.quantities import read_by
from crosswind.errors import UsageError
from crosswind.study.number_types import range_of
from crosswind.text.units import (
    format_duration,
    format_probability,
    format_rate,
    format_size,
    parse_duration,
    parse_probability,
    parse_queue,
    parse_rate,
    parse_size,
    shown,
)

if TYPE_CHECKING:
    from crosswind.models import Prediction, Situation

_NARROWEST = 20
_QUANTILES = (0.05, 0.5, 0.95, 0.99)
_LARGEST_BYTES = 10**18
SCHEMA = "crosswind.predictions/1"
_HEADERS_BYTES = 52  # RFC 791, 9293 and 7323: IPv4 20, TCP 20, timestamps 12
_SMALLEST_MSS = 524  # with an MTU of 576 bytes
_LARGEST_MSS = 65_483  # with an MTU of 65535 bytes
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,14}")
"""A congestion control of Linux has 15 characters at most (TCP_CA_NAME_MAX)."""
_HEADINGS = {
    "transfer_time": "Transfer time of {size}, from the first to the last packet with payload",
    "goodput": "Goodput of a long transfer",
    "rtt": "Round trip of one small message, nothing else in flight",
}


@dataclass(frozen=True)
class PathQuestion:
    """A path and its hosts, as asked for on the command line; None: the profile's or the kernel's."""

    size_bytes: int | None
    rate_bps: int | None
    rtt_ns: int
    loss: Decimal
    queue_packets: int | None
    mss_bytes: int | None
    host: Mapping[str, Any]

    def situation(self, kind: str, transport: str) -> "Situation":
        """The question in the models' terms, with its own round trip, even if it is 0."""
        from crosswind.models import situation

        loss = float(self.loss)
        queue = None if self.queue_packets is None else {"packets": self.queue_packets}
        mtu_bytes = None if self.mss_bytes is None else self.mss_bytes + _HEADERS_BYTES
        way = DirectionEffect(0, loss, self.rate_bps, loss_after_loss=loss, queue=queue)
        size = self.size_bytes if kind == "transfer" else None
        cell = {
            "path": {"mtu_bytes": mtu_bytes},
            "host": self.host,
            "workload": {"kind": kind, "transport": transport, "direction": "download", "size_bytes": size},
        }
        return replace(situation(cell, PathEffect(way, way)), rtt_s=self.rtt_ns / 1e9, notes=())


@click.command()
@click.option(
    "--size",
    metavar="SIZE",
    callback=read_by(parse_size),
    help="Size of the transfer, as 256kB. Default: a long transfer.",
)
@click.option(
    "--rate", metavar="RATE", callback=read_by(parse_rate), help="Rate of the link, as 6mbit.  [default: unlimited]"
)
@click.option("--rtt", metavar="DURATION", callback=read_by(parse_duration), required=True, help="Round trip, as 30ms.")
@click.option(
    "--loss",
    metavar="PROBABILITY",
    callback=read_by(parse_probability),
    default="0%",
    help="Loss in each direction, as 2%.",
)
@click.option("--queue", metavar="QUEUE", callback=read_by(parse_queue), help="Queue before the link, as 100p.")
@click.option("--profile", type=click.Choice(["linux", "freebsd-8"]), default="linux", help="Host profile.")
@click.option(
    "--congestion-control", metavar="NAME", help="Name of the kernel's congestion control.  [default: the profile's]"
)
@click.option("--initial-window", type=click.IntRange(1, 1000), metavar="N", help="Initial window in segments.")
@click.option(
    "--window", metavar="SIZE", callback=read_by(parse_size), help="Window or buffer that limits the sender, as 64kB."
)
@click.option(
    "--min-rto", metavar="DURATION", callback=read_by(parse_duration), help="Minimum retransmission timeout, as 200ms."
)
@click.option("--mss", type=click.IntRange(_SMALLEST_MSS, _LARGEST_MSS), metavar="BYTES", help="Payload of a segment.")
@click.option("--model", "names", multiple=True, metavar="NAME", help="Use this model; repeatable.  [default: all]")
@click.option("--simulate", is_flag=True, help="Also simulate the transfer packet by packet, for its distribution.")
@click.option(
    "--runs",
    type=click.IntRange(1, 100_000),
    metavar="N",
    help="Number of simulated transfers.  [default: as many as half a second allows]",
)
@click.option("--seed", type=click.IntRange(0), default=1, metavar="N", help="Seed of the simulation.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object only.")
def command(
    *, names: tuple[str, ...], simulate: bool, runs: int | None, seed: int, as_json: bool, **options: Any
) -> None:
    """Show what the models predict for a path: transfer time, goodput, and the round trip of a message.

    Nothing runs. Loss, rate and queue act in both directions. Notes below the predictions say what each model leaves
    out, and which of its assumptions this path breaks.
    """
    question = _question(options)
    predictions = _predictions(question, names)
    simulated = _simulated(question, runs, seed) if simulate else None
    if as_json:
        plain = _plain(question, predictions) | ({"simulated": simulated} if simulated else {})
        click.echo(json.dumps(plain, indent=2, ensure_ascii=False, allow_nan=False))
        return
    _say(_description(question))
    for metric, heading in _HEADINGS.items():
        of_metric = [prediction for prediction in predictions if prediction.metric == metric]
        if of_metric:
            size = format_size(question.size_bytes) if question.size_bytes else ""
            _say(f"\n{heading.format(size=size)}")
            _print_rows(of_metric)
    if simulated:
        _print_simulated(question, simulated)


def _question(options: Mapping[str, Any]) -> PathQuestion:
    """The path to predict. Raises: UsageError for an impossible one."""
    if options["loss"] == 1:
        raise UsageError("--loss 100%: nothing arrives", hint="give a loss below 100%")
    if options["size"] == 0:
        raise UsageError("--size 0: there is nothing to transfer", hint="give at least 1 byte, or leave it out")
    if (options["size"] or 0) > _LARGEST_BYTES:
        raise UsageError("--size is too large to count its segments", hint="at most 1000000TB")
    if options["rtt"] == 0 and options["rate"] is None:
        raise UsageError("--rtt 0 without --rate: nothing takes any time", hint="give a round trip, as 30ms, or --rate")
    queue = options["queue"]
    if queue is not None and options["rate"] is None:
        raise UsageError("--queue is set but --rate is not", hint="an unlimited link has no queue; set --rate")
    if queue is not None and queue.packets is None:
        raise UsageError("--queue is in bytes", hint="the models count packets, as --queue 100p")
    host = {
        "profile": options["profile"],
        "congestion_control": options["congestion_control"],
        "initial_window": options["initial_window"],
        "receive_buffer_bytes": options["window"],
        "min_rto_ns": options["min_rto"],
    }
    _check_host(host, {"receive_buffer_bytes": "--window", "min_rto_ns": "--min-rto"})
    return PathQuestion(
        size_bytes=options["size"],
        rate_bps=options["rate"],
        rtt_ns=options["rtt"],
        loss=options["loss"],
        queue_packets=None if queue is None else queue.packets,
        mss_bytes=options["mss"],
        host={key: value for key, value in host.items() if value is not None},
    )


def _check_host(host: Mapping[str, Any], flags: Mapping[str, str]) -> None:
    """Raises: UsageError for impossible host settings. Args: flags: options by their catalogue keys."""
    for key in catalog().host.keys:
        value = host.get(key.name)
        if key.name in flags and value is not None and not (key.minimum or 0) <= value <= (key.maximum or value):
            hint = range_of(key, key.minimum or 0, key.maximum)
            raise UsageError(f"{flags[key.name]} is out of range", hint=hint)
    control = host["congestion_control"]
    if control is not None and not _NAME.fullmatch(control):
        raise UsageError(
            f"--congestion-control {shown(control)}: no kernel has such a name", hint="as reno, cubic or bbr"
        )


def _predictions(question: PathQuestion, names: Sequence[str]) -> list["Prediction"]:
    """Each model's predictions, without models silent on this path. Raises: UsageError for an unknown model."""
    from crosswind.models import MODELS, predict_situation, unknown_models

    if unknown := unknown_models(names):
        raise UsageError(f"--model {unknown[0]}: there is no such model", hint="one of " + ", ".join(MODELS))
    cells = [question.situation(*asked) for asked in (("transfer", "tcp"), ("echo", "tcp"), ("echo", "quic"))]
    quick = [name for name, model in MODELS.items() if not model.is_slow]
    made = (predict_situation(name, cell) for name in names or quick for cell in cells)
    predictions = [prediction for prediction in made if prediction is not None]
    if not predictions:
        raise UsageError(f"{names[0]} does not cover this path", hint="it needs --size, or --rate; leave --model out")
    return predictions


def _description(question: PathQuestion) -> str:
    """The path and the hosts in one line."""
    parts = [
        f"round trip {format_duration(question.rtt_ns)}",
        f"loss {format_probability(question.loss)} each way",
        f"rate {format_rate(question.rate_bps)}",
        *([f"queue {question.queue_packets}p"] if question.queue_packets else []),
        *(
            f"{key.removesuffix('_ns').removesuffix('_bytes').replace('_', ' ')} {value}"
            for key, value in _host(question)
        ),
    ]
    return " · ".join(parts)


def _host(question: PathQuestion) -> list[tuple[str, str]]:
    durations = ("min_rto_ns",)
    return [(key, format_duration(value) if key in durations else str(value)) for key, value in question.host.items()]


def _print_rows(predictions: Sequence["Prediction"]) -> None:
    """A line for each model, then the remarks, each once for all its models."""
    divisor, unit = METRICS[predictions[0].metric].unit.scale_for([made.value for made in predictions])
    width = max(len(made.model) for made in predictions)
    remarks: dict[str, list[str]] = {}
    for made in predictions:
        between = _between(made.simulated.limits if made.simulated else None, divisor)
        value = "–" if made.value is None else f"{_three_digits(made.value / divisor)}{between} {unit}"
        outside = "  *" if made.violated else ""
        _say(f"  {made.model:<{width}}  {value:>12}  {made.title}{outside}")
        for remark in (*(f"* {broken}" for broken in made.violated), *made.notes):
            remarks.setdefault(remark, []).append(made.model)
    for remark, models in remarks.items():
        _say(f"    {', '.join(models)}: {remark}")


def _say(text: str) -> None:
    """Lines, folded between words where a terminal is narrower."""
    lines = text.split("\n")
    if sys.stdout.isatty():
        width = max(shutil.get_terminal_size().columns, _NARROWEST)
        lines = [textwrap.fill(line, width, subsequent_indent="      ") for line in lines]
    click.echo("\n".join(lines))


def _three_digits(number: float) -> str:
    return f"{number:,.0f}" if number >= 1000 else f"{number:#.3g}".rstrip(".")


def _simulated(question: PathQuestion, runs: int | None, seed: int) -> dict[str, Any]:
    """The distribution of simulated transfer times, ns. Raises: UsageError without a size."""
    from crosswind.models.simulated import simulated_transfers

    if question.size_bytes is None:
        raise UsageError("--simulate needs a --size", hint="as --size 256kB")
    try:
        made = simulated_transfers(question.situation("transfer", "tcp"), runs=runs, seed=seed)
    except ValueError as error:
        raise UsageError(f"--simulate: {error}", hint="the formulas need no --simulate") from None
    times_ns = sorted(1e9 * made.times)
    n = len(times_ns)
    ranks = {f"p{100 * q:g}": float(times_ns[min(n - 1, int(q * n))]) for q in _QUANTILES}
    low, high = (None, None) if made.limits_s is None else (1e9 * limit for limit in made.limits_s)
    mean = {"mean": 1e9 * made.mean_s, "low": low, "high": high, "touched": made.touched}
    return {"runs": n, "seed": seed, **mean, **ranks}


def _print_simulated(question: PathQuestion, simulation: Mapping[str, Any]) -> None:
    divisor, unit = METRICS["transfer_time"].unit.scale_for([simulation["mean"]])
    _say(
        f"\nTransfer of {format_size(question.size_bytes or 0)}, simulated {simulation['runs']} times packet by packet"
    )
    between = _between(None if simulation["low"] is None else (simulation["low"], simulation["high"]), divisor)
    _say(f"  mean {_three_digits(simulation['mean'] / divisor)}{between} {unit}{_few(simulation)}")
    ranks = ", ".join(
        f"{name} {_three_digits(simulation[name] / divisor)}" for name in simulation if name.startswith("p")
    )
    _say(f"  {ranks} {unit}")


def _between(limits: tuple[float, float] | None, divisor: float) -> str:
    return f" [{', '.join(_three_digits(limit / divisor) for limit in limits)}]" if limits else ""


def _few(simulation: Mapping[str, Any]) -> str:
    """The reason for a mean without interval."""
    if simulation["runs"] == 1 or simulation["low"] is not None:
        return ""
    return f" (no interval: {simulation['touched']} transfers with a loss are too few)"


def _plain(question: PathQuestion, predictions: Sequence["Prediction"]) -> dict[str, Any]:
    asked = {**asdict(question), "loss": float(question.loss)}
    return {"schema": SCHEMA, "question": asked, "predictions": [asdict(made) for made in predictions]}
