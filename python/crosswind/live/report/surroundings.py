"""Where the numbers of a session come from: when, with which program, on which machine."""

import time
from datetime import UTC, datetime
from typing import Any

from crosswind.store.provenance import command_line, surroundings


def origin_now() -> dict[str, Any]:
    """Of a session that begins now: {"command", "started", "clock", "versions", "machine", "sysctls"}."""
    known = surroundings(command=command_line(), started=datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"))
    resolution_ns = round(time.get_clock_info("monotonic").resolution * 1e9)
    source = known["machine"]["clock_source"] or "unknown"
    return {**known, "clock": f"CLOCK_MONOTONIC, resolution {resolution_ns} ns, clock source {source}"}
