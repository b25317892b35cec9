"""Plans and manifests for tests, without a study behind them."""

from typing import Any


def entry(number: int) -> dict[str, Any]:
    return {
        "key": f"c{number:03d}-r00",
        "order": number,
        "cell": number,
        "repetition": 0,
        "block": 0,
        "seed": 1,
        "expected_ns": 1,
        "levels": {"path.loss": f"{number}%"},
        "parameters": {"schema": "crosswind.cell/1", "workload": {"kind": "echo"}, "output": {"packets": False}},
    }


def manifest(cells: int = 2, name: str = "a-study", started: str = "2026-01-01T00:00:00.000+00:00") -> dict[str, Any]:
    return {
        "name": name,
        "study": {"title": "A study"},
        "study_digest": "d1",
        "presentation": {"name": name, "title": "A study", "published": [], "models": [], "notes": []},
        "options": {"packets": False, "capture": False},
        "plan": [entry(number) for number in range(cells)],
        "provenance": {"started": started},
        "sessions": [],
    }
