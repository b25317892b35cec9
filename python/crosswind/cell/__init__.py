"""One cell: its JSON for crosswind-cell, its process, and this machine's limits."""
