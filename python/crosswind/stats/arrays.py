"""The type of numbers that are computed with."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
