"""Texts: numbers with units, tables of a terminal, sections of pages, and characters that a reader does not see."""
