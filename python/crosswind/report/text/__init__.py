"""Sentences and numbers of a report, and the report on a terminal."""
