"""A path by hand: what transports get on it, measured at once in virtual time, and what the models say of it."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from crosswind.cli.predict import PathQuestion
from crosswind.errors import UsageError
from crosswind.execution.options import RunOptions
from crosswind.report.text.format import quantity
from crosswind.running import run_design
from crosswind.runs import load
from crosswind.store.manifest import Options
from crosswind.study.design import Study
from crosswind.temporary import temporary_directory

_TRANSPORTS = ("tcp", "quic", "websocket")
_SIZE_BYTES, _COUNT = 100_000, 5
_MOST = {"delay": 500, "loss": 30, "rate": 1000, "queue": 1000, "jitter": 100}
"""Of what the page has sliders for: ms, %, Mbit/s, packets, ms."""


def measured(path: Mapping[str, Any]) -> dict[str, Any]:
    """Transfers of 100 kB by each transport. Args: path: numbers by the names in `_MOST`; a rate of 0 is unlimited.

    Raises: UsageError for what is no such path; EngineError where there is no virtual time here.
    """
    delay, loss, rate, queue, jitter = (_number(path, name) for name in _MOST)
    keys = {"path.delay": f"{delay:g}ms", "path.loss": f"{loss:g}%"}
    keys |= {"path.rate": f"{rate:g}mbit"} if rate else {}
    keys |= {"path.queue": f"{queue:.0f}p"} if rate and queue else {}
    keys |= {"path.jitter": f"{jitter:g}ms"} if jitter else {}
    workload = {
        "workload.transport": ",".join(_TRANSPORTS),
        "workload.size": str(_SIZE_BYTES),
        "workload.count": str(_COUNT),
        "host.clock": "virtual",
    }
    study = Study.adhoc("transfer", workload | keys).with_overrides({"study.repetitions": 1})
    with temporary_directory() as scratch:
        run = run_design(study, RunOptions(output=scratch / "run", files=Options(spent=False)))
        samples = load(run.directory).samples()
    rows = []
    for transport in _TRANSPORTS:
        times = samples.filter(samples["workload.transport"] == transport)["transfer_time"].drop_nulls()
        median = times.median()
        rows.append(
            {
                "name": transport,
                "ns": median,
                "text": quantity(median, "ns") if isinstance(median, float) else "nothing arrived in time",
                "of": f"{len(times)} of {_COUNT}",
            }
        )
    return {"measured": rows, "models": _predicted(delay, loss, rate, queue)}


def _predicted(delay: float, loss: float, rate: float, queue: float) -> list[dict[str, Any]]:
    """What each quick model says of a TCP transfer on the path, jitter left out."""
    from crosswind.models import MODELS, predict_situation

    question = PathQuestion(
        size_bytes=_SIZE_BYTES,
        rate_bps=round(rate * 1e6) or None,
        rtt_ns=round(2e6 * delay),
        loss=Decimal(str(loss)) / 100,
        queue_packets=round(queue) or None if rate else None,
        mss_bytes=None,
        host={},
    )
    cell = question.situation("transfer", "tcp")
    made = [predict_situation(name, cell) for name, model in MODELS.items() if not model.is_slow]
    return [
        {
            "name": prediction.model,
            "ns": prediction.value,
            "text": quantity(prediction.value, "ns"),
            "of": prediction.title,
        }
        for prediction in made
        if prediction is not None and prediction.metric == "transfer_time" and prediction.value is not None
    ]


def _number(path: Mapping[str, Any], name: str) -> float:
    value = path.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST[name]:
        raise UsageError(f"{name}: {str(value)[:20]} is not from 0 to {_MOST[name]}", hint="move the slider")
    return value
