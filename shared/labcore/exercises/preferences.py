"""Exercises on preferences."""

from __future__ import annotations

import numpy as np

from .. import lab
from ..examples import EXAMPLES
from ..identities import FAULTS
from ..ops.gradients import ppo_clip_gradient
from ..ops.losses import dpo_loss, dpo_margin, ppo_clip, sequence_logprob
from . import exercise


@exercise(
    "preferences/fall",
    hint="The margin is the difference of the two falls, times beta in the loss.",
    because="Both fell, the chosen one less: the margin is positive, and the loss "
    "below that of an untrained policy.",
    lost={"chosen": 0.4, "rejected": 1.4},
    its_beta=0.5,
)
def _(lost: dict[str, float], its_beta: float) -> float:
    before = np.array([-5.0]), np.array([-6.0])
    after = before[0] - lost["chosen"], before[1] - lost["rejected"]
    return float(dpo_loss(*after, *before, beta=its_beta)[0])


@exercise(
    "preferences/length",
    hint="Sum over the tokens of each response, then take the difference.",
    because="A tie token by token, and the sum of the longer response wins.",
    gain=0.1,
    tokens={"chosen": 10, "rejected": 40},
)
def _(gain: float, tokens: dict[str, int]) -> float:
    before = [np.full((1, n), -1.0) for n in tokens.values()]
    after = [x + gain for x in before]
    logs = [sequence_logprob(x) for x in (*after, *before)]
    return round(float(dpo_margin(*logs)[0]), 12)


@exercise(
    "preferences/wrong_way",
    hint="Take both products and the smaller of them. Which of the two is it?",
    because="A bad action made likelier is never clipped: the slope is still there.",
    bad={"ratio": 3.0, "advantage": -1.0, "eps": 0.2},
)
def _(bad: dict[str, float]) -> list[float]:
    r, A, eps = [bad["ratio"]], [bad["advantage"]], bad["eps"]
    slope = ppo_clip_gradient(r, A, eps=eps)
    return [float(ppo_clip(r, A, eps=eps)[0]), float(slope[0])]


@exercise(
    "preferences/blind",
    hint="Run EXAMPLES['F19'].output() with each wrong version in place; compare.",
    because="beta is 1, the rejected ratio is 1, and no number is large.",
)
def _() -> set[str]:
    right = EXAMPLES["F19"].output()
    unseen = set()
    for fault in FAULTS.values():
        if fault.operation in ("dpo_margin", "dpo_loss"):
            with lab.broken(fault.id):
                got = EXAMPLES["F19"].output()
            if all(np.isclose(got[key], right[key]) for key in right):
                unseen.add(fault.id)
    return unseen
