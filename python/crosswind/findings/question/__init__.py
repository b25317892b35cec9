"""Questions of a study, and statements of documents: a number and the range in which it has to lie."""
