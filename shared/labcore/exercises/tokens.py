"""Exercises on tokens, shapes and a decoder by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from ..examples import EXAMPLES
from ..identities import FAULTS
from ..lab import broken
from ..ops.compress import bpe_encode
from ..ops.decoder_trace import DecoderTrace, decoder_trace
from ..ops.layers import embedding
from . import exercise


@exercise(
    "tokens/merges",
    hint="Each time, take the rule that comes first in the list, wherever it applies.",
    because="e d merges first and takes the second e away; so h e applies to the first "
    "h alone.",
    text="hehed",
    rules=[("e", "d"), ("h", "e"), ("h", "ed")],
)
def _(text: str, rules: list[tuple[str, str]]) -> str:
    return " ".join(bpe_encode(text, rules))


@exercise(
    "tokens/same_token",
    hint="The same row makes the same key, wherever it stands. What are the scores?",
    because="Equal keys have equal scores: without positions nothing tells them apart.",
    ids=[2, 2, 2],
)
def _(ids: list[int]) -> list[float]:
    return [float(w) for w in _x01(ids).weights[0, -1]]


@exercise(
    "tokens/orders",
    hint="The last token asks, the others are read in any order. What can be last?",
    because="Only the token that stands last makes a difference.",
    tokens=[1, 2, 3, 2],
)
def _(tokens: list[int]) -> int:
    rows = {tuple(_x01(ids).logits[-1].round(9)) for ids in permutations(tokens)}
    return len(rows)


@exercise(
    "tokens/blind",
    hint="Run the example inside lab.broken for each fault, and compare.",
    because="Three letters and one merge: no overlap, no rule that becomes possible, "
    "no second merge.",
)
def _() -> set[str]:
    right, blind = EXAMPLES["X11"].output(), set()
    for fault in FAULTS.values():
        if fault.operation == "bpe_encode":
            try:
                with broken(fault.id):
                    same = EXAMPLES["X11"].output() == right
            except KeyError:  # a token without an id
                same = False
            if same:
                blind.add(fault.id)
    return blind


def _x01(ids: Sequence[int]) -> DecoderTrace:
    """The layer of X01 over other texts."""
    given: Any = EXAMPLES["X01"].givens
    matrices = {name: given[name] for name in ("Wq", "Wk", "Wv", "W_down")}
    same = np.eye(len(given["table"][0]))
    weights = {"W_gate": same, "W_up": same, "unembed": np.transpose(given["table"])}
    x = embedding(given["table"], np.asarray(ids))
    return decoder_trace({**weights, **matrices}, x, heads=given["heads"])
