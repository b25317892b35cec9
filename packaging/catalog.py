"""The part of `crosswind-cell --describe` that the Python package keeps: everything but null and the schemas of events.

crosswind-cell --describe | python packaging/catalog.py > python/crosswind/catalog/catalog.json
"""

import json
import sys


def kept_text(described: str) -> str:
    """The text of catalog.json."""
    catalogue = json.loads(described, object_hook=_without_null)
    del catalogue["events"]
    return json.dumps(catalogue, indent=1, ensure_ascii=False) + "\n"


def _without_null(entry: dict[str, object]) -> dict[str, object]:
    return {name: value for name, value in entry.items() if value is not None}


if __name__ == "__main__":
    sys.stdout.write(kept_text(sys.stdin.read()))
