"""What runs a planned repetition: processes on this machine, copies of a kernel of virtual time."""
