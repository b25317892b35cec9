"""Published numbers, beside the measured ones."""
