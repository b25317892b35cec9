"""Ladders: levels of a factor from good to bad, and where a study breaks on them."""
