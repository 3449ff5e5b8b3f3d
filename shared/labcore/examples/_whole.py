"""Numbers as the givens write them."""

from __future__ import annotations

from typing import Any


def whole(x: Any) -> int | float:
    """A whole number as an integer, any other as a float."""
    number = float(x)
    return int(number) if number.is_integer() else number
