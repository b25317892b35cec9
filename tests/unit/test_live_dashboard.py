"""The Grafana dashboard of `crosswind live`: its queries are PromQL of exported metrics, with right results.

Prometheus's own promtool reads and evaluates them; no Grafana is needed for that.
"""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, missing, requires
from crosswind.live.metrics import Metrics
from crosswind.live.probes import ProbeOutcome

DASHBOARD = json.loads((ROOT / "docs" / "examples" / "grafana-live.json").read_text(encoding="utf-8"))
PANELS = {panel["title"]: panel for panel in DASHBOARD["panels"]}
VARIABLES = {variable["name"]: variable for variable in DASHBOARD["templating"]["list"]}
MS = 10**6


def promql(expression: str) -> str:
    """A query as Grafana sends it: with every host and probe, and an interval of two minutes."""
    chosen = {"$__rate_interval": "2m", "$host": ".*", "$probe": ".*"}
    for variable, value in chosen.items():
        expression = expression.replace(variable, value)
    assert "$" not in expression
    return expression


def queries() -> Iterator[tuple[str, str]]:
    """(a name for each query, the query)."""
    for title, panel in PANELS.items():
        for target in panel["targets"]:
            yield f"{title} {target['refId']}", promql(target["expr"])


def promtool(*arguments: str, given: bytes = b"") -> str:
    """What promtool says. Fails where it refuses."""
    ended = subprocess.run([requires("promtool"), *arguments], input=given, capture_output=True, check=False)
    said = (ended.stdout + ended.stderr).decode()
    assert ended.returncode == 0, said
    return said


@pytest.fixture
def exported() -> bytes:
    """What `/metrics` answers after four probes, of which one is lost."""
    try:
        from prometheus_client import generate_latest
    except ImportError:
        missing("prometheus-client is not installed: requirements-dev.lock has it")
    metrics = Metrics("example.org", "udp", tells_ways=True)
    for sequence, rtt_ns in enumerate((20 * MS, 25 * MS, None, 30 * MS)):
        metrics.handle_news(ProbeOutcome(sequence, sequence * 100 * MS, rtt_ns))
    return bytes(generate_latest(metrics.registry))


def test_what_is_exported_follows_the_conventions_of_prometheus(exported: bytes) -> None:
    assert promtool("check", "metrics", given=exported) == ""


def test_every_query_is_promql_of_metrics_and_labels_that_are_exported(exported: bytes, tmp_path: Path) -> None:
    rules = [{"record": f"query:{at}", "expr": query} for at, (_, query) in enumerate(queries())]
    file = tmp_path / "rules.json"  # JSON is YAML.
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}), encoding="utf-8")
    assert f"SUCCESS: {len(rules)} rules found" in promtool("check", "rules", str(file))
    lines = [line for line in exported.decode().splitlines() if not line.startswith("#")]
    labels_of = {line.partition("{")[0]: set(re.findall(r'(\w+)="', line)) for line in lines}
    for name, query in queries():
        for metric, selected in re.findall(r"(\w+)\{([^}]*)\}", query):
            assert set(re.findall(r"(\w+)=~", selected)) <= labels_of[metric], name
    for title in ("host", "probe"):
        asked = re.fullmatch(r"label_values\((\w+), (\w+)\)", VARIABLES[title]["query"]["query"])
        assert asked is not None
        assert asked[2] in labels_of[asked[1]]


def series(name: str, values: str, **labels: str) -> dict[str, str]:
    named = ",".join(f'{key}="{value}"' for key, value in {"host": "a", "probe": "icmp", **labels}.items())
    return {"series": f"{name}{{{named}}}", "values": values}


def test_every_query_gives_the_right_number(tmp_path: Path) -> None:
    # Each minute 60 probes, of which 6 are lost, 3 refused, 27 take at most 10 ms, and the other 24 at most 25 ms.
    given = [
        series("crosswind_live_probes_total", "0+60x10"),
        series("crosswind_live_lost_total", "0+6x10"),
        series("crosswind_live_refused_total", "0+3x10"),
        series("crosswind_live_lost_by_way_total", "0+4x10", way="there"),
        series("crosswind_live_lost_by_way_total", "0+2x10", way="back"),
        series("crosswind_live_outage", "1x10"),
        series("crosswind_live_rtt_seconds_bucket", "0x10", le="0.005"),
        series("crosswind_live_rtt_seconds_bucket", "0+27x10", le="0.01"),
        series("crosswind_live_rtt_seconds_bucket", "0+51x10", le="0.025"),
        series("crosswind_live_rtt_seconds_bucket", "0+51x10", le="+Inf"),
    ]
    labels, ways = '{host="a", probe="icmp"}', {"there": 4, "back": 2}
    # Quantiles are interpolated: 0.95 * 51 = 48.45 of 51 is 21.45 of the 24 between 10 and 25 ms.
    expected: dict[str, list[tuple[str, float]]] = {
        "Loss A": [(labels, 0.1)],
        "Refused A": [(labels, 0.05)],
        "Round-trip time A": [(labels, 0.01 * 25.5 / 27 + 0.005 * 1.5 / 27)],
        "Round-trip time B": [(labels, 0.01 + 0.015 * 21.45 / 24)],
        "Round-trip time C": [(labels, 0.01 + 0.015 * (0.99 * 51 - 27) / 24)],
        "Round-trip times A": [('{le="0.005"}', 0), ('{le="0.01"}', 54), ('{le="0.025"}', 102), ('{le="+Inf"}', 102)],
        "Probes A": [(labels, 1)],
        "Outage A": [(labels, 1)],
        "Loss there, loss back A": [(labels[:-1] + f', way="{way}"}}', lost / 60) for way, lost in ways.items()],
    }
    assert set(expected) == {name for name, _ in queries()}
    test: dict[str, Any] = {
        "interval": "1m",
        "input_series": given,
        "promql_expr_test": [
            {
                "expr": f"round({query}, 1e-6)",
                "eval_time": "10m",
                "exp_samples": [{"labels": of, "value": round(value, 6)} for of, value in expected[name]],
            }
            for name, query in queries()
        ],
    }
    file = tmp_path / "test.json"
    file.write_text(json.dumps({"evaluation_interval": "1m", "tests": [test]}), encoding="utf-8")
    assert "SUCCESS" in promtool("test", "rules", str(file))


def test_legends_name_labels_that_their_query_keeps() -> None:
    for panel in PANELS.values():
        for target in panel["targets"]:
            kept = {name for names in re.findall(r"by \(([^)]*)\)", target["expr"]) for name in names.split(", ")}
            assert set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])) <= kept


def test_panels_do_not_overlap_and_take_their_data_from_the_chosen_source() -> None:
    places: set[tuple[int, int]] = set()
    for panel in PANELS.values():
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & places
        assert max(x for x, _ in own) < 24  # columns of a dashboard
        places |= own
        assert {of["datasource"]["uid"] for of in (panel, *panel["targets"])} == {"${datasource}"}
    assert VARIABLES["datasource"]["type"] == "datasource"
    assert len({panel["id"] for panel in PANELS.values()}) == len(PANELS)
