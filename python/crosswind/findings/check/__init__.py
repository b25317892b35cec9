"""Statements that a document's own numbers decide, by arithmetic and without a run."""
