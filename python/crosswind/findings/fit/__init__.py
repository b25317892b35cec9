"""Curves fitted to a study's cells."""
