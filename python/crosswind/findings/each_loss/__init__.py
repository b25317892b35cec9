"""Each loss: what losing one packet costs, for each packet of a cell."""
