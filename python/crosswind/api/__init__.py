"""The interface for programs, notebooks, the command line and pages: runs, results, studies from options."""
