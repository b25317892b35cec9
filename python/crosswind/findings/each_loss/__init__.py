"""Each loss: the cost of losing one packet, for every packet in a cell."""
