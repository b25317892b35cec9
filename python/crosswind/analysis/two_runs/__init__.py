"""Two runs, compared: two commits, two machines, two clocks."""
