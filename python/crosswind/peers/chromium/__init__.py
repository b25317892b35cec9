"""Chromium as a workload's client: a peer (docs/peers.md) measuring inside a real browser's page."""
