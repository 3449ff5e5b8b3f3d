"""Preferences: the worked examples of the chapter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities.worked import preferences
from ..ops.losses import dpo_loss, dpo_margin, kl, ppo_clip
from ._plain import plain, whole
from ._registry import example

CHAPTER = preferences.slug
PAIR: dict[str, Any] = {
    "pi_preferred": 0.6,
    "pi_rejected": 0.2,
    "ref_preferred": 0.3,
    "ref_rejected": 0.2,
    "beta": 1.0,
    "p": [0.8, 0.2],
    "q": [0.5, 0.5],
}


def one_pair(beta: float, p: Any, q: Any, **chances: float) -> Any:
    """A pair of responses under a policy and its reference; two laws beside it."""
    logs = [float(np.log(chance)) for chance in chances.values()]
    return {
        **chances,
        "beta": beta,
        "margin": plain(dpo_margin(*logs)),
        "loss": plain(dpo_loss(*logs, beta=beta)),
        "baseline_loss": plain(dpo_loss(*logs[2:], *logs[2:], beta=beta)),
        "kl": plain(kl(p, q)),
    }


example(
    "F19",
    "What DPO compares: two ratios of probabilities",
    title_zh="DPO比较的是哪两个比值",
    chapter=CHAPTER,
    givens=PAIR,
    units="probabilities; margin, losses and divergence in nats",
)(one_pair)
example(
    "Q021",
    "One pair of responses, seen by DPO",
    title_zh="一对回答在DPO眼里的信号",
    chapter=CHAPTER,
    givens=PAIR,
    units="probabilities; margin, losses and divergence in nats",
    same_as="F19",
)(one_pair)


def _clipped(r: float, A: float, eps: float) -> Any:
    return {
        "r": r,
        "A": A,
        "raw": whole(r * A),
        "clipped": float(np.clip(r, 1 - eps, 1 + eps)) * A,
        "objective": plain(ppo_clip([r], [A], eps=eps)[0]),
    }


@example(
    "S04",
    "The clipped objective for a good and for a bad action",
    chapter=CHAPTER,
    givens={"good": {"r": 1.5, "A": 2}, "bad": {"r": 0.5, "A": -2}, "eps": 0.2},
    units="of the advantage",
)
def _(good: Any, bad: Any, eps: float) -> Any:
    return {
        "positive_advantage": _clipped(**good, eps=eps),
        "negative_advantage": _clipped(**bad, eps=eps),
    }


@example(
    "X04",
    "Two laws, two divergences: the order of the arguments matters",
    title_zh="两个分布交换次序，散度就变",
    chapter=CHAPTER,
    givens={"p": [0.8, 0.2], "q": [0.5, 0.5]},
    units="nats",
)
def _(p: Any, q: Any) -> Any:
    return {
        "p": p,
        "q": q,
        "KL_p_q": plain(kl(p, q)),
        "KL_q_p": plain(kl(q, p)),
    }


NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_dpo_margin"): ("dpo_worked",),
    ("additional_checks", "test_ppo_sign_sensitive"): (
        "ppo_paying_corners",
        "ppo_worked",
    ),
    ("chain_and_operators", "test_KL_asymmetry"): ("kl_asymmetry", "kl_worked"),
}
