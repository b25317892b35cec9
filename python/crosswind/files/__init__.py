"""Files: those that users name, those of a run, temporary ones, the user's cache; damage, what the system refuses."""
