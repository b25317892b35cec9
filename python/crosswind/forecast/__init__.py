"""What a cell will take, from its parameters alone: time, packets, bytes, processors."""
