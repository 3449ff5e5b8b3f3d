"""The formulas of preferences."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..ops.losses import (
    contrastive_loss,
    dpo_loss,
    dpo_margin,
    kl,
    ppo_clip,
    sequence_logprob,
)
from ..ops.softmax import softmax
from ._formula import Inputs, formula

CHAPTER = "preferences"
LAWS = {
    "policy_w": r"\pi(y_w)",
    "policy_l": r"\pi(y_l)",
    "ref_w": r"\pi_{\mathrm{ref}}(y_w)",
    "ref_l": r"\pi_{\mathrm{ref}}(y_l)",
    "ref_y": r"\pi_{\mathrm{ref}}(y)",
    "r_y": "r(y)",
    "r_w": "r(y_w)",
    "r_l": "r(y_l)",
    "best": r"\pi^*",
    "best_y": r"\pi^*(y)",
    "ref": r"\pi_{\mathrm{ref}}",
    "earned": r"\mathbb{E}_\pi\, r",
    "response": r"\log \pi(y)",
    "sigmoid()": r"\sigma(#1)",
    "token()": r"\pi(y_#1 \mid x, y_{<#1})",
    "clip()": r"\mathrm{clip}(#1, #2, #3)",
    "KL()": r"\mathrm{KL}(#1 \,\|\, #2)",
}


def a_response(rng: np.random.Generator) -> Inputs:
    """The probability of each token, and which of them are the response."""
    chances = rng.uniform(0.1, 0.9, size=6)
    return {
        "chances": chances,
        "m": np.array([0, 0, 1, 1, 1, 0]),
        "token": lambda t: chances[t],
    }


def a_pair(rng: np.random.Generator) -> Inputs:
    """Probabilities of both responses under both laws; beta is not 1."""
    drawn: Inputs = {
        name: rng.uniform(0.05, 0.9)
        for name in ("policy_w", "policy_l", "ref_w", "ref_l")
    }
    s = np.log([drawn["policy_w"] / drawn["ref_w"], drawn["policy_l"] / drawn["ref_l"]])
    drawn |= {"s": s, "h": s[0] - s[1], "beta": rng.uniform(0.2, 0.7), "w": 0}
    return drawn | {"L": dpo_loss(**_logs(**drawn), beta=drawn["beta"])}


def rewarded(rng: np.random.Generator) -> Inputs:
    """Two laws over answers, what each answer earns, and the best law."""
    pi, ref = rng.dirichlet(np.full(4, 3.0), size=2)
    reward, beta = rng.normal(size=4), rng.uniform(0.3, 0.8)
    tilted = ref * np.exp(reward / beta)
    best = tilted / tilted.sum()
    return {
        "pi": pi,
        "ref": ref,
        "reward": reward,
        "beta": beta,
        "Z": tilted.sum(),
        "best": best,
        "earned": (pi * reward).sum(),
        "ref_y": ref[2],
        "r_y": reward[2],
        "r_w": reward[0],
        "r_l": reward[1],
        "h": np.log(best[0] / ref[0]) - np.log(best[1] / ref[1]),
    }


def actions(rng: np.random.Generator) -> Inputs:
    """Ratios below, inside and above the range, for good and for bad actions."""
    rho = np.array([0.3, 0.6, 0.95, 1.05, 1.4, 1.9] * 2)
    good = rng.uniform(0.5, 2.0, size=6)
    return {"rho": rho, "A": np.concatenate([good, -good]), "epsilon": 0.2}


def _logs(
    policy_w: Any, policy_l: Any, ref_w: Any, ref_l: Any, **_: Any
) -> dict[str, Any]:
    return {
        "policy_chosen": np.log(policy_w),
        "policy_rejected": np.log(policy_l),
        "ref_chosen": np.log(ref_w),
        "ref_rejected": np.log(ref_l),
    }


def _divergence(p: Any, q: Any) -> Any:
    return (p * (np.log(p) - np.log(q))).sum()


formula(
    "response_logprob",
    "sum(m[t] * log(token(t)) for t in range(len(m)))",
    defines="response",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=a_response,
    function=lambda chances, m: sequence_logprob(np.log(chances), mask=m),
    operations=("sequence_logprob",),
    checks=("sequence_logprob_of_the_response", "dpo_sums_tokens"),
)
formula(
    "dpo_margin",
    "log(policy_w / ref_w) - log(policy_l / ref_l)",
    defines="h",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=a_pair,
    function=lambda policy_w, policy_l, ref_w, ref_l: dpo_margin(
        **_logs(policy_w, policy_l, ref_w, ref_l)
    ),
    operations=("dpo_margin",),
    checks=("dpo_worked", "dpo_prompt_cancels"),
)
formula(
    "dpo_loss",
    "-log(sigmoid(beta * h))",
    defines="L",
    symbols=LAWS,
    functions={"sigmoid": lambda x: 1 / (1 + np.exp(-x))},
    chapter=CHAPTER,
    draw=a_pair,
    function=lambda policy_w, policy_l, ref_w, ref_l, beta: dpo_loss(
        **_logs(policy_w, policy_l, ref_w, ref_l), beta=beta
    ),
    operations=("dpo_loss",),
    checks=("dpo_by_hand", "dpo_at_the_reference"),
)
formula(
    "kl_penalty_best",
    "ref_y * exp(r_y / beta) / Z",
    defines="best_y",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=rewarded,
    function=lambda ref, reward, beta: softmax(np.log(ref) + reward / beta)[2],
    operations=("softmax",),
    checks=("softmax_log_odds",),
)
formula(
    "kl_penalty",
    "earned - beta * KL(pi, ref)",
    defines="J",
    symbols=LAWS,
    functions={"KL": _divergence},
    chapter=CHAPTER,
    draw=rewarded,
    function=lambda pi, ref, earned, beta: earned - beta * kl(pi, ref),
    operations=("kl",),
    checks=("kl_penalty_gap",),
)
formula(
    "kl_penalty_gap",
    "beta * log(Z) - beta * KL(pi, best)",
    defines="J",
    symbols=LAWS,
    functions={"KL": _divergence},
    chapter=CHAPTER,
    draw=rewarded,
    function=lambda pi, ref, earned, beta: earned - beta * kl(pi, ref),
    operations=("kl",),
    checks=("kl_penalty_gap",),
)
formula(
    "dpo_margin_is_the_reward",
    "beta * h",
    "r_w - r_l",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=rewarded,
    function=lambda best, ref, beta: beta * dpo_margin(**_logs(*best[:2], *ref[:2])),
    operations=("dpo_margin",),
    checks=("dpo_margin_is_the_reward",),
)
formula(
    "ppo_clip",
    "min(rho * A, clip(rho, 1 - epsilon, 1 + epsilon) * A)",
    symbols=LAWS,
    functions={"min": np.minimum, "clip": np.clip},
    chapter=CHAPTER,
    draw=actions,
    function=lambda rho, A, epsilon: ppo_clip(rho, A, eps=epsilon),
    operations=("ppo_clip",),
    checks=("ppo_by_cases", "ppo_worked"),
)
formula(
    "dpo_is_a_choice_of_two",
    "L",
    "-log(softmax(beta * s)[w])",
    symbols=LAWS,
    chapter=CHAPTER,
    draw=a_pair,
    function=lambda s, beta: contrastive_loss(s[None], tau=1 / beta),
    operations=("dpo_loss", "contrastive_loss"),
    checks=("dpo_is_a_choice_of_two", "contrastive_worked"),
)
