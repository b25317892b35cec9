"""Break-even: places along a factor with two equal levels."""
