"""Running cells: which may start now, how many at a time, on which processors, and the display meanwhile."""
