"""The tables of a report. Each module declares what its tables show and where (Shown); the page has their order."""
