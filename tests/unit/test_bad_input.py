"""Every operation refuses what it cannot answer, by the name of the argument."""

from __future__ import annotations

import copy
import re
from typing import Any

import labcore
import numpy as np
import pytest
from labcore import KernelState, KVCache, SoftmaxSummary

from tests.data import worked_calls
from tests.data.calls import operations

NAN, INF = float("nan"), float("inf")
ONE = [[1.0]]
TWO = [[1.0], [2.0]]
THREE = [[1.0], [2.0], [3.0]]
WIDE = [[1.0, 2.0]]
HALVES = [0.5, 0.5]
BATCH_2, BATCH_3 = np.ones((2, 1, 1)), np.ones((3, 1, 1))
CACHE = KVCache(np.ones((2, 1)), np.ones((2, 1)))
SUMMARY = SoftmaxSummary(np.array(1.0), np.array(1.0), np.array([1.0]))
EMPTY = SoftmaxSummary(np.array(-INF), np.array(0.0), np.array([0.0]))
STATE = KernelState(np.ones((1, 1)), np.ones(1))
LATENT = {name: ONE for name in "q_nope q_rope c_kv k_rope w_uk w_uv".split()}
BOTH = [[False, True], [True, True]]  # nothing is left of the first row, if causal
ROUND = ([HALVES, HALVES], [HALVES], [0], [0.5, 0.5])

CERTAIN = [[1.0, 0.0], [0.0, 1.0]]
READ = dict(n_keys=9, n_heads=4, d_nope=3, d_rope=2, d_v=5, kv_rank=6)

Wrong = tuple[str, tuple[Any, ...], dict[str, Any]]


def bad(name: str, *args: Any, **kwargs: Any) -> Wrong:
    """A wrong call, and the name of the argument that its refusal must give."""
    return name, args, kwargs


def scores_of(first: str) -> list[Wrong]:
    """What is wrong with a row that softmax is taken of."""
    return [
        bad(first, [0.0, NAN]),
        bad(first, [-INF, NAN]),
        bad(first, [0.0, INF]),
        bad(first, []),
        bad(first, [[1.0], [-INF]]),
        bad(first, np.zeros((2, 0))),
        bad(first, 3.0),
        bad(first, ["a", "b"]),
        bad(first, [[1.0], [1.0, 2.0]]),
        bad(first, None),
    ]


def queries_of(*rest: Any, **options: Any) -> list[Wrong]:
    """What is wrong with queries and keys (and values, if there are any)."""
    wrong = [
        bad("q", [[NAN]], ONE, *rest),
        bad("q", [[INF]], ONE, *rest),
        bad("k", ONE, [[NAN]], *rest),
        bad("k", ONE, [[-INF]], *rest),
        bad("q", [1.0], ONE, *rest),
        bad("k", ONE, [1.0], *rest),
        bad("k", ONE, WIDE, *rest),
        bad("scale", ONE, ONE, *rest, scale=0.0),
        bad("scale", ONE, ONE, *rest, scale=-1.0),
        bad("scale", ONE, ONE, *rest, scale=NAN),
        bad("scale", ONE, ONE, *rest, scale=INF),
        bad("k", BATCH_2, BATCH_3, *rest),
    ]
    return [(name, args, {**options, **more}) for name, args, more in wrong]


def values_of(**options: Any) -> list[Wrong]:
    wrong = [
        bad("v", ONE, ONE, [[NAN]]),
        bad("v", ONE, ONE, [[INF]]),
        bad("v", ONE, ONE, [1.0]),
        bad("v", ONE, ONE, TWO),
        bad("v", ONE, BATCH_2, BATCH_3),
    ]
    return [(name, args, {**options, **more}) for name, args, more in wrong]


def masks_of(*rest: Any, **options: Any) -> list[Wrong]:
    q, k = ONE, TWO
    wrong = [
        bad("allowed", q, k, *rest, allowed=[[True, False], [True, True]]),
        bad("allowed", q, k, *rest, allowed=[[True], [True]]),
        bad("allowed", q, k, *rest, allowed=[True, True, True]),
        bad("allowed", q, k, *rest, allowed=[[False, False]]),
        bad("allowed", q, k, *rest, allowed=[[1, 0]]),
        bad("allowed", q, k, *rest, allowed=[[0.0, -INF]]),
    ]
    return [(name, args, {**options, **more}) for name, args, more in wrong]


def chunks_of(*args: Any, **options: Any) -> list[Wrong]:
    return [
        bad("chunk", *args, chunk=chunk, **options) for chunk in (0, -1, 1.0, True, NAN)
    ]


def laws_of() -> list[Wrong]:
    """What is wrong with two laws of one vocabulary."""
    wrong = [
        [0.5, 0.4],
        [1.5, -0.5],
        [NAN, 1.0],
        [INF, 0.0],
        [],
        0.5,
        [0.5, 0.5 + 1e-6],
    ]
    return [
        *(bad("p", law, HALVES) for law in wrong),
        *(bad("q", HALVES, law) for law in wrong),
        bad("q", HALVES, [0.5, 0.25, 0.25]),
        bad("q", np.full((2, 2), 0.5), np.full((3, 2), 0.5)),
    ]


def features_of(**options: Any) -> list[Wrong]:
    wrong = [
        bad("fq", [[NAN]], ONE, ONE),
        bad("fk", ONE, [[INF]], ONE),
        bad("v", ONE, ONE, [[NAN]]),
        bad("fq", [[-1.0]], ONE, ONE),
        bad("fk", ONE, [[-1.0]], ONE),
        bad("fq", [[0.0]], ONE, ONE),
        bad("fq", TWO, [[0.0], [1.0]], TWO),
        bad("fk", ONE, WIDE, ONE),
        bad("v", ONE, ONE, TWO),
        bad("fq", TWO, ONE, ONE),
        bad("fq", [1.0], ONE, ONE),
        bad("v", ONE, ONE, [1.0]),
        bad("v", ONE, BATCH_2, BATCH_3),
    ]
    return [(name, args, {**options, **more}) for name, args, more in wrong]


def states_of(**options: Any) -> list[Wrong]:
    states = [
        KernelState(np.ones((2, 1)), np.ones(1)),
        KernelState(np.ones((1, 2)), np.ones(1)),
        KernelState(np.array([[NAN]]), np.ones(1)),
        KernelState(np.ones((1, 1)), np.array([-1.0])),
        KernelState(np.ones((1, 1)), np.array([NAN])),
    ]
    return [bad("initial", ONE, ONE, ONE, initial=state, **options) for state in states]


def writes_of(*gate: Any) -> list[Wrong]:
    vector = [1.0]
    return [
        bad("beta", ONE, vector, vector, 2.5, *gate),
        bad("beta", ONE, vector, vector, -0.1, *gate),
        bad("beta", ONE, vector, vector, NAN, *gate),
        bad("S", [[NAN]], vector, vector, 1.0, *gate),
        bad("S", [1.0], vector, vector, 1.0, *gate),
        bad("k", ONE, [INF], vector, 1.0, *gate),
        bad("k", ONE, 1.0, vector, 1.0, *gate),
        bad("v", ONE, vector, [NAN], 1.0, *gate),
        bad("k", ONE, [1.0, 0.0], vector, 1.0, *gate),
        bad("v", ONE, vector, [1.0, 0.0], 1.0, *gate),
        bad("beta", ONE, vector, vector, [1.0, 3.0], *gate),
        bad("beta", np.ones((3, 1, 1)), vector, vector, [1.0, 1.0], *gate),
    ]


def sequences_of(**options: Any) -> list[Wrong]:
    wrong = [
        bad("beta", ONE, ONE, ONE, [2.5]),
        bad("beta", ONE, ONE, ONE, [NAN]),
        bad("beta", ONE, ONE, ONE, 1.0),
        bad("beta", ONE, ONE, ONE, [1.0, 1.0]),
        bad("q", [[NAN]], ONE, ONE, [1.0]),
        bad("k", ONE, [[NAN]], ONE, [1.0]),
        bad("v", ONE, ONE, [[INF]], [1.0]),
        bad("q", WIDE, ONE, ONE, [1.0]),
        bad("q", TWO, ONE, ONE, [1.0]),
        bad("v", ONE, ONE, TWO, [1.0]),
        bad("k", ONE, [1.0], ONE, [1.0]),
        bad("retention", ONE, ONE, ONE, [1.0], retention=[1.5]),
        bad("retention", ONE, ONE, ONE, [1.0], retention=[-0.5]),
        bad("retention", ONE, ONE, ONE, [1.0], retention=[NAN]),
        bad("retention", ONE, ONE, ONE, [1.0], retention=[1.0, 1.0]),
        bad("retention", ONE, ONE, ONE, [1.0], retention=0.5),
        bad("initial", ONE, ONE, ONE, [1.0], initial=[[NAN]]),
        bad("initial", ONE, ONE, ONE, [1.0], initial=WIDE),
    ]
    return [(name, args, {**options, **more}) for name, args, more in wrong]


def latents() -> list[Wrong]:
    wrong = {
        "q_nope": ([[NAN]], [1.0], WIDE),
        "q_rope": ([[INF]], [1.0], WIDE),
        "c_kv": ([[NAN]], [1.0], WIDE, np.zeros((0, 1))),
        "k_rope": ([[NAN]], [1.0], WIDE, TWO),
        "w_uk": ([[NAN]], [1.0], WIDE),
        "w_uv": ([[NAN]], [1.0], WIDE),
    }
    calls = [
        bad(name, **{**LATENT, name: value})
        for name, values in wrong.items()
        for value in values
    ]
    masks = ([[False]], [[1]], [[True, True]], [True, True])
    return calls + [bad("allowed", **LATENT, allowed=mask) for mask in masks]


def distances_of(*rest: Any) -> list[Wrong]:
    nothing = np.zeros((0, 1))
    return [
        bad("q", [[NAN]], ONE, *rest),
        bad("k", ONE, [[INF]], *rest),
        bad("q", [1.0], ONE, *rest),
        bad("k", ONE, [1.0], *rest),
        bad("k", ONE, WIDE, *rest),
        bad("q", nothing, ONE, *rest),
        bad("k", ONE, nothing, *(nothing if i == 0 else r for i, r in enumerate(rest))),
        bad("k", BATCH_2, BATCH_3, *rest),
    ]


def counts_of(names: str, right: dict[str, Any], zero: str = "") -> list[Wrong]:
    """Counts that are too small, or no integers; those in zero may be 0."""
    return [
        bad(name, **{**right, name: value})
        for name in names.split()
        for value in (-1, 1.5, True, *(() if name in zero.split() else (0,)))
    ]


TRACED = {name: ONE for name in "Wq Wk Wv W_gate W_up W_down unembed".split()}
FIRST = ([1.0], [1.0], [0.0], [0.0])  # weights and gradient before the first step


def of_two(so_far: tuple[int, ...]) -> np.ndarray:
    return np.log(HALVES)


def without(weights: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in weights.items() if key != name}


def search(**options: Any) -> list[Wrong]:
    wrong = [
        bad("next_logprobs", None, length=1),
        *(bad("length", of_two, length=n) for n in (0, -1, 1.0, True)),
        *(bad("end", of_two, length=1, end=n) for n in (-1, 1.0, True)),
    ]
    return [(name, args, {**more, **options}) for name, args, more in wrong]


def targets() -> list[Wrong]:
    return [
        *(bad("targets", [HALVES], t) for t in ([2], [-1], [0.0], [0, 1], 0)),
        bad("targets", [HALVES], [-100], ignore_index=5),
        *(bad("ignore_index", [HALVES], [0], ignore_index=i) for i in (0.5, True)),
        bad("logits", [[NAN, 0.0]], [0]),
        bad("logits", [[INF, 0.0]], [0]),
        bad("logits", [[-INF, -INF]], [0]),
        bad("logits", np.zeros((1, 0)), [0]),
        bad("logits", 1.0, 0),
    ]


def residuals() -> list[Wrong]:
    return [
        bad("prediction", [NAN], [1.0]),
        bad("target", [1.0], [INF]),
        bad("target", [1.0, 2.0], [1.0, 2.0, 3.0]),
    ]


def four_logs(**options: Any) -> list[Wrong]:
    names = ("policy_chosen", "policy_rejected", "ref_chosen", "ref_rejected")
    return [
        bad(name, **{**dict.fromkeys(names, [-1.0]), name: [value]}, **options)
        for name in names
        for value in (NAN, -INF, 0.5)
    ] + [bad("ref_rejected", *[[-1.0, -1.0]] * 3, [-1.0] * 3, **options)]


def betas() -> list[Wrong]:
    return [bad("beta", *[[-1.0]] * 4, beta=b) for b in (0.0, -1.0, NAN, INF)]


def ratios() -> list[Wrong]:
    return [
        *(bad("ratio", [r], [1.0]) for r in (-0.1, NAN, INF)),
        *(bad("advantage", [1.0], [a]) for a in (NAN, INF)),
        bad("advantage", [1.0, 1.0], [1.0, 1.0, 1.0]),
        *(bad("eps", [1.0], [1.0], eps=eps) for eps in (0.0, -0.1, NAN, INF)),
    ]


def pairs() -> list[Wrong]:
    return [
        *(bad("tau", ONE, tau=tau) for tau in (0.0, -1.0, NAN, INF)),
        *(bad("sim", sim, tau=1.0) for sim in ([[NAN]], [1.0], TWO)),
        bad("sim", np.zeros((0, 2)), tau=1.0),
    ]


BAD: dict[str, list[Wrong]] = {
    "softmax": [*scores_of("x"), bad("x", [1.0], axis=1), bad("x", [1.0], axis=-2)],
    "log_softmax": [*scores_of("x"), bad("x", [1.0], axis=1)],
    "logsumexp": [
        bad("x", [NAN]),
        bad("x", [INF]),
        bad("x", 3.0),
        bad("x", [1.0], axis=1),
        bad("x", ["a"]),
    ],
    "temperature_softmax": [
        *((name, (*args, 1.0), more) for name, args, more in scores_of("logits")),
        *(bad("t", [1.0], t) for t in (0.0, -1.0, NAN, INF)),
    ],
    "entropy": [
        bad("p", [0.5, 0.4]),
        bad("p", [1.5, -0.5]),
        bad("p", [NAN, 1.0]),
        bad("p", []),
        bad("p", 1.0),
    ],
    "causal_mask": [
        bad("offset", 2, 2, offset=-1),
        bad("offset", 2, 2, offset=1),
        bad("offset", 1, 3, offset=1),
        bad("offset", 3, 2),
        bad("offset", 1, 1, offset=0.0),
        bad("window", 2, 2, window=0),
        bad("window", 2, 2, window=1.5),
        bad("n_queries", -1, 2),
        bad("n_queries", 1.0, 2),
        bad("n_keys", 1, 2.0),
    ],
    "attention_weights": [
        *queries_of(),
        *masks_of(),
        bad("k", ONE, np.zeros((0, 1))),
    ],
    "attention": [
        *queries_of(ONE),
        *values_of(),
        *masks_of(TWO),
        bad("k", ONE, np.zeros((0, 1)), np.zeros((0, 1))),
        bad("v", ONE, TWO, [[3.0], [NAN]], allowed=[[True, False]]),
    ],
    "causal_attention": [*queries_of(ONE), *values_of(), bad("q", ONE, TWO, TWO)],
    "causal_attention_cached": [
        *queries_of(ONE),
        *values_of(),
        *chunks_of(ONE, ONE, ONE),
        bad("q", ONE, TWO, TWO),
    ],
    "kv_append": [
        bad("k", None, [[NAN]], ONE),
        bad("v", None, ONE, [[NAN]]),
        bad("v", None, ONE, TWO),
        bad("k", None, [1.0], ONE),
        bad("v", None, ONE, [1.0]),
        bad("k", CACHE, WIDE, ONE),
        bad("v", CACHE, ONE, WIDE),
        bad("cache", CACHE, BATCH_2, BATCH_2),
    ],
    "attention_from_cache": [
        bad("q", [[NAN]], CACHE),
        bad("q", [1.0], CACHE),
        bad("q", WIDE, CACHE),
        bad("offset", THREE, CACHE),
        bad("scale", ONE, CACHE, scale=0.0),
        bad("k", ONE, KVCache(np.array([[NAN]]), np.ones((1, 1)))),
        bad("v", ONE, KVCache(np.ones((1, 1)), np.array([[NAN]]))),
    ],
    "kv_head_of": [
        bad("n_query_heads", 6, 4),
        bad("n_query_heads", 2, 4),
        *counts_of("n_query_heads n_kv_heads", {"n_query_heads": 4, "n_kv_heads": 2}),
    ],
    "grouped_query_attention": [
        bad("q", ONE, [ONE], [ONE]),
        bad("k", [ONE], ONE, [ONE]),
        bad("n_query_heads", [ONE, ONE, ONE], [ONE, ONE], [ONE, ONE]),
        bad("v", [ONE, ONE], [ONE, ONE], [ONE]),
        bad("q", [ONE, [[NAN]]], [ONE], [ONE]),
        bad("k", [ONE, ONE], [ONE, [[NAN]]], [ONE, ONE]),
        bad("v", [ONE, ONE], [ONE, ONE], [ONE, [[NAN]]]),
        bad("k", [ONE], [WIDE], [ONE]),
        bad("scale", [ONE], [ONE], [ONE], scale=0.0),
        bad("allowed", [ONE], [TWO], [TWO], allowed=[[False, False]]),
        bad("allowed", [ONE], [TWO], [TWO], allowed=[[True], [True]]),
    ],
    "paged_positions": [
        bad("n_tokens", [0, 1], 5, block_size=2),
        bad("n_tokens", [0, 1], -1, block_size=2),
        bad("n_tokens", [0, 1], 1.0, block_size=2),
        bad("block_size", [0, 1], 1, block_size=0),
        bad("block_table", [0, 0], 1, block_size=2),
        bad("block_table", [-1], 1, block_size=2),
        bad("block_table", [0.5], 1, block_size=2),
        bad("block_table", [[0, 1]], 1, block_size=2),
    ],
    "summarize": [
        bad("scores", [NAN], ONE),
        bad("scores", [INF], ONE),
        bad("scores", [-INF, NAN], TWO),
        bad("scores", 1.0, ONE),
        bad("values", [1.0], [[NAN]]),
        bad("values", [-INF], [[NAN]]),
        bad("values", [1.0], [1.0]),
        bad("values", [1.0], TWO),
    ],
    "merge": [
        bad("a", (1.0, 1.0, [1.0]), SUMMARY),
        bad("b", SUMMARY, None),
        bad("a", SUMMARY._replace(maximum=np.array(NAN)), SUMMARY),
        bad("a", SUMMARY._replace(maximum=np.array(INF)), SUMMARY),
        bad("b", SUMMARY, SUMMARY._replace(mass=np.array(-1.0))),
        bad("b", SUMMARY, SUMMARY._replace(mass=np.array(NAN))),
        bad("b", SUMMARY, SUMMARY._replace(weighted=np.array([NAN]))),
        bad("b", SUMMARY, SUMMARY._replace(weighted=np.ones(2))),
    ],
    "finish": [
        bad("summary", EMPTY),
        bad("summary", (1.0, 1.0, [1.0])),
        bad("summary", SUMMARY._replace(mass=np.array(NAN))),
        bad("summary", SUMMARY._replace(weighted=np.array([INF]))),
    ],
    "online_trace": [
        bad("scores", [[NAN]], [ONE]),
        bad("scores", [[1.0], [INF]], [ONE, ONE]),
        bad("values", [[1.0]], [[[NAN]]]),
        bad("values", [[1.0, 2.0]], [ONE]),
        bad("value_chunks", [[1.0], [1.0]], [ONE]),
        bad("score_chunks", [], []),
    ],
    "online_softmax": [
        bad("scores", [[NAN]], [ONE]),
        bad("scores", [[1.0], [INF]], [ONE, ONE]),
        bad("values", [[1.0]], [[[NAN]]]),
        bad("values", [[1.0, 2.0]], [ONE]),
        bad("value_chunks", [[1.0], [1.0]], [ONE]),
        bad("score_chunks", [], []),
        bad("summary", [[-INF]], [ONE]),
        bad("summary", [[]], [np.zeros((0, 1))]),
    ],
    "blockwise_attention": [
        *queries_of(ONE, block=1),
        *values_of(block=1),
        *masks_of(TWO, block=1),
        *(bad("block", ONE, ONE, ONE, block=block) for block in (0, -1, 1.0, True)),
        bad("offset", ONE, TWO, TWO, block=1, offset=1),
        bad("offset", ONE, TWO, TWO, block=1, causal=True, offset=0),
        bad("offset", TWO, ONE, ONE, block=1, causal=True),
        bad("summary", TWO, TWO, TWO, block=1, causal=True, allowed=BOTH),
    ],
    "elu_plus_one": [bad("x", [NAN]), bad("x", [INF]), bad("x", ["a"])],
    "kernel_attention": [*features_of(), bad("fq", [[0.0]], ONE, ONE, causal=False)],
    "kernel_attention_recurrent": [*features_of(), *states_of()],
    "kernel_attention_chunked": [
        *features_of(chunk=1),
        *states_of(chunk=1),
        *chunks_of(ONE, ONE, ONE),
    ],
    "delta_write": writes_of(),
    "gated_write": [
        *writes_of(0.5),
        *(
            bad("retention", ONE, [1.0], [1.0], 1.0, gate)
            for gate in (-0.1, 1.1, NAN, [0.5, 0.5], [2.0])
        ),
    ],
    "delta_attention": sequences_of(),
    "delta_attention_chunked": [
        *sequences_of(chunk=1),
        *chunks_of(ONE, ONE, ONE, [1.0]),
    ],
    "rope_rotation": [bad("angle", NAN), bad("angle", INF)],
    "rope_frequencies": [
        *(bad("d", d) for d in (3, 0, -2, 2.0)),
        *(bad("base", 2, base) for base in (0.0, -1.0, NAN, INF)),
    ],
    "rope": [
        bad("x", [1.0, 2.0, 3.0], 1),
        bad("x", [], 1),
        bad("x", 1.0, 1),
        bad("x", [NAN, 1.0], 1),
        bad("positions", [1.0, 2.0], NAN),
        bad("positions", [1.0, 2.0], "1"),
        bad("positions", [1.0, 2.0], None),
        bad("positions", [1.0, 2.0], [1]),
        bad("positions", np.ones((2, 2)), [1, 2, 3]),
        *(bad("base", [1.0, 2.0], 1, base=base) for base in (0.0, -1.0, NAN)),
        bad("layout", [1.0, 2.0], 1, layout="other"),
    ],
    "rope_attention": [
        bad("q", [[NAN, 1.0]], WIDE, ONE, [0]),
        bad("k", WIDE, [[1.0, INF]], ONE, [0]),
        bad("v", WIDE, WIDE, [[NAN]], [0]),
        bad("x", ONE, ONE, ONE, [0]),
        bad("positions", WIDE, WIDE, ONE, [0, 1]),
        bad("positions", WIDE, WIDE, ONE, [NAN]),
        bad("q", WIDE, np.ones((2, 2)), TWO, [0]),
        bad("base", WIDE, WIDE, ONE, [0], base=0.0),
        bad("layout", WIDE, WIDE, ONE, [0], layout=""),
        bad("allowed", WIDE, WIDE, ONE, [0], allowed=[[False]]),
    ],
    "mla_explicit": latents(),
    "mla_absorbed": latents(),
    "mla_cache_elements": counts_of(
        "kv_rank d_rope layers", {"kv_rank": 4, "d_rope": 2, "layers": 1}, zero="d_rope"
    ),
    "speculative_acceptance": laws_of(),
    "speculative_residual": [*laws_of(), bad("p", HALVES, HALVES)],
    "speculative_distribution": laws_of(),
    "speculative_decode": [
        bad("p", [[0.5, 0.4], HALVES], *ROUND[1:]),
        bad("q", ROUND[0], [[0.5, 0.4]], *ROUND[2:]),
        bad("p", HALVES, *ROUND[1:]),
        bad("gamma", [HALVES], *ROUND[1:]),
        bad("q", ROUND[0], [[0.25, 0.25, 0.5]], *ROUND[2:]),
        bad("draft_tokens", *ROUND[:2], [0, 1], [0.5, 0.5]),
        bad("draft_tokens", *ROUND[:2], [2], [0.5, 0.5]),
        bad("draft_tokens", *ROUND[:2], [-1], [0.5, 0.5]),
        bad("draft_tokens", *ROUND[:2], [0.0], [0.5, 0.5]),
        bad("draft_tokens", ROUND[0], [[0.0, 1.0]], [0], [0.5, 0.5]),
        bad("uniforms", *ROUND[:3], []),
        bad("uniforms", *ROUND[:3], [0.5, 0.5, 0.5]),
        bad("uniforms", *ROUND[:3], [1.0, 0.5]),
        bad("uniforms", *ROUND[:3], [-0.1, 0.5]),
        bad("uniforms", *ROUND[:3], [NAN, 0.5]),
        bad("uniforms", *ROUND[:3], [0.5]),  # and two tokens to draw from
    ],
    "expected_tokens": [
        *(bad("alpha", alpha, 1) for alpha in (-0.1, 1.1, NAN)),
        *(bad("gamma", 0.5, gamma) for gamma in (-1, 1.5, True)),
    ],
    "mla_explicit_cache_elements": counts_of(
        "n_heads d_nope d_rope d_v layers",
        {"n_heads": 4, "d_nope": 3, "d_rope": 2, "d_v": 5, "layers": 1},
        zero="d_rope",
    ),
    "mla_multiplications": counts_of(
        "n_keys n_heads d_nope d_rope d_v kv_rank", READ, zero="d_rope"
    )
    + [bad("n_queries", **READ, n_queries=n) for n in (0, -1, 1.5, 10)],
    "speculative_block_law": [
        bad("p", [[0.5, 0.4], CERTAIN], [HALVES]),
        bad("q", [HALVES, CERTAIN], [[NAN, 1.0]]),
        bad("p", [HALVES], [HALVES]),
        bad("p", [HALVES, HALVES], [HALVES]),
        bad("q", [HALVES, CERTAIN], [[0.25, 0.25, 0.5]]),
        bad("p", [HALVES, np.full((3, 2), 0.5)], [HALVES]),
    ],
    "laplacian_distances": distances_of(),
    "median_sigma": distances_of(),
    "laplacian_attention": [
        *distances_of(ONE, 1.0),
        *(bad("sigma", ONE, ONE, ONE, s) for s in (0.0, -1.0, NAN, INF, [1.0], "1")),
        bad("v", ONE, ONE, [[NAN]], 1.0),
        bad("v", ONE, ONE, [1.0], 1.0),
        bad("v", ONE, ONE, TWO, 1.0),
    ],
    "laplacian_gradients": [
        *distances_of(ONE, 1.0, ONE),
        *(bad("sigma", ONE, ONE, ONE, s, ONE) for s in (0.0, -1.0, NAN, INF, [1.0])),
        bad("v", ONE, ONE, [[NAN]], 1.0, ONE),
        bad("v", ONE, ONE, TWO, 1.0, ONE),
        bad("grad", ONE, ONE, ONE, 1.0, [[NAN]]),
        bad("grad", ONE, ONE, ONE, 1.0, TWO),
        bad("grad", ONE, ONE, ONE, 1.0, BATCH_2),
    ],
    "operation_counts": counts_of(
        "n_queries n_keys channels batch",
        {"n_queries": 2, "n_keys": 3, "channels": 4, "batch": 1},
    ),
    "top_k": [
        *(bad("k", HALVES, k) for k in (0, 3, -1, 1.0, True)),
        bad("p", [0.5, 0.4], 1),
        bad("p", [NAN, 1.0], 1),
        bad("p", [1.5, -0.5], 1),
        bad("p", [], 1),
    ],
    "top_p": [
        *(bad("mass", HALVES, mass) for mass in (0.0, -0.1, 1.1, NAN)),
        *(bad("p", p, 0.5) for p in ([0.5, 0.4], [NAN, 1.0], [1.5, -0.5], [])),
    ],
    "forbid_tokens": [
        *(bad("tokens", [1.0, 2.0], t) for t in ([2], [-1], [0.0], [0, 1])),
        bad("logits", [NAN, 1.0], [0]),
        bad("tokens", [-INF, 1.0], [1]),
    ],
    "greedy": search(),
    "beam_search": [
        *search(beam=2),
        *(bad("beam", of_two, length=1, beam=beam) for beam in (0, -1, 1.0, True)),
        *(bad("alpha", of_two, length=1, beam=1, alpha=a) for a in (NAN, INF)),
    ],
    "length_score": [
        bad("logprob", [0.5], [1.0], alpha=1.0),
        bad("logprob", [NAN], [1.0], alpha=1.0),
        bad("length", [-1.0], [0.0], alpha=1.0),
        bad("length", [-1.0, -1.0], [1.0, 1.0, 1.0], alpha=1.0),
        bad("alpha", [-1.0], [1.0], alpha=NAN),
    ],
    "embedding": [
        *(bad("ids", TWO, ids) for ids in ([-1], [2], [0.0], [True], ["a"])),
        bad("table", [[NAN]], [0]),
        bad("table", [1.0], [0]),
    ],
    "linear": [
        bad("x", [NAN], ONE),
        bad("W", [1.0], [[INF]]),
        bad("W", [1.0], WIDE[0]),
        bad("W", [1.0], TWO),
        bad("bias", [1.0], ONE, bias=[1.0, 2.0]),
        bad("bias", [1.0], ONE, bias=[NAN]),
    ],
    "patchify": [
        bad("image", np.zeros((1, 5, 4)), patch=2),
        bad("image", np.zeros((1, 4, 5)), patch=2),
        bad("image", np.zeros((1, 0, 4)), patch=2),
        bad("image", np.zeros((4, 4)), patch=2),
        bad("image", np.full((1, 2, 2), NAN), patch=2),
        *(bad("patch", np.zeros((1, 4, 4)), patch=n) for n in (0, -2, 2.0, True)),
    ],
    "decoder_trace": [
        *(bad(name, {**TRACED, name: [[NAN]]}, ONE) for name in TRACED),
        *(bad(name, without(TRACED, name), ONE) for name in ("Wq", "unembed")),
        bad("weights", without(TRACED, "W_up"), ONE),
        bad("Wv", {**TRACED, "Wv": WIDE}, ONE),
        bad("Wk", {**TRACED, "Wk": WIDE}, ONE),
        bad("unembed", {**TRACED, "unembed": TWO}, ONE),
        bad("W_down", {**TRACED, "W_down": WIDE}, ONE),
        bad("W_gate", {**TRACED, "W_gate": WIDE}, ONE),
        bad("x", TRACED, [[INF]]),
        bad("x", TRACED, [1.0]),
        *(bad("heads", TRACED, ONE, heads=n) for n in (0, 2, 1.0)),
        *(bad("eps", TRACED, ONE, eps=eps) for eps in (0.0, -1.0, NAN)),
        bad("k", TRACED, ONE, cache=KVCache(np.ones((1, 2)), np.ones((1, 1)))),
    ],
    "token_losses": targets(),
    "cross_entropy": [*targets(), bad("targets", [HALVES], [-100])],
    "cross_entropy_gradient": [*targets(), bad("targets", [HALVES], [-100])],
    "surprisal": [
        *(bad("p", [p]) for p in (-0.1, 1.1, NAN)),
        *(bad("base", [0.5], base=base) for base in (0.0, 1.0, -2.0, INF)),
    ],
    "squared_error": residuals(),
    "squared_error_gradient": residuals(),
    "kl": laws_of(),
    "sequence_logprob": [
        bad("logprobs", [NAN]),
        bad("logprobs", [0.5]),
        bad("logprobs", -1.0),
        bad("mask", [-1.0], mask=[2]),
        bad("mask", [-1.0], mask=[1, 1]),
        bad("mask", [-1.0], mask=[0.5]),
    ],
    "dpo_margin": four_logs(),
    "dpo_loss": [*four_logs(beta=0.1), *betas()],
    "dpo_gradient": [*four_logs(beta=0.1), *betas()],
    "ppo_clip": ratios(),
    "ppo_clip_gradient": ratios(),
    "contrastive_loss": pairs(),
    "contrastive_gradient": pairs(),
    "attention_gradients": [
        *queries_of(ONE, ONE)[:-1],
        *((name, (*args, ONE), more) for name, args, more in values_of()[:3]),
        *masks_of(TWO, ONE)[2:],
        bad("grad", ONE, ONE, ONE, [[NAN]]),
        bad("grad", ONE, ONE, ONE, WIDE),
        bad("grad", ONE, ONE, ONE, TWO),
        bad("v", BATCH_2, BATCH_2, ONE, BATCH_2),
        bad("k", BATCH_2, ONE, BATCH_2, BATCH_2),
    ],
    "embedding_gradient": [
        *(bad("ids", ids, ONE, vocabulary=2) for ids in ([-1], [2], [0.0], [0, 1])),
        bad("grad", [0], [[NAN]], vocabulary=2),
        bad("grad", [], 1.0, vocabulary=2),
        *(bad("vocabulary", [0], ONE, vocabulary=n) for n in (0, -1, 1.0, True)),
    ],
    "sgd_step": [
        bad("w", [NAN], [1.0], lr=0.1),
        bad("gradient", [1.0], [INF], lr=0.1),
        bad("gradient", [1.0], [1.0, 1.0], lr=0.1),
        *(bad("lr", [1.0], [1.0], lr=lr) for lr in (-0.1, NAN, INF)),
    ],
    "adamw_step": [
        *(bad("step", *FIRST, t) for t in (0, -1, 1.0, True)),
        bad("w", [NAN], [1.0], [0.0], [0.0], 1),
        bad("gradient", [1.0], [NAN], [0.0], [0.0], 1),
        bad("gradient", [1.0], [1.0, 2.0], [0.0], [0.0], 1),
        bad("m", [1.0], [1.0], [NAN], [0.0], 1),
        bad("m", [1.0], [1.0], [0.0, 0.0], [0.0], 1),
        bad("v", [1.0], [1.0], [0.0], [-1.0], 1),
        bad("v", [1.0], [1.0], [0.0], [0.0, 0.0], 1),
        *(bad("lr", *FIRST, 1, lr=lr) for lr in (-0.1, NAN, INF)),
        *(bad("beta1", *FIRST, 1, beta1=b) for b in (-0.1, 1.0, NAN)),
        *(bad("beta2", *FIRST, 1, beta2=b) for b in (-0.1, 1.0, NAN)),
        *(bad("eps", *FIRST, 1, eps=eps) for eps in (-1.0, NAN, INF)),
        *(bad("weight_decay", *FIRST, 1, weight_decay=w) for w in (-1.0, NAN, INF)),
        bad("eps", [1.0], [0.0], [0.0], [0.0], 1, eps=0.0),
    ],
    "accumulate_gradients": [
        bad("counts", [[1.0]], [0]),
        bad("counts", [[1.0]], [1, 1]),
        *(bad("counts", [[1.0], [1.0]], [1, n]) for n in (-1, 1.0, True)),
        bad("gradients", [[1.0], [NAN]], [1, 0]),
        bad("gradients", [[1.0], [1.0, 2.0]], [1, 1]),
        bad("gradients", 1.0, [1]),
    ],
    "lora_update": [
        bad("B", WIDE, ONE),
        bad("B", np.zeros((1, 0)), np.zeros((0, 1))),
        bad("A", ONE, [1.0]),
        bad("A", ONE, [[NAN]]),
        bad("B", [[INF]], ONE),
        bad("B", BATCH_2, BATCH_3),
        bad("alpha", ONE, ONE, alpha=NAN),
    ],
    "lora_parameters": counts_of(
        "d_in d_out rank matrices", {"d_in": 4, "d_out": 3, "rank": 2, "matrices": 1}
    ),
    "zero_bytes_per_device": [
        *counts_of(
            "params devices stage", {"params": 10, "devices": 2, "stage": 1}, "stage"
        ),
        bad("stage", 10, devices=2, stage=4),
        *(
            bad(f"{part}_bytes", 10, devices=2, stage=1, **{f"{part}_bytes": size})
            for part in ("weight", "gradient", "optimizer")
            for size in (-1.0, NAN, INF)
        ),
    ],
    "absmax_scale": [
        bad("x", [NAN]),
        bad("x", []),
        bad("x", [1.0], axis=1),
        *(bad("qmax", [1.0], qmax=n) for n in (0, -1, 1.0, True)),
    ],
    "quantize_symmetric": [
        bad("x", [NAN], 1.0),
        bad("x", [INF], 1.0),
        *(bad("scale", [1.0], s) for s in (0.0, -1.0, NAN, INF, [0.0])),
        bad("scale", [1.0, 2.0], [1.0, 1.0, 1.0]),
        *(bad("qmax", [1.0], 1.0, qmax=n) for n in (0, -1, 1.0, True)),
        *(bad("qmin", [1.0], 1.0, qmin=n) for n in (1, -1.0, True)),
    ],
    "dequantize": [
        bad("codes", [0.5], 1.0),
        bad("codes", [NAN], 1.0),
        *(bad("scale", [1], s) for s in (0.0, -1.0, NAN)),
        bad("scale", [1, 2], [1.0, 1.0, 1.0]),
    ],
    "tensor_bytes": [
        *(bad("shape", (2, n), 8) for n in (-1, 1.0, True)),
        *(bad("bits", (2, 3), n) for n in (0, -1, 8.0, True)),
    ],
    "bpe_encode": [
        *(bad("text", text, []) for text in (1, None, ["a"])),
        bad("merges", "abc", [("a", "b"), ("a", "b")]),
        bad("merges", "abc", [("a",)]),
        bad("merges", "abc", ["abc"]),
        bad("merges", "abc", [("a", "")]),
        bad("merges", "abc", [(b"a", b"b")]),
        bad("merges", b"abc", [("a", "b")]),
    ],
    "bpe_train": [
        bad("text", 1, 1),
        *(bad("n_merges", "abc", n) for n in (-1, 1.0, True)),
    ],
    "bpe_decode": [bad("tokens", ["a", b"b"]), bad("tokens", [1])],
}

BAD |= worked_calls.BAD

CALLS = [
    pytest.param(operation, *wrong, id=f"{operation} {wrong[0]} {i}")
    for operation, calls in BAD.items()
    for i, wrong in enumerate(calls)
]


@pytest.mark.parametrize("operation, name, args, kwargs", CALLS)
def test_a_wrong_call_is_refused_by_name_and_changes_nothing(
    operation, name, args, kwargs
):
    before = copy.deepcopy((args, kwargs))
    with pytest.raises(ValueError) as refusal:
        getattr(labcore, operation)(*args, **kwargs)
    assert re.search(rf"(?<![a-z_]){name}(?![a-z_])", str(refusal.value))
    assert repr((args, kwargs)) == repr(before)


def test_no_operation_of_a_complete_topic_is_missing():
    assert operations() - set(BAD) == set(), "write its wrong calls into BAD"
    assert set(BAD) <= set(labcore.ops._op.OPS)


def test_every_parameter_is_once_wrong():
    """Except those that cannot be: flags, and what another parameter speaks for."""
    import inspect

    free = {
        ("kernel_attention", "causal"),
        ("blockwise_attention", "causal"),
        ("causal_mask", "n_keys"),
        *worked_calls.FREE,
    }
    spoken_for = {
        ("softmax", "axis"): "x",
        ("log_softmax", "axis"): "x",
        ("logsumexp", "axis"): "x",
        ("attention_from_cache", "cache"): "k",
        ("grouped_query_attention", "q"): "q",
        ("decoder_trace", "cache"): "k",
        ("absmax_scale", "axis"): "x",
        ("speculative_decode", "p"): "p",
    }
    silent = []
    for operation, calls in BAD.items():
        named = {name for name, _, _ in calls}
        for parameter in inspect.signature(labcore.ops._op.OPS[operation]).parameters:
            key = (operation, parameter)
            if key not in free and spoken_for.get(key, parameter) not in named:
                silent.append(key)
    assert silent == []


@pytest.mark.parametrize(
    "call, neutral",
    [
        (lambda: labcore.logsumexp([]), -INF),
        (lambda: labcore.logsumexp([-INF, -INF]), -INF),
        (lambda: labcore.merge(EMPTY, EMPTY).mass, 0.0),
        (lambda: labcore.merge(EMPTY, EMPTY).maximum, -INF),
        (lambda: labcore.summarize([], np.zeros((0, 1))).mass, 0.0),
        (lambda: labcore.summarize([-INF], ONE).maximum, -INF),
        (lambda: labcore.expected_tokens(0.5, 0), 1.0),
        (lambda: len(labcore.paged_positions([], 0, block_size=2)), 0),
    ],
)
def test_what_is_neutral_is_no_error(call, neutral):
    assert call() == neutral
