"""Statistics: a number never travels without its interval, its n and its method (docs/statistics.md)."""
