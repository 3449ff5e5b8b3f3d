"""The one adapter from the handed cases to labcore's public names.

``RUN[operation](input)`` takes a case's ``input``, in which the strings "nan", "inf"
and "-inf" are floats already, and returns the value in the shape of ``expected``. Where
a case expects a dictionary, the answer may hold more keys than it asks for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import labcore

Input = dict[str, Any]


def array(x: Any, given: Input) -> np.ndarray:
    """The numbers in the type that the case names, if it names one."""
    return np.asarray(x, given.get("dtype"))


def exactly(given: Input) -> dict[str, Any]:
    """Cases state float64 answers: narrow inputs are widened, as the user may ask."""
    return {"dtype": np.float64} if "dtype" in given else {}


def plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


def softmax(given: Input) -> Any:
    x, wide = array(given["x"], given), exactly(given)
    t = given.get("temperature", given.get("t"))
    if t is not None:
        return plain(labcore.temperature_softmax(x, t, **wide))
    return plain(labcore.softmax(x, given.get("axis", -1), **wide))


def logsumexp(given: Input) -> Any:
    x = array(given["x"], given)
    return plain(labcore.logsumexp(x, given.get("axis", -1), **exactly(given)))


def attention(given: Input) -> Any:
    q, k, v = (array(given[name], given) for name in "qkv")
    options = {**exactly(given)}
    if "scale" in given:
        options["scale"] = given["scale"]
    allowed = None
    if given.get("causal"):
        allowed = labcore.causal_mask(
            q.shape[-2],
            k.shape[-2],
            offset=given.get("offset"),
            window=given.get("window"),
        )
    answer = {}
    mask = np.asarray(given["mask"]) if given.get("mask") is not None else None
    if mask is not None and mask.dtype != bool:
        # Added to the scores, as other libraries have it: -inf forbids, 0 allows.
        if not np.all(np.isin(mask, (0.0, -np.inf))):
            raise ValueError(f"mask must be boolean, or 0 and -inf, got {mask}")
        mask = mask == 0.0
    if mask is not None:
        keep = mask if allowed is None else mask & allowed
        block = ~mask if allowed is None else ~mask & allowed
        answer["sdpa_true_is_keep"] = plain(
            labcore.attention(q, k, v, allowed=keep, **options)
        )
        if block.shape[-2:] == (q.shape[-2], k.shape[-2]) and block.any(-1).all():
            answer["mha_true_is_block"] = plain(
                labcore.attention(q, k, v, allowed=block, **options)
            )
        allowed = keep
    answer["out"] = plain(labcore.attention(q, k, v, allowed=allowed, **options))
    answer["weights"] = plain(
        labcore.attention_weights(q, k, allowed=allowed, **options)
    )
    return answer


def gqa(given: Input) -> Any:
    if "q" in given:
        q, k, v = (array(given[name], given) for name in "qkv")
        options = {name: given[name] for name in ("scale",) if name in given}
        allowed = given.get("mask")
        if given.get("causal"):
            allowed = labcore.causal_mask(
                q.shape[-2], k.shape[-2], offset=given.get("offset")
            )
        heads = labcore.kv_head_of(q.shape[-3], k.shape[-3])
        out = labcore.grouped_query_attention(
            q, k, v, allowed=allowed, **options, **exactly(given)
        )
        return {"kv_head_of_q_head": plain(heads), "out": plain(out)}
    n_q, n_kv = given["n_q_heads"], given["n_kv_heads"]
    answer = {"kv_head_of_q_head": plain(labcore.kv_head_of(n_q, n_kv))}
    if "v_head_values" in given:
        v = np.reshape(given["v_head_values"], (n_kv, 1, 1))
        out = labcore.grouped_query_attention(np.ones((n_q, 1, 1)), 0.0 * v, v)
        answer["out_per_q_head"] = plain(out[:, 0, 0])
    return answer


def online_softmax_merge(given: Input) -> Any:
    if "states" in given:
        # A finished output and its lse are the summary of one key with score lse.
        states = [
            labcore.SoftmaxSummary(
                np.asarray(state["lse"], float),
                np.asarray(0.0 if state["lse"] == -np.inf else 1.0),
                np.asarray(state["out"], float),
            )
            for state in given["states"]
        ]
        whole = states[0]
        for state in states[1:] or [states[0]._replace(maximum=np.asarray(-np.inf))]:
            whole = labcore.merge(whole, state)
        empty = whole.mass == 0
        out = whole.weighted if empty else labcore.finish(whole)
        return {"lse": plain(whole.lse), "out": plain(out)}
    if "chunks" in given:
        scores = [np.asarray(chunk["scores"], float) for chunk in given["chunks"]]
        values = [np.asarray(chunk["values"], float) for chunk in given["chunks"]]
    else:
        raw = given["raw_scores"] if "raw_scores" in given else given["scores"]
        values = [np.asarray(chunk, float) for chunk in given["values"]]
        scores = [np.asarray(chunk, float) for chunk in raw]
    scale = given.get("scale", 1.0)
    scores = [scale * chunk for chunk in scores]
    out = labcore.online_softmax(scores, values)
    return {"lse": plain(labcore.online_trace(scores, values)[-1].lse), "out": plain(out)}


FEATURES: dict[str, Callable[[Any], Any]] = {
    "elu+1": labcore.elu_plus_one,
    "relu": lambda x: np.maximum(np.asarray(x, float), 0.0),
    "identity": lambda x: np.asarray(x, float),
}


def feature_of(given: Input) -> Callable[[Any], Any]:
    name = given.get("feature", "elu+1")
    if name not in FEATURES:
        raise ValueError(f"feature must be one of {', '.join(FEATURES)}, got {name!r}")
    return FEATURES[name]


def feature_map(given: Input) -> Any:
    return plain(feature_of(given)(array(given["x"], given)))


def linear_attention(given: Input) -> Any:
    feature = feature_of(given)
    fq, fk = (feature(array(given[name], given)) for name in "qk")
    v = array(given["v"], given)
    if not given.get("causal", True):
        out = labcore.kernel_attention(fq, fk, v, causal=False)
        state = np.swapaxes(fk, -1, -2) @ v
        return {"out": plain(out), "state": plain(state), "z": plain(fk.sum(axis=-2))}
    if given.get("chunk") is not None:
        out, end = labcore.kernel_attention_chunked(fq, fk, v, chunk=given["chunk"])
    else:
        out, end = labcore.kernel_attention_recurrent(fq, fk, v)
    return {"out": plain(out), "state": plain(end.S), "z": plain(end.z)}


def writes(given: Input) -> Any:
    """One write or several, then a read; with or without decay."""
    steps = given.get("steps")
    if steps is None and np.ndim(given["k"]) == 2:
        return sequence(given)
    if steps is None:
        steps = [given]
    first = steps[0]
    start = np.zeros((np.size(first["k"]), np.size(first["v"])))
    S = np.asarray(given.get("S0", start), float)
    reads = []
    for step in steps:
        k, v = np.asarray(step["k"], float), np.asarray(step["v"], float)
        beta = step.get("beta", given.get("beta", 1.0))
        alpha = retention(step, given)
        if alpha is None:
            S = labcore.delta_write(S, k, v, beta)
        else:
            S = labcore.gated_write(S, k, v, beta, alpha)
        if "q" in step:
            reads.append(plain(np.asarray(step["q"], float) @ S))
    answer = {"state": plain(S)}
    if "q" in given:
        answer["out"] = plain(np.asarray(given["q"], float) @ S)
    elif reads:
        answer["out"] = reads
    return answer


def retention(step: Input, given: Input) -> Any:
    for source in (step, given):
        if "alpha" in source:
            return source["alpha"]
        if "log_alpha" in source:
            return plain(np.exp(source["log_alpha"]))
    return None


def sequence(given: Input) -> Any:
    """Whole arrays of tokens, one read a token."""
    q, k, v = (np.asarray(given[name], float) for name in "qkv")
    beta = np.broadcast_to(np.asarray(given.get("beta", 1.0), float), k.shape[:-1])
    alpha = retention(given, given)
    if alpha is not None and np.ndim(alpha) == 0:
        alpha = np.full(k.shape[:-1], alpha)
    options = {"retention": alpha, "initial": given.get("S0")}
    if given.get("chunk") is not None:
        out, S = labcore.delta_attention_chunked(
            q, k, v, beta, chunk=given["chunk"], **options
        )
    else:
        out, S = labcore.delta_attention(q, k, v, beta, **options)
    return {"out": plain(out), "state": plain(S)}


def kda(given: Input) -> Any:
    if "v" in given or "steps" in given:
        return writes(given)
    # Only a projection A and a decay D: written on the unit state they are matrices.
    k, alpha, beta = given["k"], np.asarray(given["alpha"], float), given["beta"]
    one, zero = np.eye(len(k)), np.zeros(len(k))
    decay_first = labcore.gated_write(one, k, zero, beta, alpha)
    project_first = labcore.gated_write(
        labcore.delta_write(one, k, zero, beta), k, zero, 0.0, alpha
    )
    return {
        "A_D": plain(decay_first),
        "D_A": plain(project_first),
        "commutator": plain(decay_first - project_first),
    }


def rope(given: Input) -> Any:
    if "rule" in given:
        rng = np.random.default_rng(0)
        q, k, v = rng.normal(size=(3, 2, 4))
        alone = np.eye(2, dtype=bool)
        read = labcore.rope_attention(q, k, v, [3, 5], allowed=alone)
        return {"v_changed": not np.array_equal(read, v)}
    spin = {name: given[name] for name in ("base", "layout") if name in given}
    if "q" in given:
        i = given["i"] if "i" in given else given["pos_q"]
        j = given["j"] if "j" in given else given["pos_k"]
        q = labcore.rope(given["q"], i, **spin)
        return plain(q @ labcore.rope(given["k"], j, **spin))
    if "x" not in given:
        return plain(labcore.rope_frequencies(given["d"], given.get("base", 10000.0)))
    position = given.get("pos", given.get("positions"))
    x = array(given["x"], given)
    out = plain(labcore.rope(x, position, **spin, **exactly(given)))
    if np.ndim(position) == 0 and position == 0:
        turned = labcore.rope(x, 1729, **spin, **exactly(given))
        return {"out": out, "norm_sq_at_any_pos": float(np.sum(turned**2))}
    return out


def mla(given: Input) -> Any:
    if "c_kv" not in given:
        return labcore.mla_cache_elements(
            given["kv_rank"], given["d_rope"], layers=given.get("layers", 1)
        )
    q_nope = np.asarray(given["q_nope"], float)
    q_rope = np.asarray(given["q_rope_rotated"], float)
    one_query = q_nope.ndim == 1
    if one_query:
        q_nope, q_rope = q_nope[None], q_rope[None]
    arguments = (q_nope, q_rope, given["c_kv"], given["k_rope_rotated"])
    projections = (given["W_uk"], given["W_uv"])
    allowed = given.get("mask")
    if given.get("causal"):
        allowed = labcore.causal_mask(len(q_nope), len(given["c_kv"]))
    form = {"explicit": labcore.mla_explicit, "absorbed": labcore.mla_absorbed}
    read = form[given.get("form", "absorbed")](*arguments, *projections, allowed=allowed)
    first = (lambda x: plain(x[..., 0, :])) if one_query else plain
    return {
        "out": first(read.output),
        "weights": first(read.weights),
        "raw_scores": first(read.scores),
    }


def speculative_decoding(given: Input) -> Any:
    if "alpha" in given:
        return labcore.expected_tokens(given["alpha"], given["gamma"])
    p = np.asarray(given["p_target"], float)
    if "draft_tokens" in given:
        done = labcore.speculative_decode(
            p, given["q_draft"], given["draft_tokens"], given["uniforms"]
        )
        return {"accepted": done.accepted, "emitted": done.tokens}
    answer: dict[str, Any] = {}
    if "q_raw" in given:
        q = np.asarray(given["q_raw"], float)
        if "draft_top_k" in given:
            q = labcore.top_k(q, given["draft_top_k"])
        answer["q_used"] = plain(q)
    else:
        q = np.asarray(given["q_draft"], float)
    if given.get("call") == "residual":
        return {"residual": plain(labcore.speculative_residual(p, q))}
    if "draft_token" in given:
        token = given["draft_token"]
        # The number 0 accepts whatever can be accepted; refuses what was not drafted.
        labcore.speculative_decode([p, p], q[None], [token], [0.0, 0.5])
        answer["accept_probability"] = float(min(1.0, p[token] / q[token]))
    accepted = labcore.speculative_acceptance(p, q)
    answer["accept_rate"] = plain(accepted.sum(axis=-1))
    if not np.array_equal(p, q):
        answer["residual"] = plain(labcore.speculative_residual(p, q))
    answer["marginal"] = plain(labcore.speculative_distribution(p, q))
    answer["p_target_after_call"] = plain(p)
    return answer


RUN: dict[str, Callable[[Input], Any]] = {
    function.__name__: function
    for function in (
        softmax,
        logsumexp,
        attention,
        gqa,
        online_softmax_merge,
        linear_attention,
        feature_map,
        kda,
        rope,
        mla,
        speculative_decoding,
    )
} | {"deltanet": writes, "gated_deltanet": writes}
