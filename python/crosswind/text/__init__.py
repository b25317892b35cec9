"""Texts: numbers with units, terminal tables, generated page sections, and invisible characters."""
