"""Exercises on losses, gradients and optimizers."""

from __future__ import annotations

import numpy as np

from ..identities import FAULTS, recorded
from ..ops.optim import accumulate_gradients
from . import exercise


@exercise(
    "training/two_batches",
    hint="Turn each mean back into a sum, add the sums, and divide once.",
    because="Each token counts once. In the mean of the means the few would draw like "
    "the many.",
    full_mean=1.0,
    full_tokens=6,
    short_mean=5.0,
    short_tokens=2,
)
def _(
    full_mean: float, full_tokens: int, short_mean: float, short_tokens: int
) -> float:
    sums = [np.array([full_tokens * full_mean]), np.array([short_tokens * short_mean])]
    return float(accumulate_gradients(sums, [full_tokens, short_tokens])[0])


@exercise(
    "training/untouched",
    hint="The gradient is decay times the weight, and a first step only sees its sign.",
    because="It moves by the whole rate, however small the decay is. AdamW only takes "
    "the share rate times decay.",
    start=1.0,
    rate=0.1,
    decay=0.01,
)
def _(start: float, rate: float, decay: float) -> float:
    step = FAULTS["adamw_l2_in_the_gradient"].by
    zero = np.zeros(1)
    options = {"lr": rate, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8}
    done = step(np.array([start]), zero, zero, zero, 1, weight_decay=decay, **options)
    return float(done.w[0])


@exercise(
    "training/blind",
    hint="What can a formula get wrong that is multiplied by zero decay, or by no eps?",
    because="Both checks run at decay zero and eps zero, where neither can be seen.",
)
def _() -> set[str]:
    blind = ("adamw_first_step_is_the_sign", "adamw_forgets_scale")
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] == "adamw_step"
        and all(check in row["green"] for check in blind)
    }
