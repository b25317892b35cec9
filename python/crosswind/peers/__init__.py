"""Third-party programs for the workload `program`, at an end of the path."""
