"""Sampling and search: the worked examples of the chapter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities.worked import sampling
from ..ops.sampling import beam_search, top_k, top_p
from ..ops.softmax import softmax, temperature_softmax
from ..ops.speculative import (
    speculative_acceptance,
    speculative_distribution,
    speculative_residual,
)
from ._plain import plain, whole
from ._registry import example

CHAPTER = sampling.slug
THREE: dict[str, Any] = {"logits": [2, 1, 0], "shift": 1000, "hot": 2, "cold": 0.5}


def three_scores(logits: Any, shift: float, hot: float, cold: float) -> Any:
    """Softmax of a few logits; moved, and at two temperatures."""
    return {
        "logits": logits,
        "p": plain(softmax(logits)),
        "shifted_p": plain(softmax([x + shift for x in logits])),
        "temperature2": plain(temperature_softmax(logits, hot)),
        "temperature05": plain(temperature_softmax(logits, cold)),
    }


example(
    "F09",
    "Three scores become probabilities",
    title_zh="三个打分怎样变成概率",
    chapter=CHAPTER,
    givens=THREE,
    units="probabilities",
)(three_scores)
example(
    "Q007",
    "Softmax does not notice a shift, so that large scores are safe",
    title_zh="整体平移不改变softmax，大分数也安全",
    chapter=CHAPTER,
    givens=THREE,
    units="probabilities",
    same_as="F09",
)(three_scores)
example(
    "Q014",
    "Temperature sharpens or flattens the same scores",
    title_zh="温度让同一组打分变尖或变平",
    chapter=CHAPTER,
    givens=THREE,
    units="probabilities",
    same_as="F09",
)(three_scores)


@example(
    "Q031",
    "A rejected draft is redrawn so that the target's law is kept",
    title_zh="草稿被拒后如何重抽，才保住目标分布",
    chapter=CHAPTER,
    givens={"target": [0.6, 0.3, 0.1], "draft": [0.2, 0.5, 0.3]},
    units="probabilities",
)
def _(target: Any, draft: Any) -> Any:
    accepted = speculative_acceptance(target, draft)
    return {
        "target": target,
        "draft": draft,
        "accept_prob": whole(accepted / draft),
        "accepted_mass": plain(accepted),
        "rejection_mass": plain(1 - accepted.sum()),
        "residual_distribution": plain(speculative_residual(target, draft)),
        "final_mass": plain(speculative_distribution(target, draft)),
    }


@example(
    "S05",
    "Two ways to cut the tail of a distribution",
    chapter=CHAPTER,
    givens={"p": [0.5, 0.3, 0.15, 0.05], "k": 2, "mass": 0.9},
    units="probabilities",
)
def _(p: Any, k: int, mass: float) -> Any:
    few, nucleus = top_k(p, k), top_p(p, mass)
    return {
        "p": p,
        "top2": plain(few[few > 0]),
        "top_p_09": plain(nucleus[nucleus > 0]),
    }


@example(
    "X03",
    "The best first step is not on the way to the best sequence",
    title_zh="第一步选最大，整句未必最大",
    chapter=CHAPTER,
    givens={
        "first_probabilities": {"A": 0.6, "B": 0.4},
        "A_next": {"E": 0.51, "F": 0.49},
        "B_next": {"D": 0.99, "F": 0.01},
    },
    units="probabilities of sequences of two tokens",
)
def _(first_probabilities: Any, A_next: Any, B_next: Any) -> Any:
    law = {"": first_probabilities, "A": A_next, "B": B_next}
    names = list(dict.fromkeys(name for part in law.values() for name in part))

    def next_logprobs(so_far: tuple[int, ...]) -> Any:
        steps = law["".join(names[t] for t in so_far)]
        with np.errstate(divide="ignore"):
            return np.log([steps.get(name, 0.0) for name in names])

    found = beam_search(next_logprobs, length=2, beam=len(names) ** 2)
    joint = {
        "".join(names[t] for t in h.tokens): float(np.exp(h.logprob)) for h in found
    }
    return {
        "first_probabilities": first_probabilities,
        "A_next": A_next,
        "B_next": B_next,
        "joint": dict(sorted(joint.items())),
    }


NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_softmax_invalid"): (
        "softmax_refuses_nan",
        "softmax_refuses_infinity",
        "softmax_refuses_empty_rows",
    ),
    ("engine", "test_softmax_stability"): ("softmax_near_1000", "softmax_sums_to_one"),
    ("engine", "test_speculative_distribution"): (
        "speculative_worked",
        "speculative_distribution",
    ),
    ("additional_checks", "test_nucleus_boundary"): ("top_p_keeps_the_crossing_token",),
    ("additional_checks", "test_spec_bad_resampling_changes_distribution"): (
        "speculative_distribution",
    ),
    ("chain_and_operators", "test_PAD_not_implicitly_generated"): (
        "padding_is_never_drawn",
    ),
    ("chain_and_operators", "test_beam_joint_counterexample"): (
        "beam_finds_what_greedy_misses",
    ),
}
