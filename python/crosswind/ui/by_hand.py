"""A path by hand: transfers measured at once in virtual time, and the models' predictions."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import polars as pl

from crosswind.cell.binary import find_binary
from crosswind.cli.predict import PathQuestion
from crosswind.errors import UsageError
from crosswind.execution.planning import planned_cells
from crosswind.execution.virtual import run_in_virtual_time
from crosswind.files.temporary import temporary_directory
from crosswind.report.text.format import quantity
from crosswind.store.manifest import Options
from crosswind.store.plan import PlannedCell
from crosswind.study.design import Study

_TRANSPORTS = ("tcp", "quic", "websocket")
_SIZE_BYTES, _COUNT = 100_000, 5
_MOST = {"delay": 500, "loss": 30, "rate": 1000, "queue": 1000, "jitter": 100}
"""The sliders' maximum: ms, %, Mbit/s, packets, ms."""


def measured(path: Mapping[str, Any]) -> dict[str, Any]:
    """Transfers of 100 kB by each transport. Args: path: numbers by the names in `_MOST`; a rate of 0 is unlimited.

    Raises: UsageError for an impossible path; EngineError without virtual time.
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
        "workload.direction": "download",
        "host.clock": "virtual",
    }
    study = Study.adhoc("transfer", workload | keys).with_overrides({"study.repetitions": 1})
    binary = find_binary()
    with temporary_directory() as scratch:
        cells = planned_cells(study, Options(spent=False), binary=binary)
        processors = sorted(os.sched_getaffinity(0))[: len(cells)]
        free: SimpleQueue[int] = SimpleQueue()
        for processor in processors:
            free.put(processor)

        def on_a_free_processor(planned: PlannedCell) -> tuple[str, dict[str, Any]]:
            processor = free.get()
            try:
                transport = planned.levels["workload.transport"]
                return transport, _transfers(planned, scratch / planned.key, binary, processor)
            finally:
                free.put(processor)

        with ThreadPoolExecutor(len(processors)) as pool:
            found = dict(pool.map(on_a_free_processor, cells))
    rows = [{"name": transport, **found[transport]} for transport in _TRANSPORTS]
    return {"measured": rows, "models": _predicted(delay, loss, rate, queue)}


def _transfers(planned: PlannedCell, directory: Path, binary: Path, processor: int) -> dict[str, Any]:
    """How long the transfers of a cell took, from asking for the connection to the last byte.

    TCP's and QUIC's handshakes differ, so both count. Raises: EngineError where there is no virtual time here.
    """
    directory.mkdir()
    end = run_in_virtual_time(planned, directory, binary, cpu=processor)
    if end.failure is not None:
        return {"ns": None, "text": end.failure.message, "of": f"0 of {_COUNT}"}
    samples = pl.read_ipc((directory / "samples.arrow").read_bytes())
    whole = pl.col("connect_ns").fill_null(0) + pl.col("received_ns") - pl.col("sent_ns")
    times = samples.filter(pl.col("outcome") == "ok").select(whole).to_series().drop_nulls()
    median = times.median()
    text = quantity(median, "ns") if isinstance(median, float) else "nothing arrived in time"
    return {"ns": median, "text": text, "of": f"{len(times)} of {_COUNT}"}


def _predicted(delay: float, loss: float, rate: float, queue: float) -> list[dict[str, Any]]:
    """Each quick model's prediction for a TCP transfer on the path, without jitter."""
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
