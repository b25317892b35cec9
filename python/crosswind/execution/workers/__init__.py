"""Workers run planned repetitions: processes on this machine, or virtual-time kernel copies."""
