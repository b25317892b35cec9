"""Chromium as the client of a workload: a peer (docs/peers.md) that measures inside a page of a real browser."""
