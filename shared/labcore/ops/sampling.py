"""Distributions to sample from: what is kept of one, and what is drawn."""

from __future__ import annotations

import numpy as np

from . import _validate as must
from ._op import Array, op


def _kept(p: Array, k: int) -> None:
    must.probabilities(p=p)
    must.count(1, k=k)
    if k > p.shape[-1]:
        raise ValueError(f"k must be at most n = {p.shape[-1]}, got {k}")


@op(_kept, floats="p")
def top_k(p: Array, k: int) -> Array:
    """The k largest probabilities, renormalised; the rest zero, the order kept.

    p: (..., n). Of equal probabilities the earlier index is kept first.
    Raises ValueError for k outside [1, n] or a p that does not sum to 1.

    >>> top_k([0.5, 0.25, 0.25], 2).round(4).tolist()
    [0.6667, 0.3333, 0.0]
    """
    order = np.argsort(-p, axis=-1, kind="stable")
    kept = np.zeros_like(p)
    largest = order[..., :k]
    np.put_along_axis(kept, largest, np.take_along_axis(p, largest, axis=-1), axis=-1)
    return kept / kept.sum(axis=-1, keepdims=True)
