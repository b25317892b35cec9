"""Names of a study's schema and of its repetitions."""

import re

SCHEMA = "crosswind.study/1"

KEY = re.compile(r"c\d{3,}-r\d{2,}", re.ASCII)
"""The form of every `repetition_key`."""


def repetition_key(cell: int, repetition: int) -> str:
    """A repetition's name."""
    return f"c{cell:03d}-r{repetition:02d}"
