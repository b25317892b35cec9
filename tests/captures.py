"""Captures as Wireshark's own reader sees them."""

import subprocess
from pathlib import Path

import polars as pl

from conftest import requires
from linux.lab import CellOutput

# A segment retransmitted within a round trip of its successors counts as out of order to tshark.
RETRANSMITTED = " or ".join(
    f"tcp.analysis.{name}"
    for name in ("retransmission", "fast_retransmission", "spurious_retransmission", "out_of_order")
)


def tshark(left: CellOutput, host: str, fields: list[str], display: str = "", *options: str) -> pl.DataFrame:
    """The fields of every packet of a host's capture that the filter lets through, as text."""
    return fields_of(left.directory / f"{host}.pcapng", fields, display, *options)


def fields_of(capture: Path, fields: list[str], display: str = "", *options: str) -> pl.DataFrame:
    """The same of any capture."""
    command = [requires("tshark"), "-r", str(capture), "-n", "-T", "fields", *options]
    command += [word for name in fields for word in ("-e", name)] + (["-Y", display] if display else [])
    # Its standard error says that it is not wise to run it as root.
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout
    rows = [line.split("\t") for line in output.splitlines()]
    return pl.DataFrame(rows, schema=dict.fromkeys(fields, pl.String), orient="row")
