"""Running cells: order, concurrency, processors, and the display meanwhile."""
