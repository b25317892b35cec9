"""A toy: which cell is the fastest."""
