"""The peer `iperf3`: transfers over tcp by iperf3 at both ends, under the peer protocol (docs/peers.md).

python -m crosswind.peers.iperf3 < job.json

iperf3 says how long a transfer took and how many bytes arrived, and the sender how many segments it retransmitted. It
does not say when: a sample ends with the program, and begins earlier by iperf3's measured time.
"""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.errors import CrosswindError, EngineError

_LISTENS = "Server listening"
_GRACE_S = 5.0
"""iperf3's time beside the transfer itself: its control connection and its report."""

_SECOND_NS = 1_000_000_000

Json = dict[str, Any]


@dataclass(frozen=True)
class Transfer:
    """One transfer as measured by iperf3. `took_s` and `received_bytes`: at the receiver.

    retransmits: segments retransmitted by the sender; 0 where its kernel does not say.
    """

    took_s: float
    sent_bytes: int
    received_bytes: int
    retransmits: int


def iperf3_program() -> str:
    """The path to iperf3. Raises: EngineError when it is not installed."""
    program = shutil.which("iperf3")
    if program is None:
        raise EngineError("iperf3 is not installed", hint="`apt install iperf3`")
    return program


def arguments_of(job: Mapping[str, Any]) -> list[str]:
    """A job as arguments for iperf3's client. Raises: EngineError for a job impossible in iperf3."""
    work = job["workload"]
    check_workload("client", work)
    size, duration_ns = work.get("size_bytes"), work.get("duration_ns") or 0
    amount = ["-n", str(size)] if size else ["-t", str(duration_ns // _SECOND_NS)]
    direction = ["-R"] if work["direction"] == "download" else []
    return ["-c", job["address"], "-p", str(job["port"]), "-J", *amount, *direction]


def check_workload(_end: str, work: Mapping[str, Any]) -> None:
    """Raises: EngineError for a workload, with every default filled in, impossible in iperf3."""
    if (work["kind"], work["transport"]) != ("transfer", "tcp"):
        raise EngineError(
            f"iperf3 cannot do {work['kind']} over {work['transport']}", hint="it does the workload transfer over tcp"
        )
    if work.get("connections", 1) != 1:
        raise EngineError(
            "iperf3's server takes one client at a time", hint="set connections to 1: count does them one by one"
        )
    duration_ns = work.get("duration_ns") or 0
    if duration_ns % _SECOND_NS:
        raise EngineError("iperf3 measures for whole seconds", hint=f"{duration_ns / 1e9:g} s is none: set duration")


def read_report(text: str) -> Transfer:
    """Reads the output of iperf3 -J.

    Raises: EngineError with iperf3's own words after a failure, or for other output."""
    try:
        report = json.loads(text)
        if "error" in report:
            raise EngineError(f"iperf3: {report['error']}")
        sent, received = report["end"]["sum_sent"], report["end"]["sum_received"]
        return Transfer(
            took_s=float(received["seconds"]),
            sent_bytes=int(sent["bytes"]),
            received_bytes=int(received["bytes"]),
            retransmits=int(sent.get("retransmits", 0)),
        )
    except (ValueError, KeyError, TypeError) as error:
        raise EngineError(f"iperf3 printed no report: {text[:100]!r}") from error


def outcome_of(message: str) -> str:
    """The outcome for iperf3's error message (docs/result.md)."""
    words = {"refused": "refused", "reset": "reset", "closed": "closed", "timed out": "timeout"}
    return next((outcome for word, outcome in words.items() if word in message.lower()), "error")


def main() -> int:
    """Run the peer. Returns its exit status."""
    try:
        job = json.loads(sys.stdin.readline())
        program = iperf3_program()
        if job["role"] == "server":
            return _serve(program, job)
        _measure(program, job)
    except CrosswindError as error:
        _say("error", message=error.message, hint=error.hint)
        return 1
    return 0


def _measure(program: str, job: Json) -> None:
    arguments, work = arguments_of(job), job["workload"]
    clock = {"name": "iperf3", "resolution_ns": 1000, "monotonic_ns": 0}
    _say("ready", implementation=_version(program), clock=clock)
    limit_s = _GRACE_S + ((work.get("duration_ns") or 0) + work["timeout_ns"]) / 1e9
    retransmits = 0
    for exchange in range(work["count"]):
        sample: Json = {"exchange": exchange, "connection": exchange, "sent_bytes": 0, "received_bytes": 0}
        try:
            transfer = _transfer([program, *arguments], limit_s)
        except EngineError as error:
            outcome = outcome_of(error.message)
            _say("sample", **sample, sent_ns=None, received_ns=None, outcome=outcome, error=error.message)
            continue
        ended_ns = time.monotonic_ns()
        retransmits += transfer.retransmits
        sample |= {"sent_bytes": transfer.sent_bytes, "received_bytes": transfer.received_bytes, "outcome": "ok"}
        # iperf3 does not say how long connecting took.
        _say("connected", connection=exchange, transport="tcp", setup_ns=None)
        _say("sample", **sample, sent_ns=ended_ns - round(1e9 * transfer.took_s), received_ns=ended_ns)
    _say("finished", facts={"retransmits": retransmits})


def _transfer(command: list[str], limit_s: float) -> Transfer:
    """Runs iperf3's client once. Raises: EngineError."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired as error:
        raise EngineError(f"iperf3 timed out after {limit_s:g} s") from error
    return read_report(ended.stdout or ended.stderr)


def _serve(program: str, job: Json) -> int:
    """Serves until standard input ends, or a signal comes."""
    command = [program, "-s", "-p", str(job["port"]), "-B", job["address"], "--forceflush"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        signal.signal(signal.SIGTERM, lambda *_: server.kill())
        assert server.stdout is not None  # It was asked for as a pipe.
        said: list[str] = []
        for line in server.stdout:
            said.append(line.strip())
            if _LISTENS in line:
                break
        else:
            raise EngineError(f"iperf3's server ended: {' '.join(said[-2:])}")
        _say("listening", implementation=_version(program))
        # Its reports would fill the pipe. Nobody needs them: the client has all numbers.
        threading.Thread(target=server.stdout.read, daemon=True).start()
        sys.stdin.read()
        server.kill()
    return 0


def _version(program: str) -> str:
    """As iperf3 calls itself: "iperf 3.12"."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=False).stdout
    return " ".join(said.split()[:2]) or "iperf3"


def _say(event: str, **values: object) -> None:
    print(json.dumps({"event": event, **values}), flush=True)


if __name__ == "__main__":
    sys.exit(main())
