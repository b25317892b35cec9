"""The part of `crosswind-cell --describe` that the Python package keeps: everything but the schemas of events.

crosswind-cell --describe | python packaging/catalog.py > python/crosswind/catalog/catalog.json
"""

import json
import sys


def kept_text(described: str) -> str:
    """The text of catalog.json."""
    catalogue = json.loads(described)
    del catalogue["events"]
    return json.dumps(catalogue, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(kept_text(sys.stdin.read()))
