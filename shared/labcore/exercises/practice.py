"""Exercises on types, tests of gradients, and cost."""

from __future__ import annotations

import numpy as np

from ..formulas import FORMULAS
from ..identities import recorded
from ..ops.gradients import finite_difference
from ..ops.layers import relu
from ..ops.online import SoftmaxSummary, merge
from ..ops.speculative import expected_tokens
from . import exercise

SIGNIFICANDS = {11: np.float16, 24: np.float32}  # bits of a significand -> its type
SPACING = 2.0**-7  # of bfloat16 at one


@exercise(
    "practice/stall",
    hint="Where is one key half of the distance to the next number of the type?",
    because="From 2 to the power {significand} on numbers of the type are two apart: "
    "one more is rounded to the even neighbour, which is where it came from.",
    significand=24,
)
def _(significand: int) -> float:
    one = np.ones((), SIGNIFICANDS[significand])
    key = read = SoftmaxSummary(0 * one, one, one[None])
    while merge(read, key).mass > read.mass:
        read = merge(read, read)  # every whole number up to there is in the type
    return float(read.mass)


@exercise(
    "practice/drowned",
    hint="The matrix has the gaps: recorded()['faults'][name]['red']['mla_masked'].",
    because="Each of them moves the scores by a factor near one or a small term, and "
    "their errors are smaller than the floor {floor}.",
    tells=lambda spacings: {"floor": spacings * SPACING},
    spacings=4,
)
def _(spacings: int) -> set[str]:
    floor = spacings * SPACING
    found = {f: row["red"] for f, row in recorded()["faults"].items()}
    return {f for f, red in found.items() if (red.get("mla_masked") or floor) < floor}


@exercise(
    "practice/cube",
    hint="Cube {above} and {below}. Their difference is divided by twice the step.",
    because="The slope is {slope}, and the error of a cube is h squared, exactly.",
    tells=lambda t, h: {"above": t + h, "below": t - h, "slope": 3 * t**2},
    t=2.0,
    h=0.5,
)
def _(t: float, h: float) -> float:
    return float(finite_difference(lambda x: float(x) ** 3, np.array(t), h=h))


@exercise(
    "practice/cut",
    hint="One of the two places lies below zero and gives zero.",
    because="{height} over {width}. The slope there is 1, and no slope is {answer}.",
    tells=lambda x, h: {"height": x + h, "width": 2 * h},
    x=0.1,
    h=0.4,
)
def _(x: float, h: float) -> float:
    return float(finite_difference(lambda t: float(relu(t)), np.array(x), h=h))


@exercise(
    "practice/rows",
    hint="Which of them leave dscores as it is, or only move it within a row?",
    because="A factor, a mask and the values come in behind the gradient of the "
    "scores, or leave its sums alone.",
)
def _() -> set[str]:
    return _green("attention_gradients", "attention_gradient_of_scores_sums_to_zero")


def _green(operation: str, check: str) -> set[str]:
    """The faults of an operation that leave a check green."""
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == operation and check in row["green"]
    }


@exercise(
    "practice/crossing",
    hint="All pairs take n (d_k + d_v) for a token, the recurrence 2 d_k d_v + d_k.",
    because="At equal widths the crossing lies half a token behind the width.",
    width=128,
)
def _(width: int) -> int:
    direct, recurrent = (
        FORMULAS[f"multiplications_{form}"] for form in ("direct", "recurrent")
    )
    sizes = {"d_k": width, "d_v": width}
    once = recurrent.value(recurrent.sides[0], sizes)
    n = 1
    while direct.value(direct.sides[0], {**sizes, "n": n}) <= once:
        n += 1
    return n


@exercise(
    "practice/draft",
    hint="Compute (1 + c gamma) / (1 + alpha + ... + alpha**gamma) for small gamma.",
    because="Drafted token {answer} is kept with probability {kept} and still pays; "
    "one more, kept with {next}, does not.",
    tells=lambda cost, alpha: {
        "kept": alpha ** best_length(cost, alpha),
        "next": alpha ** (best_length(cost, alpha) + 1),
    },
    cost=0.1,
    alpha=0.5,
)
def _(cost: float, alpha: float) -> int:
    return best_length(cost, alpha)


def best_length(cost: float, alpha: float) -> int:
    """How many tokens to draft, so that a kept one takes the fewest passes."""
    return min(
        range(20), key=lambda gamma: (1 + cost * gamma) / expected_tokens(alpha, gamma)
    )


@exercise(
    "practice/bound",
    hint="The verdict compares one time with another. What can be wrong behind it?",
    because="The verdict is right in both, and the time is not.",
)
def _() -> set[str]:
    return _green("roofline", "roofline_names_the_bound")
