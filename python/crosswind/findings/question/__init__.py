"""A study's questions, and documents' statements: a number and its required range."""
