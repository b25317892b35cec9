#!/usr/bin/env python3
"""What it takes to say where the time of a million packets went: crates/attribution/benches/attribution.rs."""

import subprocess
import sys

from common import HERE

if __name__ == "__main__":
    words = ["cargo", "bench", "--locked", "--quiet", "-p", "crosswind-attribution", *sys.argv[1:]]
    sys.exit(subprocess.run(words, cwd=HERE.parent, check=False).returncode)
