"""Curves that are fitted to the cells of a study."""
