"""Findings by kind: declared in a study, judged, and shown.

A kind has a folder with `declare` (its table in a study), `judge` (from samples to a result) and `show` (its words,
tables and charts). What rules on all of them is `crosswind.decisions`.
"""
