"""Command lines of tests, and what a crosswind-cell that refuses one says."""

import json

ECHO = ("run", "echo", "--transport", "tcp", "--loss", "0%,5%", "--messages", "60", "--repetitions", "1")
REFUSED = json.dumps(
    {
        "event": "refused",
        "index": 0,
        "kind": "bad_cell",
        "key": "path.mtu_bytes",
        "problem": "600 is too small",
        "hint": "700 or more",
    }
)
