"""Numbers that documents published, beside the measured ones."""
