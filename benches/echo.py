#!/usr/bin/env python3
"""An echo of one byte, against the smallest blocking program (`make bench BENCH=echo`). Needs root and a C compiler."""

import statistics
import subprocess
from functools import partial
from pathlib import Path

from common import HERE, alternate, main, run_cell, samples, show, spread

DIRECT = {"backend": "direct"}
MESSAGES = 20_000


def echo(transport: str, directory: Path) -> None:
    """Round trips of one byte on the direct path."""
    reference = directory / "ping_pong"
    subprocess.run(["cc", "-O2", "-o", reference, HERE / "ping_pong.c"], check=True)

    def ours() -> float:
        run_cell({"kind": "echo", "transport": transport, "messages": MESSAGES}, path=DIRECT, output=directory)
        table = samples(directory)
        return float((table["received_ns"] - table["sent_ns"]).median())  # type: ignore[arg-type]

    def theirs() -> float:
        server = [str(reference), transport, "server"]
        client = [str(reference), transport, "{server}", str(MESSAGES)]
        run_cell({"kind": "program", "server": server, "client": client}, path=DIRECT, output=directory)
        return float((directory / "client.out").read_text())

    a, b = alternate(ours, theirs)
    show(
        f"Echo of one byte over {transport}, direct path, median round trip",
        spread(a, 1e3, "us"),
        spread(b, 1e3, "us") + ", blocking C program, same processors",
        f"{statistics.median(a) / statistics.median(b):.3f} of the reference",
        "at most 1.10",
    )


if __name__ == "__main__":
    main({transport: partial(echo, transport) for transport in ("tcp", "udp")})
