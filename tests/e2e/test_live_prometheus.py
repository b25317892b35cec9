"""A real Prometheus scrapes `crosswind live`, and answers the queries of the Grafana dashboard."""

import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, missing, requires
from e2e_cli import Cli, wait_until

CONFIGURATION = """
global: {scrape_interval: 1s}
scrape_configs:
  - job_name: crosswind
    static_configs: [{targets: ["127.0.0.1:PORT"]}]
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def prometheus(directory: Path, port: int, scraped: int) -> Iterator[None]:
    """A Prometheus that scrapes a port."""
    program = requires("prometheus")
    (directory / "prometheus.yml").write_text(CONFIGURATION.replace("PORT", str(scraped)), encoding="utf-8")
    with (directory / "prometheus.log").open("wb") as log:
        started = subprocess.Popen(
            [
                program,
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            started.terminate()
            started.wait()


def ask(port: int, query: str) -> list[dict[str, Any]]:
    """The series that a query gives now; nothing while Prometheus starts, when nobody listens, or it says 503."""
    words = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/query?{words}") as reply:
            return list(json.load(reply)["data"]["result"])
    except urllib.error.HTTPError as error:
        if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
            return []
        pytest.fail(f"{query}: {error.read().decode()}")
    except OSError:
        return []


def test_prometheus_scrapes_it_and_answers_every_query_of_the_dashboard(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    try:
        import prometheus_client as _  # noqa: F401
    except ImportError:
        missing("prometheus-client is not installed: requirements-dev.lock has it")
    scraped, port = free_port(), free_port()
    crosswind = Cli(tmp_path, capfd)
    panels = json.loads((ROOT / "docs" / "examples" / "grafana-live.json").read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    # Only a server of ours tells which way probes were lost.
    queries = [query for query in queries if "lost_by_way" not in query]
    plain = [
        query.replace("$__rate_interval", "1m").replace("$host", ".*").replace("$probe", ".*") for query in queries
    ]
    with prometheus(tmp_path, port, scraped), socket.create_server(("127.0.0.1", 0), backlog=4096) as server:
        opened = ("--tcp", str(server.getsockname()[1]), "--interval", "50ms")
        watching = crosswind.start("live", "127.0.0.1", *opened, "--metrics", f"127.0.0.1:{scraped}")
        try:
            for query in plain:
                wait_until(lambda query=query: watching.poll() is not None or ask(port, query))
                assert watching.poll() is None
            (series,) = ask(port, "crosswind_live_lost_total")
            assert series["metric"]["host"] == "127.0.0.1"
            assert series["value"][1] == "0"
        finally:
            crosswind.stop()
