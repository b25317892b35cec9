"""A report's tables. Each module declares its tables' content and place (Shown); the page has their order."""
