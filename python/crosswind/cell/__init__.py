"""One cell: its JSON for crosswind-cell, the process that runs it, what this machine allows."""
