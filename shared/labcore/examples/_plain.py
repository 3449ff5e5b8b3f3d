"""Arrays as lists, and whole numbers written without a point where they are counts."""

from __future__ import annotations

from typing import Any

import numpy as np


def plain(x: Any) -> Any:
    """Lists and numbers of Python in place of arrays and numbers of numpy."""
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


def whole(x: Any) -> Any:
    """As plain; a float that is a whole number becomes an integer."""
    x = plain(x)
    if isinstance(x, list):
        return [whole(part) for part in x]
    return int(x) if isinstance(x, float) and x.is_integer() else x
