"""The one adapter from the handed cases to labcore's public names.

``RUN[operation](input)`` takes a case's ``input``, in which the strings "nan", "inf"
and "-inf" are floats already, and returns the value in the shape of ``expected``. Where
a case expects a dictionary, the answer may hold more keys than it asks for.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import labcore
import numpy as np

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
    return {
        "lse": plain(labcore.online_trace(scores, values)[-1].lse),
        "out": plain(out),
    }


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
    read = form[given.get("form", "absorbed")](
        *arguments, *projections, allowed=allowed
    )
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

# ---- Sampling, losses, optimizers, compression, layers ------------------------------


def law_of(given: Input) -> np.ndarray:
    """A distribution from whatever a case gives, at its temperature."""
    t = given.get("T", given.get("temperature", 1.0))
    for name in ("probs", "probs_at_T1", "p"):
        if name in given:
            p = np.asarray(given[name], float)
            if t == 1.0:
                return p
            with np.errstate(divide="ignore"):
                return labcore.temperature_softmax(np.log(p), t)
    return labcore.temperature_softmax(np.asarray(given["logits"], float), t)


def sampling(given: Input) -> Any:
    if isinstance(given.get("T"), list):
        return [sampling({**given, "T": t}) for t in given["T"]]
    p = law_of(given)
    cut = "top_k" in given or "top_p" in given
    if "top_k" in given:
        p = labcore.top_k(p, given["top_k"])
    if "top_p" in given:
        kept = np.flatnonzero(p) if "top_k" in given else None
        p = labcore.top_p(p, given["top_p"])
        if given["top_p"] == 1 and kept is None:
            return {"kept": list(range(p.shape[-1])), "probs": plain(p)}
    if not cut:
        return plain(p)
    return {"kept": np.flatnonzero(p).tolist(), "probs": plain(p)}


def beam_search(given: Input) -> Any:
    if "finished" in given:
        logprobs = [h["logprob"] for h in given["finished"]]
        lengths = [h["tokens"] for h in given["finished"]]
        answer = {}
        for alpha in given["alpha"]:
            scores = labcore.length_score(logprobs, lengths, alpha=alpha)
            answer[f"scores_alpha{alpha:g}"] = plain(scores)
            answer[f"best_alpha{alpha:g}"] = int(np.argmax(scores))
        return answer
    first, second = given["step1"], given["step2"]
    names = list(first) + [t for law in second.values() for t in law]
    names = list(dict.fromkeys(names))

    def next_logprobs(tokens: tuple[int, ...]) -> np.ndarray:
        law = second[names[tokens[0]]] if tokens else first
        with np.errstate(divide="ignore"):
            return np.log([law.get(name, 0.0) for name in names])

    one = labcore.greedy(next_logprobs, length=2)
    best = labcore.beam_search(next_logprobs, length=2, beam=given["beam"])[0]
    return {
        "greedy": [names[t] for t in one.tokens],
        "greedy_prob": float(np.exp(one.logprob)),
        "beam": [names[t] for t in best.tokens],
        "beam_prob": float(np.exp(best.logprob)),
    }


# The cases of the gradient have the keys of those of the loss: only names differ.
GRADIENTS = [
    case["input"]
    for case in json.loads(Path(__file__).with_name("cases.json").read_bytes())
    if case["operation"] == "cross_entropy" and case["id"].endswith("-gradient")
]


def cross_entropy(given: Input) -> Any:
    logits, targets = array(given["logits"], given), np.asarray(given["targets"])
    options = {k: given[k] for k in ("ignore_index",) if k in given}
    options |= exactly(given)
    if given in GRADIENTS:
        return plain(labcore.cross_entropy_gradient(logits, targets, **options))
    return plain(labcore.cross_entropy(logits, targets, **options))


def kl(given: Input) -> Any:
    p, q = given["p"], given["q"]
    return {"KL_p_q": plain(labcore.kl(p, q)), "KL_q_p": plain(labcore.kl(q, p))}


def dpo(given: Input) -> Any:
    answer = {}
    for name in ("chosen", "rejected"):
        if f"{name}_token_logps" in given:
            answer[name] = plain(
                labcore.sequence_logprob(
                    given[f"{name}_token_logps"], mask=given.get(f"{name}_mask")
                )
            )
        else:
            answer[name] = given[f"policy_{name}"]
    loss = labcore.dpo_loss(
        answer["chosen"],
        answer["rejected"],
        given["ref_chosen"],
        given["ref_rejected"],
        beta=given["beta"],
    )
    return {**answer, "loss": plain(loss)}


def ppo_clip(given: Input) -> Any:
    r, a = np.asarray(given["ratio"], float), np.asarray(given["advantage"], float)
    options = {name: given[name] for name in ("eps",) if name in given}
    objective = labcore.ppo_clip(r, a, **options)
    slope = labcore.ppo_clip_gradient(r, a, **options)
    return {
        "objective": plain(objective),
        "loss": float(-np.mean(objective)),
        "d_objective_d_ratio": plain(slope),
    }


def contrastive(given: Input) -> Any:
    sim = np.asarray(given["sim"], float)
    if given.get("direction", "rows") == "columns":
        sim = sim.T
    loss = labcore.contrastive_loss(sim, tau=given["tau"])
    gradient = labcore.contrastive_gradient(sim, tau=given["tau"])
    if given.get("direction", "rows") == "columns":
        gradient = gradient.T
    return {"loss": plain(loss), "grad_sim": plain(gradient)}


def gradient_accumulation(given: Input) -> Any:
    batches = given["microbatches"]
    sums = [batch["loss_sum"] for batch in batches]
    return plain(
        labcore.accumulate_gradients(sums, [batch["tokens"] for batch in batches])
    )


def adamw(given: Input) -> Any:
    first = given.get("step", 1)
    w = given.get("p0", 0.0)
    m = v = np.zeros_like(np.asarray(w, float)).tolist()
    names = ("lr", "beta1", "beta2", "eps", "weight_decay")
    options = {name: given[name] for name in names if name in given}
    path = []
    for t, gradient in enumerate(given.get("grads", [w]), first):
        done = labcore.adamw_step(w, gradient, m, v, t, **options)
        w, m, v = done.w, done.m, done.v
        path.append(plain(w))
    return path


def lora(given: Input) -> Any:
    if "r_and_matrices" in given:
        d = given["d_model"]
        return [
            labcore.lora_parameters(d, d, r, matrices=given["layers"] * n)
            for r, n in given["r_and_matrices"]
        ]
    B, A = np.asarray(given["B"], float), np.asarray(given["A"], float)
    delta = labcore.lora_update(B, A, alpha=given.get("alpha"))
    if given.get("r", A.shape[0]) != A.shape[0]:
        raise ValueError(f"r must be the rank of B and A, {A.shape[0]}")
    return {"delta": plain(delta), "rank": int(np.linalg.matrix_rank(delta))}


def zero_memory(given: Input) -> Any:
    options = {"optimizer_bytes": given["K"]} if "K" in given else {}
    names = ("baseline", "stage1", "stage2", "stage3")
    unit = 1e9 if given.get("unit") == "1e9 bytes" else 1.0
    return {
        name: labcore.zero_bytes_per_device(
            given["params"], devices=given["gpus"], stage=stage, **options
        )
        / unit
        for stage, name in enumerate(names)
    }


def quantize_symmetric(given: Input) -> Any:
    x, qmax = np.asarray(given["x"], float), given.get("qmax", 127)
    scale = given.get("scale")
    if scale is None:
        scale = plain(labcore.absmax_scale(x, qmax=qmax))
    q = labcore.quantize_symmetric(x, scale, qmin=given.get("qmin"), qmax=qmax)
    if "scale" in given:
        return plain(q)
    return {
        "scale": scale,
        "q": plain(q),
        "dequant": plain(labcore.dequantize(q, scale)),
        "max_abs_error_bound": scale / 2,
    }


def bpe(given: Input) -> Any:
    merges = [tuple(pair) for pair in given["merges"]]
    if "text_utf8_hex" in given:
        rules = [tuple(bytes.fromhex(half) for half in pair) for pair in merges]
        tokens = labcore.bpe_encode(bytes.fromhex(given["text_utf8_hex"]), rules)
        return {
            "tokens_hex": [token.hex() for token in tokens],
            "roundtrip": labcore.bpe_decode(tokens),
        }
    return labcore.bpe_encode(given["text"], merges)


def bpe_train(given: Input) -> Any:
    merges = labcore.bpe_train(given["text"], given["n_merges"])
    return {
        "first_merge": list(merges[0]) if merges else [],
        "merges": [list(pair) for pair in merges],
        f"encoded_after_{given['n_merges']}": labcore.bpe_encode(given["text"], merges),
    }


def attention_grad(given: Input) -> Any:
    q, k, v = (array(given[name], given) for name in "qkv")
    allowed = given.get("mask")
    if given.get("causal"):
        allowed = labcore.causal_mask(
            q.shape[-2], k.shape[-2], offset=given.get("offset")
        )
    options = {name: given[name] for name in ("scale",) if name in given}
    found = labcore.attention_gradients(
        q, k, v, array(given["grad_out"], given), allowed=allowed, **options
    )
    return {"dq": plain(found.dq), "dk": plain(found.dk), "dv": plain(found.dv)}


def patch_embedding(given: Input) -> Any:
    if "image_chw" in given:
        patches = labcore.patchify(given["image_chw"], patch=given["patch"])
        if "W" in given:
            patches = labcore.linear(patches, given["W"])
        return plain(patches)
    blank = np.zeros((given["channels"], given["height"], given["width"]))
    patches = labcore.patchify(blank, patch=given["patch"])
    return {
        "patches": patches.shape[0],
        "patch_dim": patches.shape[1],
        "tokens_with_cls": patches.shape[0] + 1,
    }


def norm_options(given: Input) -> dict[str, Any]:
    names = ("eps", "weight", "bias")
    return {name: given[name] for name in names if name in given} | exactly(given)


def layernorm(given: Input) -> Any:
    return plain(labcore.layer_norm(array(given["x"], given), **norm_options(given)))


def rmsnorm(given: Input) -> Any:
    return plain(labcore.rms_norm(array(given["x"], given), **norm_options(given)))


def swiglu(given: Input) -> Any:
    return plain(labcore.swiglu(given["gate"], given["up"]))


def activations(given: Input) -> Any:
    return plain({"silu": labcore.silu, "relu": labcore.relu}[given["fn"]](given["x"]))


def decoder(given: Input) -> Any:
    options = {name: given[name] for name in ("heads", "norm_eps") if name in given}
    options["rope_base"] = given.get("rope_base", 10000.0) if given["rope"] else None
    if "split" in given:
        chunks = [len(part) for part in given["split"]]
        logits = labcore.decoder_logits_cached(
            given["weights"], given["tokens"], chunks=chunks, **options
        )
    else:
        logits = labcore.decoder_logits(given["weights"], given["tokens"], **options)
    return {"logits": plain(logits), "last_logits": plain(logits[-1])}


RUN |= {
    function.__name__: function
    for function in (
        sampling,
        beam_search,
        cross_entropy,
        kl,
        dpo,
        ppo_clip,
        contrastive,
        gradient_accumulation,
        adamw,
        lora,
        zero_memory,
        quantize_symmetric,
        bpe,
        bpe_train,
        attention_grad,
        patch_embedding,
        layernorm,
        rmsnorm,
        swiglu,
        activations,
        decoder,
    )
}

# ---- Retrieval, evaluation, serving, state ------------------------------------------


def bm25(given: Input) -> Any:
    options = {name: given[name] for name in ("k1", "b") if name in given}
    if "df" in given:
        return {"idf": [labcore.bm25_idf(given["N"], df) for df in given["df"]]}
    if "term" in given:
        term = labcore.bm25_term(given["docs"], given["term"], **options)
        return {"df": term.df, "idf": term.idf}
    scores = {
        plus: labcore.bm25(
            given["docs"], given["query"], saturation_factor=plus, **options
        ).tolist()
        for plus in (True, False)
    }
    return {
        "scores": scores[True],
        "with_k1_plus_1": scores[True],
        "without_k1_plus_1": scores[False],
    }


def rrf(given: Input) -> Any:
    options = {name: given[name] for name in ("c",) if name in given}
    fused = labcore.rrf(given["lists"], **options)
    scores = dict(fused)  # beside the rest, as the wrong answers are written
    return {"scores": scores, "order": [id for id, _ in fused], **scores}


def maxsim(given: Input) -> Any:
    masks = {name: given[name] for name in ("q_mask", "d_mask") if name in given}
    return plain(labcore.maxsim(given["q"], given["d"], **masks))


def ann_greedy(given: Input) -> Any:
    points, edges, query = given["points"], given["edges"], given["query"]

    def walk(beam: int) -> list[tuple[str, float]]:
        return labcore.greedy_graph_search(
            points, edges, query, entry=given["entry"], beam=beam
        )

    [(best, distance)] = labcore.nearest(points, query)
    [(greedy, stopped)] = walk(1)
    answer = {f"ef{beam}": walk(beam)[0][0] for beam in (1, 2, 3, 4, 5, 8)}
    returned = [id for id, _ in walk(max(given.get("k", 1), given.get("ef", 1)))]
    return {
        **answer,
        "exact_nn": best,
        "exact_distance": distance,
        "greedy": greedy,
        "greedy_distance": stopped,
        "returned": returned[: given.get("k", 1)],
        "recall_at_1": labcore.recall(returned, [best], k=1),
    }


def precision_recall(given: Input) -> Any:
    if "y_true" in given:
        sets = [
            [i for i, label in enumerate(given[name]) if label]
            for name in ("y_pred", "y_true")
        ]
    else:
        sets = [given["retrieved"], given["relevant"]]
    k = given.get("k")
    if given.get("metric") in ("precision", "recall"):
        one = getattr(labcore, given["metric"])(*sets, k=k)
        return {given["metric"]: one, f"{given['metric']}_at_k": one}
    both = labcore.precision_recall(*sets, k=k)._asdict()
    return both | {f"{name}_at_k": value for name, value in both.items()}


def pass_at_k(given: Input) -> Any:
    if given.get("form") == "with-replacement" or "p" in given:
        return plain(labcore.pass_at_k_iid(given["p"], given["k"]))
    return labcore.pass_at_k(given["n"], given["c"], given["k"])


def mcnemar_exact(given: Input) -> Any:
    return labcore.mcnemar_exact(given["b"], given["c"])


def brier(given: Input) -> Any:
    return plain(labcore.brier(given["p"], given["y"]))


def simpson(given: Input) -> Any:
    table = labcore.simpson_table(given["A"], given["B"])
    return {
        **{f"A_{name}": rate for name, rate in table.a.items()},
        **{f"B_{name}": rate for name, rate in table.b.items()},
        "A_total": table.total_a,
        "B_total": table.total_b,
        "reversal": table.reversal,
    }


def kv_cache_bytes(given: Input) -> Any:
    if "kv_rank" in given:
        return latent_cache(given)
    size = labcore.kv_cache_bytes(
        layers=given["layers"],
        kv_heads=given["kv_heads"] if "kv_heads" in given else given["q_heads"],
        head_dim=given["head_dim"],
        bytes_per_element=given["bytes"],
        tokens=given.get("tokens", 1),
        batch=given.get("batch", 1),
    )
    tokens = given.get("tokens", 1) * given.get("batch", 1)
    per_token = size / tokens
    return {"bytes": size, "gib": size / 2**30, "bytes_per_token": per_token}


def latent_cache(given: Input) -> Any:
    layers = given["layers"]
    per_layer = labcore.mla_cache_elements(given["kv_rank"], given["d_rope"])
    elements = labcore.mla_cache_elements(
        given["kv_rank"], given["d_rope"], layers=layers
    )
    head = given.get("ref_head_dim", 128)

    def reference(layers: int, heads: int, bytes_per_element: float) -> float:
        return labcore.kv_cache_bytes(
            layers=layers,
            kv_heads=heads,
            head_dim=head,
            bytes_per_element=bytes_per_element,
        )

    answer = {
        "elements_per_layer": per_layer,
        "elements_per_token": elements,
        "bytes_per_token": elements * given["bytes"],
        "gqa_group_equivalent": per_layer / reference(1, 1, 1),
        "mha_elements_per_token": reference(layers, given.get("heads", 128), 1),
    }
    if "ref_layers" in given:
        shape = given["ref_layers"], given["ref_kv_heads"]
        bits = given.get("bits_mla", 16), given.get("bits_ref", 16)
        small, large = elements * bits[0] / 8, reference(*shape, bits[1] / 8)
        answer["ref_elements_per_token"] = reference(*shape, 1)
        answer["reduction"] = 1 - small / large
    return answer


def latency_metrics(given: Input) -> Any:
    times, counts = given.get("token_times"), None
    if "chunks" in given:
        times = [time for time, _ in given["chunks"]]
        counts = [count for _, count in given["chunks"]]
    measured = labcore.latency_metrics(given["request_time"], times, counts=counts)
    answer = measured._asdict() | {"mean_gap_between_chunks": measured.mean_gap}
    if given.get("metric") == "tpot":
        return {"tpot": labcore.time_per_output_token(times, counts=counts)}
    return answer


def critical_path(given: Input) -> Any:
    return labcore.critical_path(given["durations"], given.get("after", {}))._asdict()


def queueing(given: Input) -> Any:
    if "departures" in given:
        trace = labcore.queue_trace(
            given["arrivals"], given["departures"], horizon=given["horizon"]
        )
        return {"L": trace.L, "lambda": trace.rate, "W": trace.W}
    return labcore.mm1(given["lambda"], given["mu"])._asdict()


def roofline(given: Input) -> Any:
    if "n" in given or "rows" in given:
        rows = given.get("rows", given.get("n"))
        columns = given.get("columns", given.get("n"))
        width = given["bytes_per_value"]
        return labcore.matvec_cost(rows, columns, bytes_per_value=width)._asdict()
    found = labcore.roofline(
        given["flops"],
        given["bytes"],
        peak_flops=given.get("peak_flops", 1.0),
        bandwidth=given.get("bandwidth", 1.0),
    )
    return found._asdict() | {"time_lower_bound_s": found.lower_bound_seconds}


def train_flops(given: Input) -> Any:
    if "N" in given:
        return labcore.train_flops(given["N"], given["D"])
    shape = {name: given[name] for name in ("layers", "d_model", "seq")}
    return {
        "forward_qk_plus_av_flops_full": labcore.attention_flops(**shape),
        "causal_half_plus_diagonal": labcore.attention_flops(**shape, causal=True),
    }


def chunks_of(given: Input) -> list[bytes]:
    return [bytes.fromhex(chunk) for chunk in given["chunks_hex"]]


def sse(given: Input) -> Any:
    stream = labcore.sse_decode(chunks_of(given))
    events = [event._asdict() for event in stream.events]
    if stream.retry is None:
        return events
    return {"retry_ms": stream.retry, "events": events}


def utf8_stream(given: Input) -> Any:
    text = labcore.utf8_stream(chunks_of(given), flush=given.get("flush", True))
    return {"per_chunk": text, "final": "".join(text)}


def bitemporal(given: Input) -> Any:
    facts = [
        labcore.Fact(row["value"], *row["valid"], *row["tx"]) for row in given["rows"]
    ]
    queries = given.get("queries", [[0, 0]])  # without a query the rows are looked at
    return [
        labcore.bitemporal_lookup(facts, valid_at=valid_at, known_at=known_at)
        for valid_at, known_at in queries
    ]


def idempotency(given: Input) -> Any:
    """Each call starts when the one before has ended, or, told so, is inside."""
    executions: list[Any] = []
    inside, waiting, go_on = threading.Event(), threading.Event(), threading.Event()
    overlapping = any(len(call) > 2 for call in given["calls"])

    def effect(payload: Any) -> int:
        executions.append(payload)
        inside.set()
        if overlapping:
            go_on.wait(10)
        return len(executions) - 1

    run = labcore.idempotent_executor(effect, waiting=lambda key: waiting.set())
    if not overlapping:
        results = [run.submit(key, payload) for key, payload in given["calls"]]
        same = [i for i, result in enumerate(results) if results.count(result) > 1]
        return {"executions": len(executions), "same_result": same}
    threads = [
        threading.Thread(target=run.submit, args=call[:2]) for call in given["calls"]
    ]
    threads[0].start()
    inside.wait(10)
    for thread in threads[1:]:
        thread.start()
    waited = waiting.wait(10)
    go_on.set()
    for thread in threads:
        thread.join()
    second = "conflict or waits" if waited else "runs"
    return {"executions": len(executions), "second": second}


def compare_and_swap(given: Input) -> Any:
    now, ok = labcore.Versioned(**given["start"]), []
    for swap in given["ops"]:
        done, now = labcore.compare_and_swap(
            now, expect=swap["expect"], new=swap["new"]
        )
        ok.append(done)
    return {"ok": ok, "end": now._asdict()}


RUN |= {
    function.__name__: function
    for function in (
        bm25,
        rrf,
        maxsim,
        ann_greedy,
        precision_recall,
        pass_at_k,
        mcnemar_exact,
        brier,
        simpson,
        kv_cache_bytes,
        latency_metrics,
        critical_path,
        queueing,
        roofline,
        train_flops,
        sse,
        utf8_stream,
        bitemporal,
        idempotency,
        compare_and_swap,
    )
}


def laplacian_attention(given: Input) -> Any:
    q, k = array(given["q"], given), array(given["k"], given)
    one_query = q.ndim == 1
    q = q[None] if one_query else q
    if "shift" in given:
        q, k = q + given["shift"], k + given["shift"]
    sigma = given.get("sigma", "median")
    if sigma == "median":
        sigma = labcore.median_sigma(q, k, **exactly(given))
    v = array(given["v"], given) if "v" in given else np.zeros((*k.shape[:-1], 1))
    read = labcore.laplacian_attention(q, k, v, sigma, **exactly(given))
    first = (lambda x: plain(x[..., 0, :])) if one_query else plain
    answer = {name: first(part) for name, part in read._asdict().items()}
    entropy = labcore.entropy(read.weights)
    return {
        **answer,
        "out": answer["output"],
        "entropy": plain(entropy[..., 0] if one_query else entropy),
        "sigma": float(sigma),
    }


RUN["laplacian_attention"] = laplacian_attention
