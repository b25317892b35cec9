"""Files: named by users, in a run, temporary, in the user's cache; damage, system errors."""
