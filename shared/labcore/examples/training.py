"""Losses, gradients and optimizers: the worked examples of the chapter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities.worked import training
from ..ops.attention import attention, attention_weights
from ..ops.gradients import (
    attention_gradients,
    cross_entropy_gradient,
    embedding_gradient,
    finite_difference,
    squared_error_gradient,
)
from ..ops.layers import linear
from ..ops.losses import (
    IGNORE,
    cross_entropy,
    squared_error,
    surprisal,
    token_losses,
)
from ..ops.optim import accumulate_gradients, adamw_step, lora_update, sgd_step
from ._plain import plain, whole
from ._registry import example

CHAPTER = training.slug
READ = {
    "Q": [[0.4, -0.2]],
    "K": [[1.0, 0.5], [-0.5, 1.0]],
    "V": [[2.0, -1.0], [0.5, 3.0]],
    "upstream": [[0.7, -0.3]],
}


@example(
    "F17",
    "One weight, one example, one step of gradient descent",
    chapter=CHAPTER,
    givens={"x": 2, "target": 6, "w": 1, "learning_rate": 0.1},
    units="none",
)
def _(x: Any, target: Any, w: Any, learning_rate: float) -> Any:
    y = linear([x], [[w]])
    gradient = squared_error_gradient(y, [target]) * x
    after = sgd_step([w], gradient, lr=learning_rate)
    then = squared_error(linear([x], [after]), [target])
    return {
        "x": x,
        "target": target,
        "w_before": w,
        "loss_before": whole(squared_error(y, [target])[0]),
        "gradient": whole(gradient[0]),
        "learning_rate": learning_rate,
        "w_after": plain(after[0]),
        "loss_after": plain(then[0]),
    }


@example(
    "F18",
    "What three targets cost, and one step that makes the first cost less",
    title_zh="三个目标各付出多少损失，走一步又少多少",
    chapter=CHAPTER,
    givens={"target_ps": [0.8, 0.5, 0.25], "logits": [0, 0], "learning_rate": 0.1},
    units="nats",
)
def _(target_ps: Any, logits: Any, learning_rate: float) -> Any:
    scores = np.log([[p, 1 - p] for p in target_ps])
    first = [0] * len(target_ps)
    gradient = cross_entropy_gradient([logits], [0])
    updated = sgd_step([logits], gradient, lr=learning_rate)
    return {
        "target_ps": target_ps,
        "losses": plain(token_losses(scores, first)),
        "mean": plain(cross_entropy(scores, first)),
        "logits": logits,
        "gradient": plain(gradient[0]),
        "updated_logits": plain(updated[0]),
        "new_loss": plain(cross_entropy(updated, [0])),
    }


@example(
    "Q012",
    "The gradient of attention by formula, held against small changes",
    title_zh="注意力的梯度：公式与微小扰动对照",
    chapter=CHAPTER,
    givens={**READ, "h": 1e-6},
    units="of the loss for one unit of each entry",
)
def _(Q: Any, K: Any, V: Any, upstream: Any, h: float) -> Any:
    exact = attention_gradients(Q, K, V, upstream)
    loss = [
        lambda q: (attention(q, K, V) * upstream).sum(),
        lambda k: (attention(Q, k, V) * upstream).sum(),
        lambda v: (attention(Q, K, v) * upstream).sum(),
    ]
    apart = [
        np.abs(finite_difference(f, x, h=h) - g).ravel()
        for f, x, g in zip(loss, (Q, K, V), exact[:3], strict=True)
    ]
    return {
        "Q": Q,
        "K": K,
        "V": V,
        "upstream": upstream,
        "P": plain(attention_weights(Q, K)),
        "O": plain(attention(Q, K, V)),
        "dP": plain(exact.dweights),
        "dS": plain(exact.dscores),
        "dQ": plain(exact.dq),
        "dK": plain(exact.dk),
        "dV": plain(exact.dv),
        "max_error": float(np.max(np.concatenate(apart))),
        "coordinates_checked": sum(part.size for part in apart),
    }


@example(
    "Q018",
    "The first step of AdamW, mean by mean",
    title_zh="AdamW第一步：两个均值、修正与衰减",
    chapter=CHAPTER,
    givens={
        "w": 1.0,
        "gradient": 0.2,
        "lr": 0.1,
        "beta1": 0.9,
        "beta2": 0.999,
        "eps": 1e-8,
        "weight_decay": 0.01,
    },
    units="none",
)
def _(w: float, gradient: float, **options: float) -> Any:
    step = adamw_step(w, gradient, 0.0, 0.0, 1, **options)
    return {
        "w": w,
        "gradient": gradient,
        "m": step.m,
        "v": step.v,
        "m_hat": step.m_hat,
        "v_hat": step.v_hat,
        "after_decay": step.decayed,
        "new_w": step.w,
    }


@example(
    "R15-01",
    "Two thin matrices make a matrix of rank one",
    chapter=CHAPTER,
    givens={"A": [[1], [2]], "B": [[0.1, 0.2]]},
    units="none",
)
def _(A: Any, B: Any) -> Any:
    return {"A": A, "B": B, "AB": plain(lora_update(A, B))}


@example(
    "R16-01",
    "The chain rule on a square",
    chapter=CHAPTER,
    givens={"w": 1, "x": 2, "target": 10},
    units="none",
)
def _(w: Any, x: Any, target: Any) -> Any:
    y = linear([x], [[w]])
    outer = squared_error_gradient(y, [target])
    return {
        "w": w,
        "z": whole(y[0] - target),
        "loss": whole(squared_error(y, [target])[0]),
        "dz_dw": x,
        "dL_dz": whole(outer[0]),
        "dL_dw": whole(outer[0] * x),
    }


@example(
    "R16-05",
    "The same surprise in nats and in bits",
    chapter=CHAPTER,
    givens={"p": 0.5, "base": 2.0},
    units="nats and bits",
)
def _(p: float, base: float) -> Any:
    return {
        "negative_log_natural": float(surprisal(p)),
        "negative_log_base2": float(surprisal(p, base=base)),
    }


@example(
    "S01",
    "A token that occurs twice gets both gradients in its one row",
    chapter=CHAPTER,
    givens={
        "row": [0.8, 0.6],
        "gradient_occurrences": [[0.1, -0.2], [0.3, 0.4]],
        "learning_rate": 0.1,
    },
    units="none",
)
def _(row: Any, gradient_occurrences: Any, learning_rate: float) -> Any:
    ids = [0] * len(gradient_occurrences)
    gradient = embedding_gradient(ids, gradient_occurrences, vocabulary=1)
    return {
        "gradient_occurrences": gradient_occurrences,
        "row_gradient": plain(gradient[0]),
        "new_row": plain(sgd_step([row], gradient, lr=learning_rate)[0]),
    }


@example(
    "S03",
    "Gradients of equal micro-batches: their sum, and their mean",
    chapter=CHAPTER,
    givens={"microbatch_gradients": [1, 2, 3, 4]},
    units="of the gradient of one micro-batch",
)
def _(microbatch_gradients: Any) -> Any:
    equal = [1] * len(microbatch_gradients)
    return {
        "microbatch_gradients": microbatch_gradients,
        "unscaled_sum": sum(microbatch_gradients),
        "correct_equal_size_mean": accumulate_gradients(microbatch_gradients, equal),
    }


@example(
    "S31",
    "The slope of attention along one direction of its query",
    title_zh="沿查询的一个方向，注意力的斜率",
    chapter=CHAPTER,
    givens={**READ, "direction": [1, -2]},
    units="of the loss for one length of the direction",
)
def _(Q: Any, K: Any, V: Any, upstream: Any, direction: Any) -> Any:
    slope = attention_gradients(Q, K, V, upstream).dq[0] @ direction
    return {"direction": direction, "directional_derivative": plain(slope)}


@example(
    "X12",
    "Padding leaves the sum, and it leaves the denominator too",
    title_zh="补位既不进总和，也不进分母",
    chapter=CHAPTER,
    givens={"valid_target_probabilities": [0.8, 0.5, 0.25], "padding": 1},
    units="nats",
)
def _(valid_target_probabilities: Any, padding: int) -> Any:
    chances = [*valid_target_probabilities, *[0.5] * padding]
    scores = np.log([[p, 1 - p] for p in chances])
    targets = [0] * len(valid_target_probabilities) + [IGNORE] * padding
    total = token_losses(scores, targets).sum()
    return {
        "valid_target_probabilities": valid_target_probabilities,
        "valid_count": len(valid_target_probabilities),
        "padded_count": len(targets),
        "sum_NLL": plain(total),
        "correct_mean": plain(cross_entropy(scores, targets)),
        "wrong_divide4": plain(total / len(targets)),
    }


NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_adamw"): ("adamw_first_step",),
    ("engine", "test_ce_update"): ("sgd_lowers_cross_entropy",),
    ("engine", "test_gradient_finite_difference"): (
        "attention_gradient_by_difference",
    ),
    ("engine", "test_gradient_shift_sum"): (
        "attention_gradient_of_scores_sums_to_zero",
    ),
    ("engine", "test_lora_rank1"): ("lora_rank_one",),
    ("additional_checks", "test_contrastive_loss"): ("contrastive_worked",),
    ("additional_checks", "test_grad_direction_finite_difference"): (
        "attention_slope_along_a_direction",
    ),
    ("additional_checks", "test_gradient_accumulation_equal_batches"): (
        "accumulate_worked",
        "accumulate_equal_batches",
    ),
    ("additional_checks", "test_gradient_accumulation_unequal_batches"): (
        "accumulate_is_no_mean_of_means",
        "accumulate_any_partition",
    ),
    ("additional_checks", "test_gradient_shared_embedding"): (
        "embedding_gradient_adds_occurrences",
    ),
    ("additional_checks", "test_large_step_can_increase_loss"): (
        "sgd_large_step_loses",
    ),
    ("additional_checks", "test_lora_large_count"): ("lora_large_count",),
    ("additional_checks", "test_lora_small_count_not_saved"): (
        "lora_small_count_saves_nothing",
    ),
    ("additional_checks", "test_natural_log_units"): ("surprisal_units",),
    ("additional_checks", "test_single_parameter_sgd"): ("sgd_worked",),
    ("chain_and_operators", "test_loss_denominator"): (
        "cross_entropy_worked",
        "cross_entropy_ignores_padding",
    ),
    ("chain_and_operators", "test_retrieval_q_gradient_fd"): (
        "contrastive_gradient_of_a_query",
    ),
    ("chain_and_operators", "test_zero_state_accounting"): ("zero_state_accounting",),
}
