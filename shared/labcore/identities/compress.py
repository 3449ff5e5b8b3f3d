"""Quantization and byte-pair merges: what must hold, and how it breaks."""

from __future__ import annotations

import numpy as np

from ..ops.compress import (
    _merged,
    absmax_scale,
    bpe_decode,
    bpe_encode,
    bpe_train,
    dequantize,
    quantize_symmetric,
    tensor_bytes,
)
from ..ops.layers import linear
from ._check import Inputs, Rng, nothing
from .worked import serving, tokens

TEXT = "a" + chr(0xE9) + chr(0x5B66) + chr(0x1F600) + "z"  # of 1, 2, 3, 4, 1 bytes


# ---- What is drawn ----------------------------------------------------------------


def some_numbers(rng: Rng, size: int) -> Inputs:
    """Rows of two magnitudes; the largest are 127 steps, one lies just below a step."""
    step = np.array([[0.5**8], [2.0]])
    x = rng.uniform(-90, 90, size=(2, size + 4)) * step
    x[:, 0], x[:, 2] = 7.8 * step[:, 0], [-127 * 0.5**8, 127 * 2.0]
    return {"x": x}


def some_codes(rng: Rng, size: int) -> Inputs:
    """Codes of the whole range, and a step that doubles carry without rounding."""
    inner = rng.integers(-126, 127, size=size + 1)
    return {
        "codes": np.concatenate([[-127, 127, 3], inner]),
        "scale": 0.5 ** int(rng.integers(1, 6)),
    }


def a_word(rng: Rng, size: int) -> Inputs:
    """A text of three letters, odd in length, and rules that reach four letters."""
    letters = rng.choice(list("abc"), size=4 * size + 3)
    return {
        "text": "".join(letters) + "aabcaab",
        "merges": [("a", "b"), ("b", "c"), ("ab", "c"), ("a", "a"), ("aa", "ab")],
    }


def some_bytes(rng: Rng, size: int) -> Inputs:
    """A text of characters of one to four bytes, every byte a token."""
    return {"text": TEXT * size}


def a_shape(rng: Rng, size: int) -> Inputs:
    """A shape of three axes, with an odd number of elements."""
    return {"shape": (2 * size - 1, 3, 2 * size + 1)}


# ---- What must hold: numbers ------------------------------------------------------


@serving.check(
    "quantize_to_the_nearest",
    "In steps of .1, -.24, .03 and .26 are -2, 0 and 3.",
    draw=nothing,
    kind="exact",
)
def _():
    return quantize_symmetric([-0.24, 0.03, 0.26], 0.1), np.array([-2, 0, 3])


@serving.check(
    "quantize_clips",
    "With codes from -2 to 2 the last of them is cut to 2.",
    draw=nothing,
    kind="exact",
)
def _():
    codes = quantize_symmetric([-0.24, 0.03, 0.26], 0.1, qmin=-2, qmax=2)
    return codes, np.array([-2, 0, 2])


@serving.check(
    "quantize_halves_to_even",
    "A half goes to the even neighbour, on both sides of zero.",
    draw=nothing,
    kind="exact",
)
def _():
    halves = [0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5]
    return quantize_symmetric(halves, 1.0), np.array([0, 2, 2, 4, 0, -2, -2])


@serving.check(
    "quantize_within_half_a_step",
    "Inside the range no number moves by more than half a step.",
    draw=some_numbers,
    kind="order",
)
def _(x):
    scale = absmax_scale(x, axis=-1)
    back = dequantize(quantize_symmetric(x, scale), scale)
    return np.full(x.shape, 0.5 + 1e-9), np.abs(x - back) / scale


@serving.check(
    "quantize_opposite",
    "Opposite numbers have opposite codes, beyond the range too.",
    draw=some_codes,
    kind="exact",
)
def _(codes, scale):
    x = np.array([*(1.7 * scale * codes), 1000 * scale])
    return quantize_symmetric(-x, scale), -quantize_symmetric(x, scale)


@serving.check(
    "quantize_keeps_the_grid",
    "What codes stand for is quantized to the same codes.",
    draw=some_codes,
    kind="exact",
)
def _(codes, scale):
    return quantize_symmetric(dequantize(codes, scale), scale), codes


@serving.check(
    "quantize_largest_takes_the_end",
    "With one scale for each row the largest number of each takes the last code.",
    draw=some_numbers,
    kind="exact",
)
def _(x):
    codes = quantize_symmetric(x, absmax_scale(x, axis=-1))
    return np.abs(codes).max(axis=-1), np.array([127, 127])


@serving.check(
    "quantize_zeros",
    "Zeros are quantized to zeros: there is no division by their maximum.",
    draw=nothing,
    kind="exact",
)
def _():
    zeros = [0.0, 0.0]
    scale = float(absmax_scale(zeros))
    codes = quantize_symmetric(zeros, scale)
    got = (scale, codes, dequantize(codes, scale))
    return got, (1.0, np.array([0, 0]), np.array([0.0, 0.0]))


@serving.check(
    "quantize_error_meets_activation",
    "Equal rounding errors of two weights: the output feels them by the activations.",
    draw=nothing,
    kind="value",
)
def _():
    # .26 in steps of .25 is .25: both weights lose .01, the inputs are 100 and .1.
    w = np.array([0.26, 0.26])
    kept = dequantize(quantize_symmetric(w, 0.25), 0.25)
    x = [100.0, 0.1]
    lost = linear(x, np.diag(w)) - linear(x, np.diag(kept))
    return lost, np.array([1.0, 0.001])


@serving.check(
    "quantize_refuses_nan",
    "A number that is none has no code.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: quantize_symmetric([1.0, np.nan], 1.0), "x"


@serving.check(
    "tensor_bytes_of_arrays",
    "Eight bits, sixteen and sixty-four: as many bytes as an array of them has.",
    draw=a_shape,
    kind="exact",
)
def _(shape):
    got = [tensor_bytes(shape, bits) for bits in (8, 16, 64)]
    types = (np.int8, np.float16, np.int64)
    return got, [np.zeros(shape, dtype).nbytes for dtype in types]


@serving.check(
    "tensor_bytes_of_nibbles",
    "An odd number of four-bit codes takes a last byte that is half empty.",
    draw=a_shape,
    kind="exact",
)
def _(shape):
    return tensor_bytes(shape, 4), (np.zeros(shape).size + 1) // 2


# ---- What must hold: text ---------------------------------------------------------


@tokens.check(
    "bpe_by_rank",
    "The pair that was learnt first is merged first, wherever it stands: abc is a bc.",
    draw=nothing,
    kind="exact",
)
def _():
    return bpe_encode("abc", [("b", "c"), ("a", "b")]), ["a", "bc"]


@tokens.check(
    "bpe_loses_nothing",
    "The tokens of a text are the text.",
    draw=a_word,
    kind="exact",
)
def _(text, merges):
    return "".join(bpe_encode(text, merges)), text


@tokens.check(
    "bpe_leaves_no_pair",
    "No two neighbours are left that a rule could merge.",
    draw=a_word,
    kind="exact",
)
def _(text, merges):
    found = bpe_encode(text, merges)
    left = [pair for pair in zip(found, found[1:], strict=False) if pair in merges]
    return (len(found) < len(text), left), (True, [])


@tokens.check(
    "bpe_from_the_left",
    "Occurrences that overlap are merged from the left: aaa is aa a.",
    draw=nothing,
    kind="exact",
)
def _():
    return bpe_encode("aaa", [("a", "a")]), ["aa", "a"]


@tokens.check(
    "bpe_rank_becomes_possible",
    "A rule of low rank applies as soon as its parts exist: abcbc is abc bc.",
    draw=nothing,
    kind="exact",
)
def _():
    return bpe_encode("abcbc", [("a", "bc"), ("b", "c")]), ["abc", "bc"]


@tokens.check(
    "bpe_of_bytes",
    "Characters split over tokens are read again when the bytes are together.",
    draw=some_bytes,
    kind="exact",
)
def _(text):
    pieces = bpe_encode(text.encode(), [(b"\xc3", b"\xa9")])
    return (len(pieces), bpe_decode(pieces)), (
        len(text.encode()) - text.count(TEXT[1]),
        text,
    )


@tokens.check(
    "bpe_refuses_a_rule_twice",
    "A rule that is given twice has two ranks, and is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    rules = [("a", "b"), ("b", "c"), ("a", "b")]
    return lambda: bpe_encode("abc", rules), "merges"


@tokens.check(
    "bpe_learns_the_most_frequent",
    "Of cababab the pair ab is learnt, then ab ab: three and two occurrences.",
    draw=nothing,
    kind="exact",
)
def _():
    return bpe_train("cababab", 2), [("a", "b"), ("ab", "ab")]


@tokens.check(
    "bpe_learns_until_one_token",
    "A text of two letters teaches one rule, whatever is asked for.",
    draw=nothing,
    kind="exact",
)
def _():
    return (bpe_train("ab", 5), bpe_train("a", 5)), ([("a", "b")], [])


@tokens.check(
    "bpe_learns_ties_in_order",
    "Of pairs as frequent as each other the first in the text is learnt.",
    draw=nothing,
    kind="exact",
)
def _():
    # aa occurs 4 times. Then aa a and a b occur twice, and aa a comes first; then
    # aaa b and, with it, aaab: aaab d aaab a c.
    merges = bpe_train("aaabdaaabac", 3)
    return (merges, bpe_encode("aaabdaaabac", merges)), (
        [("a", "a"), ("aa", "a"), ("aaa", "b")],
        ["aaab", "d", "aaab", "a", "c"],
    )


# ---- How numbers break ------------------------------------------------------------


@serving.fault(
    "quantize_truncates",
    "what is behind the point is cut off",
    operation="quantize_symmetric",
    story="A cast to an integer in place of rounding.",
    made_for="quantize_to_the_nearest",
    stays_green="quantize_opposite",
)
def _(x, scale, *, qmin=None, qmax=127):
    low = -qmax if qmin is None else qmin
    return np.clip(np.trunc(x / scale), low, qmax).astype(np.int64)


@serving.fault(
    "quantize_halves_away_from_zero",
    "halves are rounded away from zero",
    operation="quantize_symmetric",
    story="C's round() and most hardware differ from numpy and the standard's default.",
    made_for="quantize_halves_to_even",
    stays_green="quantize_within_half_a_step",
)
def _(x, scale, *, qmin=None, qmax=127):
    y = np.asarray(x / scale)
    low = -qmax if qmin is None else qmin
    rounded = np.sign(y) * np.floor(np.abs(y) + 0.5)
    return np.clip(rounded, low, qmax).astype(np.int64)


@serving.fault(
    "quantize_wraps_around",
    "what lies beyond the range comes in at the other end",
    operation="quantize_symmetric",
    story="A cast to eight bits without a clip before it.",
    made_for="quantize_clips",
    stays_green="quantize_to_the_nearest",
)
def _(x, scale, *, qmin=None, qmax=127):
    low = -qmax if qmin is None else qmin
    codes = np.rint(x / scale).astype(np.int64)
    return (codes - low) % (qmax - low + 1) + low


@serving.fault(
    "quantize_one_code_more_below",
    "the lowest code is one below minus the largest",
    operation="quantize_symmetric",
    story="Eight bits hold -128, so it is used; then -x is not minus x.",
    made_for="quantize_opposite",
    stays_green="quantize_halves_to_even",
)
def _(x, scale, *, qmin=None, qmax=127):
    low = -qmax - 1 if qmin is None else qmin
    return quantize_symmetric(x, scale, qmin=low, qmax=qmax)


@serving.fault(
    "quantize_nan_is_zero",
    "NaN becomes code zero",
    operation="quantize_symmetric",
    story="A cast of NaN to an integer is whatever the processor makes of it.",
    made_for="quantize_refuses_nan",
    stays_green="quantize_to_the_nearest",
    unguarded=True,
)
def _(x, scale, *, qmin=None, qmax=127):
    return quantize_symmetric(np.nan_to_num(x), scale, qmin=qmin, qmax=qmax)


@serving.fault(
    "scale_by_all_codes",
    "the maximum is divided by one more than the largest code",
    operation="absmax_scale",
    story="128 steps are counted on the side that has 127.",
    made_for="quantize_within_half_a_step",
    stays_green="quantize_largest_takes_the_end",
)
def _(x, *, qmax=127, axis=None):
    largest = np.abs(x).max(axis=axis, keepdims=axis is not None)
    return largest / (qmax + 1)


@serving.fault(
    "scale_of_everything",
    "one scale is used for all rows",
    operation="absmax_scale",
    story="The axis is dropped: one large row takes the digits of all others.",
    made_for="quantize_largest_takes_the_end",
    stays_green="quantize_zeros",
)
def _(x, *, qmax=127, axis=None):
    whole = absmax_scale(x, qmax=qmax)
    if axis is None:
        return whole
    shape = np.abs(x).max(axis=axis, keepdims=True).shape
    return np.full(shape, float(whole))


@serving.fault(
    "scale_of_the_mean",
    "the scale comes from the mean size, not from the largest",
    operation="absmax_scale",
    story="A scheme for outliers under the name of another: most numbers fit better.",
    made_for="quantize_within_half_a_step",
    stays_green="quantize_largest_takes_the_end",
)
def _(x, *, qmax=127, axis=None):
    mean = np.abs(x).mean(axis=axis, keepdims=axis is not None)
    return mean / qmax


@serving.fault(
    "dequantize_divides",
    "codes are divided by the scale",
    operation="dequantize",
    story="Two libraries call the step and its inverse by one word.",
    made_for="quantize_keeps_the_grid",
    stays_green="quantize_zeros",
)
def _(codes, scale):
    return codes / scale


@serving.fault(
    "tensor_bytes_round_down",
    "a half-empty last byte is not counted",
    operation="tensor_bytes",
    story="Integer division: one byte short, which is enough to write beyond the end.",
    made_for="tensor_bytes_of_nibbles",
    stays_green="tensor_bytes_of_arrays",
)
def _(shape, bits):
    return int(np.prod(shape)) * bits // 8


@serving.fault(
    "tensor_bytes_are_bits",
    "bits are not turned into bytes",
    operation="tensor_bytes",
    story="Mb and MB: a factor of eight, and both are sold.",
    made_for="tensor_bytes_of_arrays",
    stays_green="quantize_zeros",
)
def _(shape, bits):
    return int(np.prod(shape)) * bits


# ---- How text breaks --------------------------------------------------------------


def _pieces(text):
    return [text[i : i + 1] for i in range(len(text))]


@tokens.fault(
    "bpe_left_to_right",
    "the first pair of the text that has a rule is merged",
    operation="bpe_encode",
    story="Reading order in place of rank: reported against two ports of tokenizers.",
    made_for="bpe_by_rank",
    stays_green="bpe_loses_nothing",
)
def _(text, merges):
    found = _pieces(text)
    while True:
        pairs = zip(found, found[1:], strict=False)
        place = next((i for i, pair in enumerate(pairs) if pair in merges), None)
        if place is None:
            return found
        found = [
            *found[:place],
            found[place] + found[place + 1],
            *found[place + 2 :],
        ]


@tokens.fault(
    "bpe_rules_in_order_once",
    "every rule is applied once, in the order learnt",
    operation="bpe_encode",
    story="As training applies them; a rule whose parts come from a later one waits.",
    made_for="bpe_rank_becomes_possible",
    stays_green="bpe_by_rank",
)
def _(text, merges):
    found = _pieces(text)
    for pair in merges:
        found = _merged(found, tuple(pair))
    return found


@tokens.fault(
    "bpe_from_the_right",
    "overlapping occurrences are merged from the right",
    operation="bpe_encode",
    story="A loop that deletes while it runs, and runs backwards to be able to.",
    made_for="bpe_from_the_left",
    stays_green="bpe_loses_nothing",
)
def _(text, merges):
    turned = [(b[::-1], a[::-1]) for a, b in merges]
    return [token[::-1] for token in bpe_encode(text[::-1], turned)][::-1]


@tokens.fault(
    "bpe_drops_the_last_token",
    "the last token is lost",
    operation="bpe_encode",
    story="A loop over pairs that never emits what has no right neighbour.",
    made_for="bpe_loses_nothing",
    stays_green="bpe_leaves_no_pair",
)
def _(text, merges):
    return bpe_encode(text, merges)[:-1]


@tokens.fault(
    "bpe_first_merge_only",
    "only the first pair found is merged",
    operation="bpe_encode",
    story="A return inside the loop.",
    made_for="bpe_leaves_no_pair",
    stays_green="bpe_by_rank",
)
def _(text, merges):
    found = _pieces(text)
    known = [pair for pair in zip(found, found[1:], strict=False) if pair in merges]
    return _merged(found, min(known, key=list(merges).index)) if known else found


@tokens.fault(
    "bpe_last_rule_wins",
    "of a rule given twice the later rank counts",
    operation="bpe_encode",
    story="A dictionary of ranks keeps the last entry; a library in wide use does so.",
    made_for="bpe_refuses_a_rule_twice",
    stays_green="bpe_by_rank",
    unguarded=True,
)
def _(text, merges):
    last = {tuple(pair): i for i, pair in enumerate(merges)}
    return bpe_encode(text, sorted(last, key=lambda pair: last[pair]))


@tokens.fault(
    "bpe_decodes_each_token",
    "every token is read as UTF-8 by itself",
    operation="bpe_decode",
    story="Streaming token by token: half a character becomes a question mark.",
    made_for="bpe_of_bytes",
    stays_green="bpe_loses_nothing",
)
def _(tokens):
    return "".join(
        t.decode("utf-8", "replace") if isinstance(t, bytes) else t for t in tokens
    )


@tokens.fault(
    "bpe_learns_rules_twice",
    "training goes on when there is no pair, with the last rule again",
    operation="bpe_train",
    story="A vocabulary of the size that was ordered, with entries nobody can reach.",
    made_for="bpe_learns_until_one_token",
    stays_green="bpe_learns_the_most_frequent",
)
def _(text, n_merges):
    found = bpe_train(text, n_merges)
    return found + found[-1:] * (n_merges - len(found))


def _train(text, n_merges, choose):
    found, merges = _pieces(text), []
    for _ in range(n_merges):
        pairs = list(zip(found, found[1:], strict=False))
        if not pairs:
            break
        merges.append(choose(pairs))
        found = _merged(found, merges[-1])
    return merges


@tokens.fault(
    "bpe_learns_the_last_of_equals",
    "of equally frequent pairs the last in the text is learnt",
    operation="bpe_train",
    story="A tie decided by the order of a dictionary, which another language has not.",
    made_for="bpe_learns_ties_in_order",
    stays_green="bpe_learns_the_most_frequent",
)
def _(text, n_merges):
    return _train(text, n_merges, lambda pairs: max(pairs[::-1], key=pairs.count))


@tokens.fault(
    "bpe_learns_the_first_pair",
    "the first pair of the text is learnt, however rare it is",
    operation="bpe_train",
    story="A maximum over the pairs instead of over their counts.",
    made_for="bpe_learns_the_most_frequent",
    stays_green="bpe_by_rank",
)
def _(text, n_merges):
    return _train(text, n_merges, lambda pairs: pairs[0])
