"""Programs that a workload of kind `program` runs at an end of the path: software that nobody here wrote."""
