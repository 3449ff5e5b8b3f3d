"""Fewer bits and less memory: the worked examples on quantization and online sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..identities.worked import serving
from ..ops.compress import dequantize, quantize_symmetric
from ..ops.layers import linear
from ..ops.online import finish, online_trace
from ._plain import plain, whole
from ._registry import example

CHAPTER = serving.slug


@example(
    "Q027",
    "Two scores read one after the other, the table never stored",
    title_zh="分数逐个读入，不存整张表也得同样结果",
    chapter=CHAPTER,
    givens={"scores": [1, 3], "values": [2, 10]},
    units="scores in nats; sums relative to the largest score so far",
)
def _(scores: Any, values: Any) -> Any:
    trace = online_trace([[s] for s in scores], [[[v]] for v in values])
    maxima = [-np.inf, *(float(now.maximum) for now in trace)]
    return [
        {
            "score": score,
            "value": value,
            "max": whole(now.maximum),
            "old_scale": float(np.exp(before - now.maximum)),
            "sum": plain(now.mass),
            "weighted_sum": plain(now.weighted[0]),
            "output": plain(finish(now)[0]),
        }
        for score, value, before, now in zip(
            scores, values, maxima[:-1], trace, strict=True
        )
    ]


@example(
    "S23",
    "Equal errors in two weights, unequal errors in the output",
    chapter=CHAPTER,
    givens={"weight_errors": [0.01, 0.01], "activations": [100, 0.1]},
    units="of the output",
)
def _(weight_errors: Any, activations: Any) -> Any:
    errors = linear(activations, np.diag(weight_errors))
    return {
        "weight_errors": weight_errors,
        "activations": activations,
        "output_errors": whole(errors),
        "ratio": whole(errors[0] / errors[1]),
    }


@example(
    "X10",
    "Quantizing rounds, and it also cuts off",
    title_zh="量化既舍入，也会截断",
    chapter=CHAPTER,
    givens={
        "scale": 0.1,
        "integer_min": -2,
        "integer_max": 2,
        "input": [-0.24, 0.03, 0.26],
    },
    units="codes in steps of the scale",
)
def _(scale: float, integer_min: int, integer_max: int, input: Any) -> Any:
    codes = quantize_symmetric(input, scale, qmin=integer_min, qmax=integer_max)
    return {
        "scale": scale,
        "integer_min": integer_min,
        "integer_max": integer_max,
        "input": input,
        "integer_codes": plain(codes),
        "reconstructed": whole(dequantize(codes, scale)),
    }


NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_online_equals_full"): ("online_softmax",),
    ("engine", "test_quantization"): ("quantize_to_the_nearest",),
    ("additional_checks", "test_activation_sensitive_error"): (
        "quantize_error_meets_activation",
    ),
    ("chain_and_operators", "test_quant_clipping"): ("quantize_clips",),
}
