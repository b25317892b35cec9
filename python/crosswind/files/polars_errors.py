"""System errors in Polars, passed on with the number in the text only."""

import errno
import os
import re


def system_error(error: Exception) -> OSError | None:
    """The system's error behind one of Polars; None where there is none."""
    numbered = re.search(r"os error (\d+)", str(error))
    number = int(numbered[1]) if numbered else errno.EINVAL
    return None if number == errno.EINVAL else OSError(number, os.strerror(number))
