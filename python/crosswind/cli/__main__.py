"""`python -m crosswind.cli`: the command line from a source tree."""

from crosswind.cli import main

main()
