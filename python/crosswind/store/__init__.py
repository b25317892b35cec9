"""Run directories: writing, reading, listing them, and where their results come from."""
