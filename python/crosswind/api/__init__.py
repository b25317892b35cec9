"""What programs, notebooks, the command line and pages begin with: runs, their results, studies made of options."""
