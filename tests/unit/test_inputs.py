"""The adapter reads every key of an input or refuses it, and takes its other forms."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

from tests.data.inputs import REMARKS
from tests.data.operations import RUN
from tests.unit.test_cases import ANSWERED, CASES, near

INF = float("inf")
ONE_EACH = list({case["operation"]: case for case in ANSWERED}.values())
ROWS = {"q": [[1.0, 0.0], [0.0, 1.0]], "k": [[1.0, 2.0], [0.0, 1.0]]}
VALUES = {"v": [[1.0, 2.0, 3.0], [4.0, 5.0, 7.0]]}


def by_operation(case: dict[str, Any]) -> str:
    return case["operation"]


def by_id(case: dict[str, Any]) -> str:
    return case["id"]


# ---- Every key ----------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_a_key_that_nobody_reads_is_refused(case):
    with pytest.raises(ValueError, match="has no input 'sclae'"):
        RUN[case["operation"]]({**case["input"], "sclae": 2.0})


@pytest.mark.parametrize("case", ONE_EACH, ids=by_operation)
def test_a_misspelt_key_is_refused_with_the_right_one(case):
    key = list(case["input"])[0]
    misspelt = {**case["input"], key + "z": case["input"][key]}
    with pytest.raises(ValueError, match=f"has no input '{key}z'"):
        RUN[case["operation"]](misspelt)


@pytest.mark.parametrize("case", ONE_EACH, ids=by_operation)
def test_remarks_and_nulls_change_nothing(case):
    more = dict.fromkeys(REMARKS, "not a number") | case["input"]
    got = RUN[case["operation"]](more)
    assert near(got, case["expected"], **case["tolerance"])


@pytest.mark.parametrize(
    "operation, needs",
    [
        ("softmax", "x"),
        ("attention", "q"),
        ("kl", "p"),
        ("rope", "d"),
        ("deltanet", "k"),
        ("zero_memory", "params"),
        ("sse", "chunks_hex"),
    ],
)
def test_a_key_that_is_missing_is_asked_for(operation, needs):
    with pytest.raises(ValueError, match=f"{operation} needs '{needs}'"):
        RUN[operation]({})


@pytest.mark.parametrize(
    "operation, given",
    [
        ("online_softmax_merge", {"chunks": [{"score": [1.0], "values": [[1.0]]}]}),
        ("online_softmax_merge", {"states": [{"lse": 0.0, "outs": [1.0]}]}),
        ("gated_deltanet", {"steps": [{"k": [1.0], "v": [1.0], "alhpa": 0.5}]}),
        ("gradient_accumulation", {"microbatches": [{"loss_sums": 1.0, "tokens": 1}]}),
        ("beam_search", {"finished": [{"token": 1, "logprob": -1.0}], "alpha": 0.0}),
        ("bitemporal", {"rows": [{"value": "a", "valids": [0, 1], "tx": [0, 1]}]}),
        ("compare_and_swap", {"start": {"value": "a", "versions": 1}, "ops": []}),
    ],
)
def test_a_misspelt_key_inside_a_list_is_refused(operation, given):
    with pytest.raises(ValueError, match="has no input .*did you mean"):
        RUN[operation](given)


@pytest.mark.parametrize(
    "operation, given",
    [
        ("queueing", {"lambda": 1.0, "mu": 2.0, "model": "M/D/1"}),
        ("pass_at_k", {"n": 2, "c": 1, "k": 1, "form": "biased"}),
        ("contrastive", {"sim": [[1.0]], "tau": 1.0, "positives": "first"}),
        ("contrastive", {"sim": [[1.0]], "tau": 1.0, "direction": "diagonal"}),
        ("patch_embedding", {"image_chw": [[[1.0]]], "patch": 1, "layout": "last"}),
        ("zero_memory", {"params": 1, "gpus": 1, "unit": "KB"}),
        ("linear_attention", {"q": [], "k": [], "v": [], "feature": "tanh"}),
        ("activations", {"x": 1.0, "fn": "gelu"}),
        ("roofline", {"n": 2, "bytes_per_value": 2, "op": "C = A B"}),
        ("rope", {"x": [1.0, 2.0], "pos": 1, "layout": "other"}),
        ("speculative_decoding", {"p_target": [1.0], "q_draft": [1.0], "call": "x"}),
        ("precision_recall", {"retrieved": [1], "relevant": [1], "metric": "ndcg"}),
        ("attention", {**ROWS, **VALUES, "causal": False, "offset": 0}),
        ("kda", {"k": [1.0], "alpha": [0.5], "log_alpha": [0.0], "beta": 1.0}),
        ("softmax", {"x": [1.0], "t": 1.0, "T": 2.0}),
    ],
)
def test_a_choice_that_is_not_there_is_refused(operation, given):
    with pytest.raises(ValueError):
        RUN[operation](given)


# ---- Other forms of the same input --------------------------------------------------

SAME: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "softmax",
        {"x": [0.0, 1.0], "t": 2.0},
        {"logits": [0.0, 1.0], "temperature": 2.0},
    ),
    ("softmax", {"x": [0.0, 1.0]}, {"x": [0.0, 1.0], "axis": None, "t": None}),
    ("logsumexp", {"x": [[0.0, 1.0]], "axis": 1}, {"x": [[0.0, 1.0]], "dim": -1}),
    (
        "attention",
        {**ROWS, **VALUES, "causal": True},
        {**ROWS, **VALUES, "mask": [[True, False], [True, True]]},
    ),
    (
        "attention",
        {**ROWS, **VALUES, "causal": True, "scale": None, "mask": None},
        {**ROWS, **VALUES, "mask": [[0.0, -INF], [0.0, 0.0]]},
    ),
    (
        "deltanet",
        {"k": [0.6, 0.8], "v": [2.0, -1.0]},
        {"S0": np.zeros((2, 2)), "k": [0.6, 0.8], "v": [2.0, -1.0], "beta": 1.0},
    ),
    (
        "gated_deltanet",
        {"k": [0.6, 0.8], "v": [2.0], "alpha": 0.5, "S0": [[1.0], [2.0]]},
        {
            "k": [0.6, 0.8],
            "v": [2.0],
            "log_alpha": np.log(0.5),
            "state": [[1.0], [2.0]],
        },
    ),
    (
        "kda",
        {"q": ROWS["q"], "k": ROWS["q"], **VALUES, "alpha": 0.5, "beta": 0.5},
        {
            "q": ROWS["q"],
            "k": ROWS["q"],
            **VALUES,
            "alpha": [0.5, 0.5],
            "beta": [0.5, 0.5],
            "chunk": 2,
        },
    ),
    (
        "rope",
        {"x": [1.0, 2.0, 3.0, 4.0], "pos": 3, "layout": "half"},
        {"x": [1.0, 2.0, 3.0, 4.0], "position": 3, "layout": "neox", "theta": 1e4},
    ),
    ("rope", {"x": [[1.0, 2.0]] * 3, "pos": [0, 1, 2]}, {"x": [[1.0, 2.0]] * 3}),
    (
        "sampling",
        {"logits": [0.0, 1.0], "T": 2.0},
        {"logits": [0.0, 1.0], "temperature": 2.0},
    ),
    ("contrastive", {"sim": [[1.0]], "tau": 1.0}, {"sim": [[1.0]], "temperature": 1.0}),
    (
        "adamw",
        {"p0": 1.0, "grads": [0.5], "beta1": 0.8, "beta2": 0.9},
        {"w0": 1.0, "grad": 0.5, "betas": [0.8, 0.9]},
    ),
    (
        "gradient_accumulation",
        {"microbatches": [{"loss_sum": 6.0, "tokens": 3}]},
        {"microbatches": [{"loss_mean": 2.0, "tokens": 3}]},
    ),
    (
        "ppo_clip",
        {"ratio": [1.0], "advantage": [2.0]},
        {"logp_new": [-1.0], "logp_old": [-1.0], "advantage": [2.0], "epsilon": 0.2},
    ),
    (
        "swiglu",
        {"gate": [1.0], "up": [2.0]},
        {"x": [1.0], "W_gate": [[1]], "W_up": [[2]]},
    ),
    ("quantize_symmetric", {"x": [1.0], "qmax": 7}, {"x": [1.0], "bits": 4}),
    (
        "kv_cache_bytes",
        {"layers": 1, "kv_heads": 2, "head_dim": 4, "bytes": 2},
        {"n_layers": 1, "n_kv_heads": 2, "q_heads": 4, "hidden": 16, "dtype_bytes": 2},
    ),
    ("sse", {"chunks_hex": ["646174613a20610a0a"]}, {"chunks": ["data: a\n\n"]}),
    ("queueing", {"lambda": 8, "mu": 10}, {"arrival_rate": 8, "service_rate": 10}),
    ("train_flops", {"N": 10.0, "D": 20.0}, {"params": 10.0, "tokens": 20.0}),
]


@pytest.mark.parametrize("operation, one, other", SAME)
def test_two_ways_to_say_one_thing(operation, one, other):
    got, want = RUN[operation](one), RUN[operation](other)
    if isinstance(want, dict):
        want = {key: value for key, value in want.items() if key in got}
    assert near(got, want, rtol=1e-14, atol=1e-16)


def test_one_query_alone_is_the_row_of_many():
    many = RUN["attention"]({**ROWS, **VALUES})
    alone = RUN["attention"]({**ROWS, **VALUES, "q": ROWS["q"][0]})
    assert alone == {name: rows[0] for name, rows in many.items()}


def test_values_that_are_numbers_are_one_channel():
    one = RUN["attention"]({**ROWS, "v": [3.0, 5.0]})["out"]
    column = RUN["attention"]({**ROWS, "v": [[3.0], [5.0]]})["out"]
    assert one == [row[0] for row in column]


def test_a_batch_goes_through_the_adapters_of_attention():
    q, k, v = (np.stack([x, x]) for x in (ROWS["q"], ROWS["k"], VALUES["v"]))
    batch = RUN["attention"]({"q": q, "k": k, "v": v, "causal": True})
    single = RUN["attention"]({**ROWS, **VALUES, "causal": True})
    assert batch["out"] == [single["out"]] * 2
    mask = {"mask": [[True, False], [True, True]]}
    assert RUN["attention"]({"q": q, "k": k, "v": v, **mask})["out"] == batch["out"]


def test_temperature_zero_takes_the_first_of_the_largest():
    assert RUN["sampling"]({"logits": [1.0, 3.0, 3.0], "T": 0}) == [0.0, 1.0, 0.0]
    assert RUN["sampling"]({"probs": [0.2, 0.8], "T": [0.0, 1.0]}) == [
        [0, 1],
        [0.2, 0.8],
    ]


def test_a_temperature_goes_along_the_axis_that_is_asked_for():
    columns = RUN["softmax"]({"x": [[0.0, 1.0], [1.0, 1.0]], "axis": 0, "t": 2.0})
    rows = RUN["softmax"]({"x": [[0.0, 1.0], [1.0, 1.0]], "t": 2.0})
    assert columns == np.transpose(rows).tolist()


@pytest.mark.parametrize("steps", [[], [{"k": [1.0], "v": [1.0], "beta": 0.0}]])
def test_writes_that_write_nothing_leave_the_state(steps):
    assert RUN["deltanet"]({"S0": [[4.0]], "steps": steps})["state"] == [[4.0]]


# ---- Merging ------------------------------------------------------------------------

HALVES = [
    {"scores": [1.0, 2.0], "values": [[10.0], [20.0]]},
    {"scores": [3.0], "values": [[30.0]]},
]
NOTHING = {"scores": [], "values": []}
MASKED = {"scores": [-INF], "values": [[7.0]]}


def merged(*chunks: dict[str, Any]) -> dict[str, Any]:
    given = {"chunks": copy.deepcopy(list(chunks))}
    before = repr(given)
    answer = RUN["online_softmax_merge"](given)
    assert repr(given) == before
    return answer


def test_a_chunk_of_nothing_changes_nothing_wherever_it_stands():
    want = merged(*HALVES)
    for i in range(3):
        for neutral in (NOTHING, MASKED):
            assert merged(*HALVES[:i], neutral, *HALVES[i:]) == want


def test_nothing_merged_is_the_neutral_element():
    nothing = {"lse": -INF, "out": []}
    assert merged() == merged(NOTHING) == merged(NOTHING, NOTHING) == nothing
    assert RUN["online_softmax_merge"]({"states": []}) == nothing
    assert merged(MASKED, MASKED, NOTHING) == {"lse": -INF, "out": [0.0]}


def test_states_are_merged_row_by_row():
    first = {"lse": [0.0, -INF, -INF], "out": [[1.0], [0.0], [0.0]]}
    second = {"lse": [0.0, 5.0, -INF], "out": [[3.0], [4.0], [0.0]]}
    got = RUN["online_softmax_merge"]({"states": [first, second]})
    want = {"lse": [np.log(2.0), 5.0, -INF], "out": [[2.0], [4.0], [0.0]]}
    assert near(got, want, rtol=1e-15, atol=0.0)
    for i in range(3):
        rows = [{"lse": s["lse"][i], "out": s["out"][i]} for s in (first, second)]
        alone = RUN["online_softmax_merge"]({"states": rows})
        assert near(alone, {n: x[i] for n, x in want.items()}, rtol=1e-15, atol=0.0)


def test_one_state_alone_is_looked_at_and_given_back():
    one = {"lse": 2.0, "out": [3.0, 4.0]}
    assert RUN["online_softmax_merge"]({"states": [one]}) == one
    for lse in (INF, float("nan")):
        with pytest.raises(ValueError, match="maximum"):
            RUN["online_softmax_merge"]({"states": [{**one, "lse": lse}]})


def test_an_unfinished_state_is_one_too():
    finished = {"lse": np.log(2.0) + 1.0, "out": [3.0]}
    running = {"m": 1.0, "l": 2.0, "acc": [6.0]}
    got = RUN["online_softmax_merge"]({"states": [running, running]})
    want = RUN["online_softmax_merge"]({"states": [finished, finished]})
    assert near(got, want, rtol=1e-15, atol=0.0)


def test_the_answers_are_json():
    for case in ANSWERED:
        json.dumps(RUN[case["operation"]](case["input"]))
