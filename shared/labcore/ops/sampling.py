"""Distributions to sample from: what is kept of one, and what is chosen."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from . import _validate as must
from ._op import Array, op

NextLogprobs = Callable[[tuple[int, ...]], Array]


class Hypothesis(NamedTuple):
    """A sequence of tokens, and the logarithm of its probability."""

    tokens: tuple[int, ...]
    logprob: float


def _kept(p: Array, k: int) -> None:
    must.probabilities(p=p)
    must.count(1, k=k)
    if k > p.shape[-1]:
        raise ValueError(f"k must be at most n = {p.shape[-1]}, got {k}")


def _nucleus(p: Array, mass: float) -> None:
    must.probabilities(p=p)
    must.within(0.0, 1.0, mass=mass)
    if mass == 0:
        raise ValueError("mass must be above 0: no token would be left")


def _forbidden(logits: Array, tokens: Array) -> None:
    must.axes(1, logits=logits)
    must.scores("logits", logits)
    ids = np.asarray(tokens)
    if ids.size and (
        ids.dtype.kind not in "iu" or np.any((ids < 0) | (ids >= logits.shape[-1]))
    ):
        raise ValueError(
            f"tokens must be integers in [0, {logits.shape[-1]}), got {ids.tolist()}"
        )
    if np.any(np.all(np.real(_without(logits, ids)) == -np.inf, axis=-1)):
        raise ValueError("tokens must leave one that logits allow, got all of them")


def _search(
    next_logprobs: NextLogprobs, *, length: int, end: int | None = None
) -> None:
    if not callable(next_logprobs):
        raise ValueError(
            "next_logprobs must be a function of the tokens so far, got "
            f"{type(next_logprobs).__name__}"
        )
    must.count(1, length=length)
    if end is not None:
        must.count(0, end=end)


def _beams(
    next_logprobs: NextLogprobs,
    *,
    length: int,
    beam: int,
    end: int | None = None,
    alpha: float = 0.0,
) -> None:
    _search(next_logprobs, length=length, end=end)
    must.count(1, beam=beam)
    must.finite(alpha=alpha)


def _finished(logprob: Array, length: Array, *, alpha: float) -> None:
    must.within(-np.inf, 0.0, logprob=logprob)
    must.positive(length=length)
    must.finite(alpha=alpha)
    must.batch(logprob=np.shape(logprob), length=np.shape(length))


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


@op(_nucleus, floats="p mass")
def top_p(p: Array, mass: float) -> Array:
    r"""The fewest tokens that together have the mass, renormalised; the order kept.

    Sorted from the largest, a token is kept while those before it fall short:

    $$\sum_{j \text{ before } i} p_j < m$$

    so the one that crosses the mass is kept. p: (..., n); mass in (0, 1], 1 keeps all.
    Of equal probabilities the earlier index comes first; a sum that falls short by
    rounding only counts as reached. Temperature comes before this cut.
    Source: Holtzman et al. 2020 (nucleus sampling).

    >>> top_p([0.125, 0.5, 0.375], 0.75).round(4).tolist()
    [0.0, 0.5714, 0.4286]
    """
    order = np.argsort(-p, axis=-1, kind="stable")
    falling = np.take_along_axis(p, order, axis=-1)
    before = np.cumsum(falling, axis=-1) - falling
    rounding = p.shape[-1] * float(np.finfo(p.dtype).eps)
    short = (np.real(before) < mass - rounding) | (mass == 1)
    kept = np.where(short, falling, 0.0).astype(p.dtype)
    kept[..., 0] = falling[..., 0]  # the mass may be smaller than a rounding
    result = np.empty_like(p)
    np.put_along_axis(result, order, kept, axis=-1)
    return result / result.sum(axis=-1, keepdims=True)


@op(_forbidden, floats="logits")
def forbid_tokens(logits: Array, tokens: Array) -> Array:
    """Logits under which the tokens cannot be chosen: theirs are -inf.

    logits: (..., V); tokens: integers in [0, V). Padding is forbidden by this rule of
    decoding, not by its embedding, which may be as likely as any other.
    Raises ValueError if no token is left.

    >>> forbid_tokens([3.0, 2.0, 1.0], [0]).tolist()
    [-inf, 2.0, 1.0]
    """
    return _without(logits, np.asarray(tokens, dtype=int))


@op(_search)
def greedy(
    next_logprobs: NextLogprobs, *, length: int, end: int | None = None
) -> Hypothesis:
    r"""Always the most probable next token; the first of equals.

    next_logprobs: the tokens so far -> (V,) log-probabilities of the next, -inf for one
    that cannot follow. Stops after length tokens, or after the token end.
    The best step is not always on the way to the best sequence.

    >>> greedy(lambda so_far: np.log([0.25, 0.75]), length=2).tokens
    (1, 1)
    """
    best = Hypothesis((), 0.0)
    while len(best.tokens) < length and best.tokens[-1:] != (end,):
        steps = np.asarray(next_logprobs(best.tokens), dtype=float)
        token = int(np.argmax(steps))
        best = Hypothesis((*best.tokens, token), best.logprob + float(steps[token]))
    return best


@op(_beams)
def beam_search(
    next_logprobs: NextLogprobs,
    *,
    length: int,
    beam: int,
    end: int | None = None,
    alpha: float = 0.0,
) -> list[Hypothesis]:
    r"""The beam most probable beginnings, extended one token at a time.

    next_logprobs, length, end as in :func:`greedy`. A sequence that has ended competes
    with those that go on. Returns at most beam hypotheses, those of probability zero
    left out, ordered by :func:`length_score` with alpha; of equals the one found first.
    While the search goes on they are compared by log-probability alone. A beam of 1 is
    greedy; one of V^(length - 1) misses nothing.

    >>> found = beam_search(lambda so_far: np.log([0.25, 0.75]), length=2, beam=2)
    >>> [h.tokens for h in found]
    [(1, 1), (1, 0)]
    """
    beams = [Hypothesis((), 0.0)]
    for _ in range(length):
        longer = []
        for h in beams:
            if h.tokens[-1:] == (end,):
                longer.append(h)
                continue
            steps = np.asarray(next_logprobs(h.tokens), dtype=float)
            for token in np.flatnonzero(steps > -np.inf).tolist():
                one_more = h.logprob + float(steps[token])
                longer.append(Hypothesis((*h.tokens, token), one_more))
        beams = sorted(longer, key=lambda h: -h.logprob)[:beam]
    return sorted(
        beams, key=lambda h: -length_score(h.logprob, len(h.tokens), alpha=alpha)
    )


@op(_finished, floats="logprob length alpha")
def length_score(logprob: Array, length: Array, *, alpha: float) -> Array:
    r"""What finished sequences of several lengths are compared by.

    $$\frac{\log p(y)}{|y|^\alpha}$$

    alpha 0 compares probabilities, so that short sequences win; alpha 1 compares the
    mean log-probability of a token. Toolkits differ in the form of this penalty.

    >>> length_score([-1.0, -2.0], [1.0, 4.0], alpha=1.0).tolist()
    [-1.0, -0.5]
    """
    return logprob / length**alpha


def _without(logits: Array, ids: Array) -> Array:
    left = logits.copy()
    left[..., ids.astype(int)] = -np.inf
    return left
