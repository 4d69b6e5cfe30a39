"""The types of arrays, in one place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Precise = NDArray[np.longdouble]
Integers = NDArray[np.int64]
Truths = NDArray[np.bool_]
