"""Fewer bits for a number, fewer tokens for a text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from . import _validate as must
from ._op import Array, op

Merge = tuple[Any, Any]  # two strings, or two byte strings


def _to_quantize(
    x: Array, scale: float | Array, *, qmin: int | None = None, qmax: int = 127
) -> None:
    must.finite(x=x)
    must.positive(scale=scale)
    must.count(1, qmax=qmax)
    whole = isinstance(qmin, (int, np.integer)) and not isinstance(qmin, bool)
    if qmin is not None and (not whole or qmin > 0):
        raise ValueError(f"qmin must be an integer <= 0, got {qmin!r}")
    must.batch(x=np.shape(x), scale=np.shape(scale))


def _codes(codes: Array, scale: float | Array) -> None:
    must.finite(codes=codes)
    must.positive(scale=scale)
    must.batch(codes=np.shape(codes), scale=np.shape(scale))
    if np.any(codes != np.rint(codes)):
        raise ValueError("codes must be whole numbers")


def _range(x: Array, *, qmax: int = 127, axis: int | None = None) -> None:
    must.finite(x=x)
    must.count(1, qmax=qmax)
    if np.size(x) == 0:
        raise ValueError(f"x is empty: shape {np.shape(x)}")
    if axis is not None:
        must.axis_of("x", x, axis)


def _storage(shape: Sequence[int], bits: int) -> None:
    must.count(1, bits=bits)
    for n in shape:
        must.count(0, shape=n)


def _rules(text: str | bytes, merges: Sequence[Merge]) -> None:
    if not isinstance(text, (str, bytes)):
        raise ValueError(
            f"text must be a string or a byte string, got {type(text).__name__}"
        )
    for rule in merges:
        halves = isinstance(rule, (tuple, list)) and len(rule) == 2
        if not halves or not all(type(x) is type(text) and x for x in rule):
            raise ValueError(
                f"merges must be pairs of non-empty {type(text).__name__}, as text is, "
                f"got {rule!r}"
            )
    again = [rule for rule, n in Counter(map(tuple, merges)).items() if n > 1]
    if again:
        raise ValueError(f"merges has a rule twice: {again[0]}")


def _to_train(text: str | bytes, n_merges: int) -> None:
    _rules(text, [])
    must.count(0, n_merges=n_merges)


def _pieces(tokens: Sequence[str | bytes]) -> None:
    kinds = {type(token) for token in tokens}
    if not kinds <= {str} and not kinds <= {bytes}:
        raise ValueError("tokens must be strings, or byte strings, all of one kind")


# ---- Numbers ----------------------------------------------------------------------


@op(_range, floats="x")
def absmax_scale(x: Array, *, qmax: int = 127, axis: int | None = None) -> Array:
    r"""The step at which the largest number just fits.

    $$s = \frac{\max |x|}{q_{max}}$$

    x: any shape; axis: one scale for each slice along it, its axis kept with length 1;
    None: one for all. Where all numbers are 0 any step would do: it is 1.

    >>> float(absmax_scale([-2.54, 1.0]))
    0.02
    """
    largest = np.abs(x).max(axis=axis, keepdims=axis is not None)
    return np.where(largest > 0, largest / qmax, 1.0).astype(x.dtype)


@op(_to_quantize, floats="x scale")
def quantize_symmetric(
    x: Array, scale: float | Array, *, qmin: int | None = None, qmax: int = 127
) -> Array:
    r"""The nearest step, and what lies outside the range at its end.

    $$q = \mathrm{clip}\left(\mathrm{round}(x / s), q_{min}, q_{max}\right)$$

    scale: a number, or one that broadcasts with x. qmin None: -qmax, so that the codes
    of x and -x are opposite. Halves are rounded to even. Inside the range the error is
    at most half a step. Returns integers (int64).

    >>> quantize_symmetric([0.5, 1.5, -2.5, 200.0], 1.0).tolist()
    [0, 2, -2, 127]
    """
    steps = np.rint(np.real(x / scale))
    return np.clip(steps, -qmax if qmin is None else qmin, qmax).astype(np.int64)


@op(_codes, floats="codes scale")
def dequantize(codes: Array, scale: float | Array) -> Array:
    r"""The numbers that the codes stand for.

    $$\hat x = s\, q$$

    >>> dequantize([-2, 3], 0.5).tolist()
    [-1.0, 1.5]
    """
    return codes * scale


@op(_storage)
def tensor_bytes(shape: Sequence[int], bits: int) -> int:
    r"""What a tensor takes: elements times bits, in whole bytes.

    $$\left\lceil \frac{\prod_i n_i \cdot b}{8} \right\rceil$$

    The scales of a quantized tensor are not counted. A shape without axes is a number.

    >>> tensor_bytes((2, 3), 4)
    3
    """
    elements = 1
    for n in shape:
        elements *= int(n)
    return -(-elements * bits // 8)


# ---- Text -------------------------------------------------------------------------


@op(_rules)
def bpe_encode(text: str | bytes, merges: Sequence[Merge]) -> list[Any]:
    """Tokens of a text: merge the pair learnt first, everywhere, until none is left.

    text: a string starts as its characters (code points), a byte string as its bytes,
    so that one character may be split over tokens. merges: pairs, in the order learnt;
    the rank decides, not the place in the text. Occurrences of one pair are merged
    from left to right. A rule given twice is refused: libraries differ on which of the
    two ranks counts. Source: Sennrich et al. 2016.

    >>> bpe_encode("abc", [("b", "c"), ("a", "b")])
    ['a', 'bc']
    """
    rank = {tuple(pair): i for i, pair in enumerate(merges)}
    tokens = [text[i : i + 1] for i in range(len(text))]
    while known := [pair for pair in pairwise(tokens) if pair in rank]:
        tokens = _merged(tokens, min(known, key=lambda pair: rank[pair]))
    return tokens


@op(_to_train)
def bpe_train(text: str | bytes, n_merges: int) -> list[Merge]:
    """The merges to learn from a text: the most frequent pair, again and again.

    Every two neighbours are a pair, overlapping ones too: aaa has two. Of pairs that
    are equally frequent the one that occurs first in the text is taken. Fewer than
    n_merges rules are returned when the text has become one token.
    Source: Sennrich et al. 2016.

    >>> bpe_train("abab", 1)
    [('a', 'b')]
    """
    tokens = [text[i : i + 1] for i in range(len(text))]
    merges: list[Merge] = []
    while len(merges) < n_merges and len(tokens) > 1:
        counts = Counter(pairwise(tokens))  # in the order of first occurrence
        merges.append(max(counts, key=lambda pair: counts[pair]))
        tokens = _merged(tokens, merges[-1])
    return merges


@op(_pieces)
def bpe_decode(tokens: Sequence[str | bytes]) -> str:
    """The text of tokens: put the bytes together first, then read them as UTF-8 once.

    A token alone may hold a part of a character. Bytes that are no UTF-8 become the
    replacement character.

    >>> bpe_decode([bytes([0xC3]), bytes([0xA9])]) == chr(0xE9)
    True
    """
    whole = b"".join(t if isinstance(t, bytes) else t.encode() for t in tokens)
    return whole.decode("utf-8", "replace")


def _merged(tokens: list[Any], pair: Merge) -> list[Any]:
    out: list[Any] = []
    i = 0
    while i < len(tokens):
        both = tuple(tokens[i : i + 2]) == pair
        out.append(tokens[i] + tokens[i + 1] if both else tokens[i])
        i += 2 if both else 1
    return out
