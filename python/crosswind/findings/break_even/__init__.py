"""Break-even: at which places along a factor two levels may take the same."""
