"""The one adapter from the handed cases to labcore's public names.

``RUN[operation](input)`` takes a case's ``input``, in which the strings "nan", "inf"
and "-inf" are floats already, and returns the value in the shape of ``expected``. Where
a case expects a dictionary, the answer may hold more keys than it asks for. A key that
an operation does not read is an error, and not ignored.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import labcore
import numpy as np

from tests.data.inputs import RUN, Given, fields, one_of, reads

__all__ = ["RUN"]


def array(x: Any, given: Given) -> np.ndarray:
    """The numbers in the type that the case names, if it names one."""
    return np.asarray(x, given.get("dtype"))


def exactly(given: Given) -> dict[str, Any]:
    """Cases state float64 answers: narrow inputs are widened, as the user may ask."""
    return {"dtype": np.float64} if "dtype" in given else {}


def some(given: Given, *names: str) -> dict[str, Any]:
    """Those of the named options that are given."""
    return {name: given[name] for name in names if name in given}


def plain(x: Any) -> Any:
    return x.tolist() if isinstance(x, (np.ndarray, np.generic)) else x


def each(function: Callable[[Any], Any], x: Any) -> Any:
    """Of a list the answers in a list, of anything else the answer."""
    return [function(part) for part in x] if isinstance(x, list) else function(x)


@reads("x|logits|scores axis|dim t|temperature|T|tau dtype")
def softmax(given: Given) -> Any:
    x, wide, axis = array(given["x"], given), exactly(given), given.get("axis", -1)
    if "t" not in given:
        return plain(labcore.softmax(x, axis, **wide))
    rows = np.moveaxis(x, axis, -1) if x.ndim else x
    weights = labcore.temperature_softmax(rows, given["t"], **wide)
    return plain(np.moveaxis(weights, -1, axis))


@reads("x|logits|scores axis|dim dtype")
def logsumexp(given: Given) -> Any:
    x = array(given["x"], given)
    return plain(labcore.logsumexp(x, given.get("axis", -1), **exactly(given)))


def masks(given: Given, n_queries: int, n_keys: int) -> tuple[Any, Any]:
    """(causal mask or None, the mask that was given or None), True where allowed."""
    causal = None
    if given.get("causal", "offset" in given or "window" in given):
        causal = labcore.causal_mask(
            n_queries, n_keys, **some(given, "offset", "window")
        )
    elif "offset" in given or "window" in given:
        raise ValueError("offset and window belong to causal=True")
    if "mask" not in given:
        return causal, None
    mask = np.asarray(given["mask"])
    if mask.dtype != bool:
        # Added to the scores, as other libraries have it: -inf forbids, 0 allows.
        if not np.all(np.isin(mask, (0.0, -np.inf))):
            raise ValueError(f"mask must be boolean, or 0 and -inf, got {mask}")
        mask = mask == 0.0
    return causal, mask


def both(causal: Any, mask: Any) -> Any:
    return mask if causal is None else causal if mask is None else mask & causal


ATTENTION = (
    "q k v scale causal|is_causal offset window|sliding_window "
    "mask|allowed|attn_mask dtype"
)


@reads(ATTENTION)
def attention(given: Given) -> Any:
    q, k, v = (array(given[name], given) for name in "qkv")
    one_query, one_channel = q.ndim == 1, v.ndim == 1
    q = q[None] if one_query else q
    v = v[:, None] if one_channel else v
    options = exactly(given) | some(given, "scale")

    def read(allowed: Any) -> Any:
        out = labcore.attention(q, k, v, allowed=allowed, **options)
        out = out[..., 0] if one_channel else out
        return plain(out[0] if one_query else out)

    answer = {}
    sizes = q.shape[-2:-1] + k.shape[-2:-1] if k.ndim > 1 else (1, 1)
    causal, mask = masks(given, *sizes)
    if mask is not None:
        mask = mask[None] if one_query and mask.ndim == 1 else mask
        block = both(causal, ~mask)
        answer["sdpa_true_is_keep"] = read(both(causal, mask))
        if block.shape[-2:] == sizes and block.any(-1).all():
            answer["mha_true_is_block"] = read(block)
    allowed = both(causal, mask)
    weights = labcore.attention_weights(q, k, allowed=allowed, **options)
    answer["out"] = read(allowed)
    answer["weights"] = plain(weights[0] if one_query else weights)
    return answer


HEADS = (
    " n_q_heads|q_heads|n_query_heads|n_heads|heads n_kv_heads|kv_heads v_head_values"
)


@reads(ATTENTION + HEADS)
def gqa(given: Given) -> Any:
    if "q" in given:
        q, k, v = (array(given[name], given) for name in "qkv")
        one_query = q.ndim == 2 and k.ndim == 3
        q = q[:, None] if one_query else q
        heads = labcore.kv_head_of(q.shape[-3], k.shape[-3])
        for name, x in (("n_q_heads", q), ("n_kv_heads", k)):
            if given.get(name, x.shape[-3]) != x.shape[-3]:
                raise ValueError(f"{name} must be {x.shape[-3]}, got {given[name]}")
        out = labcore.grouped_query_attention(
            q,
            k,
            v,
            allowed=both(*masks(given, q.shape[-2], k.shape[-2])),
            **some(given, "scale"),
            **exactly(given),
        )
        out = out[:, 0] if one_query else out
        return {"kv_head_of_q_head": plain(heads), "out": plain(out)}
    n_q, n_kv = given["n_q_heads"], given["n_kv_heads"]
    answer = {"kv_head_of_q_head": plain(labcore.kv_head_of(n_q, n_kv))}
    if "v_head_values" in given:
        v = np.reshape(given["v_head_values"], (n_kv, 1, 1))
        out = labcore.grouped_query_attention(np.ones((n_q, 1, 1)), 0.0 * v, v)
        answer["out_per_q_head"] = plain(out[:, 0, 0])
    return answer


STATE = "lse out|o|output max|m|maximum mass|l|sum weighted|acc"
CHUNK = "scores|raw_scores|logits|s values|value|v"


def summary_of(state: Any) -> labcore.SoftmaxSummary:
    """A finished output and its lse are the summary of one key with score lse."""
    part = fields(state, STATE, "a state")
    if "lse" not in part:
        names = ("max", "mass", "weighted")
        return labcore.SoftmaxSummary(
            *(np.asarray(part[name], float) for name in names)
        )
    lse, out = np.asarray(part["lse"], float), np.asarray(part["out"], float)
    mass = np.where(lse == -np.inf, 0.0, 1.0)
    none = (mass == 0.0)[..., None] & np.isfinite(out)
    return labcore.SoftmaxSummary(lse, mass, np.where(none, 0.0, out))


def chunks_of_scores(given: Given) -> list[labcore.SoftmaxSummary]:
    """The running summary after each chunk."""
    if "chunks" in given:
        chunks = [fields(chunk, CHUNK, "a chunk") for chunk in given["chunks"]]
        pairs = [(chunk["scores"], chunk["values"]) for chunk in chunks]
    else:
        pairs = list(zip(given["scores"], given["values"], strict=True))
    if not pairs:
        return []
    scores = [given.get("scale", 1.0) * np.asarray(s, float) for s, _ in pairs]
    values = [np.asarray(v, float) for _, v in pairs]
    # A number for each key is one channel; a chunk without a key has as many as others.
    values = [
        v[..., None] if v.size and v.ndim == s.ndim else v
        for s, v in zip(scores, values, strict=True)
    ]
    width = max((v.shape[-1] for v in values if v.size), default=0)
    values = [
        v if v.size else np.zeros((*s.shape, width))
        for s, v in zip(scores, values, strict=True)
    ]
    return labcore.online_trace(scores, values)


@reads("chunks states scores|raw_scores values scale")
def online_softmax_merge(given: Given) -> Any:
    if "states" in given:
        states = [summary_of(state) for state in given["states"]]
        whole = states[0] if states else None
        nothing = [
            state._replace(maximum=np.full(state.maximum.shape, -np.inf))
            for state in states[:1]
        ]
        for state in states[1:] or nothing:  # one alone is merged too, and looked at
            whole = labcore.merge(whole, state)
    else:
        trace = chunks_of_scores(given)
        whole = trace[-1] if trace else None
    if whole is None:  # nothing merged is the neutral element
        return {"lse": -np.inf, "out": []}
    mass = np.where(whole.mass == 0, 1.0, whole.mass)  # of no key the output is 0
    out = labcore.finish(whole._replace(mass=mass))
    return {"lse": plain(whole.lse), "out": plain(out)}


FEATURES: dict[str, Callable[[Any], Any]] = {
    "elu+1": labcore.elu_plus_one,
    "relu": labcore.relu,
    "identity": lambda x: np.asarray(x, float),
    "exp": lambda x: np.exp(np.asarray(x, float)),
}


def feature_of(given: Given) -> Callable[[Any], Any]:
    return FEATURES[one_of("feature", given.get("feature", "elu+1"), *FEATURES)]


@reads("x feature|feature_map|phi dtype")
def feature_map(given: Given) -> Any:
    return plain(feature_of(given)(array(given["x"], given)))


@reads(
    "q k v feature|feature_map|phi causal chunk|chunk_size "
    "S0|state|initial|initial_state z0|z|initial_z dtype"
)
def linear_attention(given: Given) -> Any:
    feature = feature_of(given)
    fq, fk = (feature(array(given[name], given)) for name in "qk")
    v = array(given["v"], given)
    if not given.get("causal", True):
        if "chunk" in given or "S0" in given:
            raise ValueError("chunk and S0 belong to causal=True")
        out = labcore.kernel_attention(fq, fk, v, causal=False)
        state = np.swapaxes(fk, -1, -2) @ v
        return {"out": plain(out), "state": plain(state), "z": plain(fk.sum(axis=-2))}
    initial = None
    if "S0" in given or "z0" in given:
        initial = labcore.KernelState(np.asarray(given["S0"]), np.asarray(given["z0"]))
    if "chunk" in given:
        out, end = labcore.kernel_attention_chunked(
            fq, fk, v, chunk=given["chunk"], initial=initial
        )
    else:
        out, end = labcore.kernel_attention_recurrent(fq, fk, v, initial=initial)
    return {"out": plain(out), "state": plain(end.S), "z": plain(end.z)}


GATES = "k v beta alpha|retention|decay|gate log_alpha|log_decay|g q"
WRITES = GATES + " S0|S|state|initial|initial_state"


@reads(WRITES + " steps chunk|chunk_size", "deltanet", "gated_deltanet")
def writes(given: Given) -> Any:
    """One write or several, then a read; with or without decay."""
    if "steps" in given:
        steps = [fields(step, GATES, "a step") for step in given["steps"]]
    elif np.ndim(given["k"]) == 2:
        return sequence(given)
    else:
        steps = [given]
    if "chunk" in given:
        raise ValueError("chunk belongs to a sequence: k must be (n, d_k)")
    S = np.asarray(given["S0"], float) if "S0" in given or not steps else None
    reads = []
    for step in steps:
        k, v = np.asarray(step["k"], float), np.asarray(step["v"], float)
        S = np.zeros((k.size, v.size)) if S is None else S
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


del RUN["writes"]  # its name here; the cases call it by the others


def retention(step: Given, given: Given) -> Any:
    for source in (step, given):
        if "alpha" in source and "log_alpha" in source:
            raise ValueError("alpha and log_alpha are two names of one thing")
        if "alpha" in source:
            return source["alpha"]
        if "log_alpha" in source:
            return plain(np.exp(source["log_alpha"]))
    return None


def sequence(given: Given) -> Any:
    """Whole arrays of tokens, one read a token."""
    k, v = np.asarray(given["k"], float), np.asarray(given["v"], float)
    q = np.asarray(given.get("q", np.zeros_like(k)), float)
    beta = np.broadcast_to(np.asarray(given.get("beta", 1.0), float), k.shape[:-1])
    alpha = retention(given, given)
    if alpha is not None:
        alpha = np.asarray(alpha, float)
        by_channel = alpha.shape == k.shape[-1:] != k.shape[-2:-1]  # the same each step
        whole = k.shape if by_channel or alpha.ndim == k.ndim else k.shape[:-1]
        alpha = np.broadcast_to(alpha, whole)
    initial = given.get("S0")
    options = {"retention": alpha, "initial": initial}
    if "chunk" in given:
        out, S = labcore.delta_attention_chunked(
            q, k, v, beta, chunk=given["chunk"], **options
        )
    else:
        out, S = labcore.delta_attention(q, k, v, beta, **options)
    return {"state": plain(S)} | ({"out": plain(out)} if "q" in given else {})


@reads(WRITES + " steps chunk|chunk_size")
def kda(given: Given) -> Any:
    if "v" in given or "steps" in given:
        return writes(given)
    # Only a projection A and a decay D: written on the unit state they are matrices.
    k, beta = given["k"], given.get("beta", 1.0)
    alpha = np.asarray(retention(given, given), float)
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


LAYOUTS = {
    **dict.fromkeys(("interleaved", "pairs", "gptj"), "interleaved"),
    **dict.fromkeys(("half", "half-split", "half_split", "neox"), "half"),
}


@reads(
    "rule x pos|position|positions base|theta|rope_theta|rope_base layout dtype "
    "q k i|pos_q|m j|pos_k|n d|dim|head_dim|d_head"
)
def rope(given: Given) -> Any:
    if "rule" in given:
        rng = np.random.default_rng(0)
        q, k, v = rng.normal(size=(3, 2, 4))
        alone = np.eye(2, dtype=bool)
        read = labcore.rope_attention(q, k, v, [3, 5], allowed=alone)
        return {"v_changed": not np.array_equal(read, v)}
    spin = some(given, "base")
    if "layout" in given:
        spin["layout"] = LAYOUTS[one_of("layout", given["layout"], *LAYOUTS)]
    if "q" in given:
        q = labcore.rope(given["q"], given["i"], **spin)
        k = labcore.rope(given["k"], given["j"], **spin)
        return plain(q @ np.swapaxes(k, -1, -2) if k.ndim > 1 else q @ k)
    if "x" not in given:
        return plain(labcore.rope_frequencies(given["d"], **some(given, "base")))
    x = array(given["x"], given)
    position = given["pos"] if "pos" in given or x.ndim < 2 else np.arange(len(x))
    out = plain(labcore.rope(x, position, **spin, **exactly(given)))
    if np.ndim(position) == 0 and position == 0:
        turned = labcore.rope(x, 1729, **spin, **exactly(given))
        return {"out": out, "norm_sq_at_any_pos": float(np.sum(turned**2))}
    return out


@reads(
    "q_nope q_rope|q_rope_rotated c_kv|latent k_rope|k_rope_rotated W_uk|w_uk "
    "W_uv|w_uv form causal mask|allowed kv_rank|rank d_rope layers"
)
def mla(given: Given) -> Any:
    if "c_kv" not in given:
        return labcore.mla_cache_elements(
            given["kv_rank"], given["d_rope"], **some(given, "layers")
        )
    q_nope = np.asarray(given["q_nope"], float)
    q_rope = np.asarray(given["q_rope"], float)
    one_query = q_nope.ndim == 1
    if one_query:
        q_nope, q_rope = q_nope[None], q_rope[None]
    n_queries, n_keys = q_nope.shape[-2], np.shape(given["c_kv"])[-2]
    form = {"explicit": labcore.mla_explicit, "absorbed": labcore.mla_absorbed}
    read = form[one_of("form", given.get("form", "absorbed"), *form)](
        q_nope,
        q_rope,
        given["c_kv"],
        given["k_rope"],
        given["W_uk"],
        given["W_uv"],
        allowed=both(*masks(given, n_queries, n_keys)),
    )
    first = (lambda x: plain(x[..., 0, :])) if one_query else plain
    return {
        "out": first(read.output),
        "weights": first(read.weights),
        "raw_scores": first(read.scores),
    }


@reads(
    "p_target|p|target q_draft|q|draft q_raw draft_top_k call draft_token|token "
    "draft_tokens|tokens uniforms|uniform|u alpha|acceptance_rate gamma"
)
def speculative_decoding(given: Given) -> Any:
    if "alpha" in given:
        return labcore.expected_tokens(given["alpha"], given["gamma"])
    p = np.asarray(given["p_target"], float)
    answer: dict[str, Any] = {}
    if "q_raw" in given:
        q = np.asarray(given["q_raw"], float)
        if "draft_top_k" in given:
            q = labcore.top_k(q, given["draft_top_k"])
        answer["q_used"] = plain(q)
    else:
        q = np.asarray(given["q_draft"], float)
    if "draft_tokens" in given:
        uniforms = given["uniforms"]
        done = labcore.speculative_decode(p, q, given["draft_tokens"], uniforms)
        return {"accepted": done.accepted, "emitted": done.tokens}
    calls = {
        "residual": labcore.speculative_residual,
        "marginal": labcore.speculative_distribution,
        "acceptance": labcore.speculative_acceptance,
    }
    if "call" in given:
        call = one_of("call", given["call"], *calls)
        return {call: plain(calls[call](p, q))}
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


# ---- Sampling, losses, optimizers, compression, layers ------------------------------


def law_of(given: Given) -> np.ndarray:
    """A distribution from whatever a case gives, at its temperature."""
    t = given.get("T", 1.0)
    given_law = given.get("probs", given.get("probs_at_T1"))
    if given_law is None:
        logits = np.asarray(given["logits"], float)
    else:
        p = np.asarray(given_law, float)
        if t == 1.0:
            return p
        labcore.entropy(p)  # a law, or refused
        with np.errstate(divide="ignore"):
            logits = np.log(p)
    if t == 0:  # the limit: the largest, the first of them where several are
        return labcore.top_k(labcore.softmax(logits), 1)
    return labcore.temperature_softmax(logits, t)


@reads("logits|scores T|temperature|t|tau probs|p probs_at_T1 top_k|k top_p|mass")
def sampling(given: Given) -> Any:
    if isinstance(given.get("T"), list):
        return each(lambda t: sampling(given.but(T=t)), given["T"])
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
    if p.ndim > 1:
        return {"kept": [np.flatnonzero(row).tolist() for row in p], "probs": plain(p)}
    return {"kept": np.flatnonzero(p).tolist(), "probs": plain(p)}


@reads(
    "finished|hypotheses alpha|length_penalty step1 step2 beam|beam_width|beams|width"
)
def beam_search(given: Given) -> Any:
    if "finished" in given:
        done = [
            fields(h, "logprob|score tokens|length", "a hypothesis")
            for h in given["finished"]
        ]
        logprobs, lengths = ([h[name] for h in done] for name in ("logprob", "tokens"))
        lengths = [len(n) if isinstance(n, list) else n for n in lengths]
        answer = {}
        alphas = given.get("alpha", 0.0)
        for alpha in alphas if isinstance(alphas, list) else [alphas]:
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
    best = labcore.beam_search(next_logprobs, length=2, beam=given.get("beam", 1))[0]
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


@reads("logits targets|target|labels ignore_index dtype call reduction")
def cross_entropy(given: Given) -> Any:
    logits, targets = array(given["logits"], given), np.asarray(given["targets"])
    options = some(given, "ignore_index") | exactly(given)
    call = one_of("call", given.get("call", "loss"), "loss", "gradient")
    if call == "gradient" or given in GRADIENTS:
        return plain(labcore.cross_entropy_gradient(logits, targets, **options))
    kind = one_of("reduction", given.get("reduction", "mean"), "mean", "none", "sum")
    if kind == "mean":
        return plain(labcore.cross_entropy(logits, targets, **options))
    losses = labcore.token_losses(logits, targets, **options)
    return plain(losses if kind == "none" else losses.sum())


@reads("p q")
def kl(given: Given) -> Any:
    p, q = given["p"], given["q"]
    return {"KL_p_q": plain(labcore.kl(p, q)), "KL_q_p": plain(labcore.kl(q, p))}


@reads(
    "policy_chosen policy_rejected ref_chosen|reference_chosen "
    "ref_rejected|reference_rejected beta chosen_token_logps chosen_mask "
    "rejected_token_logps rejected_mask ref_chosen_token_logps ref_rejected_token_logps"
)
def dpo(given: Given) -> Any:
    def of_response(name: str, whole: str, tokens: str) -> Any:
        if tokens not in given:
            return given[whole]
        mask = given.get(f"{name}_mask")
        return plain(labcore.sequence_logprob(given[tokens], mask=mask))

    answer = {
        name: of_response(name, f"policy_{name}", f"{name}_token_logps")
        for name in ("chosen", "rejected")
    }
    loss = labcore.dpo_loss(
        answer["chosen"],
        answer["rejected"],
        of_response("chosen", "ref_chosen", "ref_chosen_token_logps"),
        of_response("rejected", "ref_rejected", "ref_rejected_token_logps"),
        beta=given["beta"],
    )
    return {**answer, "loss": plain(loss)}


@reads("ratio advantage|advantages eps|epsilon|clip logp_new logp_old")
def ppo_clip(given: Given) -> Any:
    if "logp_new" in given:
        new, old = (np.asarray(given[f"logp_{name}"], float) for name in ("new", "old"))
        r = np.exp(new - old)
    else:
        r = np.asarray(given["ratio"], float)
    a, options = np.asarray(given["advantage"], float), some(given, "eps")
    objective = labcore.ppo_clip(r, a, **options)
    slope = labcore.ppo_clip_gradient(r, a, **options)
    return {
        "objective": plain(objective),
        "loss": float(-np.mean(objective)),
        "d_objective_d_ratio": plain(slope),
    }


@reads("sim|similarities|similarity|logits tau|temperature|T positives direction")
def contrastive(given: Given) -> Any:
    one_of("positives", given.get("positives", "diagonal"), "diagonal")
    ways = {
        "rows": ("rows",),
        "columns": ("columns",),
        "both": ("rows", "columns"),
        "symmetric": ("rows", "columns"),
    }
    sim, tau = np.asarray(given["sim"], float), given["tau"]
    losses, gradients = [], []
    for way in ways[one_of("direction", given.get("direction", "rows"), *ways)]:
        turned = sim.T if way == "columns" else sim
        losses.append(labcore.contrastive_loss(turned, tau=tau))
        gradient = labcore.contrastive_gradient(turned, tau=tau)
        gradients.append(gradient.T if way == "columns" else gradient)
    loss, gradient = (np.mean(parts, axis=0) for parts in (losses, gradients))
    return {"loss": plain(loss), "grad_sim": plain(gradient)}


@reads("microbatches|batches")
def gradient_accumulation(given: Given) -> Any:
    keys = "loss_sum|sum loss_mean|mean tokens|n"
    batches = [fields(batch, keys, "a microbatch") for batch in given["microbatches"]]
    sums = [
        batch["loss_mean"] * batch["tokens"]
        if "loss_mean" in batch
        else batch["loss_sum"]
        for batch in batches
    ]
    return plain(
        labcore.accumulate_gradients(sums, [batch["tokens"] for batch in batches])
    )


@reads(
    "p0|w0|w|param|theta0 grads|gradients|grad|gradient lr|learning_rate "
    "weight_decay|wd beta1 beta2 betas eps|epsilon step|t"
)
def adamw(given: Given) -> Any:
    w = given.get("p0", 0.0)
    m = v = np.zeros_like(np.asarray(w, float)).tolist()
    options = some(given, "lr", "beta1", "beta2", "eps", "weight_decay")
    if "betas" in given:
        options["beta1"], options["beta2"] = given["betas"]
    grads = given.get("grads", [w])
    path = []
    for t, gradient in enumerate(
        grads if isinstance(grads, list) else [grads], given.get("step", 1)
    ):
        done = labcore.adamw_step(w, gradient, m, v, t, **options)
        w, m, v = done.w, done.m, done.v
        path.append(plain(w))
    return path


@reads("layers d_model|d r_and_matrices B A alpha r|rank")
def lora(given: Given) -> Any:
    if "r_and_matrices" in given:
        d = given["d_model"]
        return [
            labcore.lora_parameters(d, d, r, matrices=given.get("layers", 1) * n)
            for r, n in given["r_and_matrices"]
        ]
    B, A = np.asarray(given["B"], float), np.asarray(given["A"], float)
    delta = labcore.lora_update(B, A, **some(given, "alpha"))
    if given.get("r", A.shape[0]) != A.shape[0]:
        raise ValueError(f"r must be the rank of B and A, {A.shape[0]}")
    return {"delta": plain(delta), "rank": int(np.linalg.matrix_rank(delta))}


UNITS = {"bytes": 1.0, "1e9 bytes": 1e9, "GB": 1e9, "GiB": float(2**30)}


@reads("params|parameters|psi gpus|devices|n_gpus K|optimizer_bytes unit")
def zero_memory(given: Given) -> Any:
    options = {"optimizer_bytes": given["K"]} if "K" in given else {}
    names = ("baseline", "stage1", "stage2", "stage3")
    unit = UNITS[one_of("unit", given.get("unit", "bytes"), *UNITS)]
    return {
        name: labcore.zero_bytes_per_device(
            given["params"], devices=given["gpus"], stage=stage, **options
        )
        / unit
        for stage, name in enumerate(names)
    }


@reads("x scale qmax qmin bits axis")
def quantize_symmetric(given: Given) -> Any:
    x = np.asarray(given["x"], float)
    qmax = given.get("qmax", 2 ** (given.get("bits", 8) - 1) - 1)
    scale = given.get("scale")
    if scale is None:
        scale = plain(labcore.absmax_scale(x, qmax=qmax, **some(given, "axis")))
    q = labcore.quantize_symmetric(x, scale, qmax=qmax, **some(given, "qmin"))
    if "scale" in given:
        return plain(q)
    return {
        "scale": scale,
        "q": plain(q),
        "dequant": plain(labcore.dequantize(q, scale)),
        "max_abs_error_bound": plain(np.asarray(scale) / 2),
    }


@reads("text merges|rules text_utf8_hex|text_hex tokens_hex")
def bpe(given: Given) -> Any:
    if "tokens_hex" in given:
        return labcore.bpe_decode([bytes.fromhex(t) for t in given["tokens_hex"]])
    merges = [tuple(pair) for pair in given["merges"]]
    if "text_utf8_hex" in given:
        rules = [tuple(bytes.fromhex(half) for half in pair) for pair in merges]
        tokens = labcore.bpe_encode(bytes.fromhex(given["text_utf8_hex"]), rules)
        return {
            "tokens_hex": [token.hex() for token in tokens],
            "roundtrip": labcore.bpe_decode(tokens),
        }
    return labcore.bpe_encode(given["text"], merges)


@reads("text|corpus n_merges|num_merges|merges")
def bpe_train(given: Given) -> Any:
    merges = labcore.bpe_train(given["text"], given["n_merges"])
    return {
        "first_merge": list(merges[0]) if merges else [],
        "merges": [list(pair) for pair in merges],
        f"encoded_after_{given['n_merges']}": labcore.bpe_encode(given["text"], merges),
    }


@reads(ATTENTION + " grad_out|grad|grad_output|d_out|dout")
def attention_grad(given: Given) -> Any:
    q, k, v = (array(given[name], given) for name in "qkv")
    found = labcore.attention_gradients(
        q,
        k,
        v,
        array(given["grad_out"], given),
        allowed=both(*masks(given, q.shape[-2], k.shape[-2])),
        **some(given, "scale"),
        **exactly(given),
    )
    return {"dq": plain(found.dq), "dk": plain(found.dk), "dv": plain(found.dv)}


@reads("image_chw|image patch|patch_size layout W bias|b height|h width|w channels|c")
def patch_embedding(given: Given) -> Any:
    layout = given.get("layout", "channel-major")
    if not layout.startswith("channel-major"):
        raise ValueError(f"layout must be channel-major, got {layout!r}")
    if "image_chw" in given:
        patches = labcore.patchify(given["image_chw"], patch=given["patch"])
        if "W" in given:
            patches = labcore.linear(patches, given["W"], **some(given, "bias"))
        return plain(patches)
    blank = np.zeros((given.get("channels", 3), given["height"], given["width"]))
    patches = labcore.patchify(blank, patch=given["patch"])
    return {
        "patches": patches.shape[0],
        "patch_dim": patches.shape[1],
        "tokens_with_cls": patches.shape[0] + 1,
    }


@reads("x eps|epsilon weight|gamma|scale bias|beta dtype")
def layernorm(given: Given) -> Any:
    options = some(given, "eps", "weight", "bias") | exactly(given)
    return plain(labcore.layer_norm(array(given["x"], given), **options))


@reads("x eps|epsilon weight|gamma|scale dtype")
def rmsnorm(given: Given) -> Any:
    options = some(given, "eps", "weight") | exactly(given)
    return plain(labcore.rms_norm(array(given["x"], given), **options))


@reads("gate up x W_gate|w_gate W_up|w_up W_down|w_down")
def swiglu(given: Given) -> Any:
    if "x" not in given:
        return plain(labcore.swiglu(given["gate"], given["up"]))
    gate, up = (labcore.linear(given["x"], given[f"W_{n}"]) for n in ("gate", "up"))
    inner = labcore.swiglu(gate, up)
    return plain(labcore.linear(inner, given["W_down"]) if "W_down" in given else inner)


@reads("x fn|function|activation|name")
def activations(given: Given) -> Any:
    known = {"silu": labcore.silu, "swish": labcore.silu, "relu": labcore.relu}
    return plain(known[one_of("fn", given["fn"], *known)](given["x"]))


@reads(
    "weights tokens heads|n_heads norm_eps|eps rope rope_base|base|theta split|chunks"
)
def decoder(given: Given) -> Any:
    options = some(given, "heads", "norm_eps")
    options["rope_base"] = (
        given.get("rope_base", 10000.0) if given.get("rope", True) else None
    )
    if "split" in given:
        chunks = [
            len(part) if isinstance(part, list) else part for part in given["split"]
        ]
        logits = labcore.decoder_logits_cached(
            given["weights"], given["tokens"], chunks=chunks, **options
        )
    else:
        logits = labcore.decoder_logits(given["weights"], given["tokens"], **options)
    return {"logits": plain(logits), "last_logits": plain(logits[-1])}


# ---- Retrieval, evaluation, serving, state ------------------------------------------


@reads("docs|documents|corpus query k1 b N|n df term")
def bm25(given: Given) -> Any:
    options = some(given, "k1", "b")
    if "df" in given:
        return {"idf": each(lambda df: labcore.bm25_idf(given["N"], df), given["df"])}
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


@reads("lists|rankings c|k")
def rrf(given: Given) -> Any:
    fused = labcore.rrf(given["lists"], **some(given, "c"))
    scores = dict(fused)  # beside the rest, as the wrong answers are written
    return {"scores": scores, "order": [id for id, _ in fused], **scores}


@reads("q|query d|doc|document q_mask d_mask")
def maxsim(given: Given) -> Any:
    masks = some(given, "q_mask", "d_mask")
    return plain(labcore.maxsim(given["q"], given["d"], **masks))


@reads("points edges entry|start query k ef|beam")
def ann_greedy(given: Given) -> Any:
    points, edges, query = given["points"], given["edges"], given["query"]

    def walk(beam: int) -> list[tuple[str, float]]:
        return labcore.greedy_graph_search(
            points, edges, query, entry=given["entry"], beam=beam
        )

    [(best, distance)] = labcore.nearest(points, query)
    [(greedy, stopped)] = walk(1)
    answer = {f"ef{beam}": walk(beam)[0][0] for beam in (1, 2, 3, 4, 5, 8)}
    k = given.get("k", 1)
    returned = [id for id, _ in walk(max(k, given.get("ef", 1)))][:k]
    return {
        **answer,
        "exact_nn": best,
        "exact_distance": distance,
        "greedy": greedy,
        "greedy_distance": stopped,
        "returned": returned,
        "recall_at_1": labcore.recall(returned, [best], k=1),
    }


@reads("y_true|labels y_pred|predictions retrieved|ranked relevant k metric")
def precision_recall(given: Given) -> Any:
    if "y_true" in given:
        if len(given["y_true"]) != len(given["y_pred"]):
            raise ValueError("y_true and y_pred must be of one length")
        sets = [
            [i for i, label in enumerate(given[name]) if label]
            for name in ("y_pred", "y_true")
        ]
    else:
        sets = [given["retrieved"], given["relevant"]]
    k, metric = given.get("k"), given.get("metric")
    if metric in ("precision", "recall", "reciprocal_rank"):
        one = getattr(labcore, metric)(*sets, k=k)
        return {metric: one, f"{metric}_at_k": one}
    if metric is not None:
        one_of("metric", metric, "precision", "recall", "reciprocal_rank", "f1")
    both = labcore.precision_recall(*sets, k=k)._asdict()
    return both | {f"{name}_at_k": value for name, value in both.items()}


@reads("n c k p form")
def pass_at_k(given: Given) -> Any:
    forms = "finite-sample", "with-replacement"
    form = one_of("form", given.get("form", forms["p" in given]), *forms)
    if form == "with-replacement":
        return each(lambda k: plain(labcore.pass_at_k_iid(given["p"], k)), given["k"])
    return each(lambda k: labcore.pass_at_k(given["n"], given["c"], k), given["k"])


@reads("b c a d")
def mcnemar_exact(given: Given) -> Any:
    return labcore.mcnemar_exact(given["b"], given["c"])  # a and d do not matter


@reads("p|forecasts|probs y|outcomes|labels")
def brier(given: Given) -> Any:
    return plain(labcore.brier(given["p"], given["y"]))


@reads("A|a B|b")
def simpson(given: Given) -> Any:
    table = labcore.simpson_table(given["A"], given["B"])
    return {
        **{f"A_{name}": rate for name, rate in table.a.items()},
        **{f"B_{name}": rate for name, rate in table.b.items()},
        "A_total": table.total_a,
        "B_total": table.total_b,
        "reversal": table.reversal,
    }


@reads(
    "layers|n_layers kv_heads|n_kv_heads q_heads|n_q_heads|heads hidden|d_model "
    "head_dim|d_head bytes|bytes_per_element|dtype_bytes tokens|seq|seq_len batch "
    "kv_rank d_rope ref_layers ref_kv_heads ref_head_dim bits_mla bits_ref"
)
def kv_cache_bytes(given: Given) -> Any:
    if "kv_rank" in given:
        return latent_cache(given)
    size = labcore.kv_cache_bytes(
        layers=given["layers"],
        kv_heads=given["kv_heads"] if "kv_heads" in given else given["q_heads"],
        head_dim=given["head_dim"]
        if "head_dim" in given
        else given["hidden"] // given["q_heads"],
        bytes_per_element=given["bytes"],
        tokens=given.get("tokens", 1),
        batch=given.get("batch", 1),
    )
    tokens = given.get("tokens", 1) * given.get("batch", 1)
    per_token = size / tokens
    return {"bytes": size, "gib": size / 2**30, "bytes_per_token": per_token}


def latent_cache(given: Given) -> Any:
    layers = given.get("layers", 1)
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
        "bytes_per_token": elements * given.get("bytes", 2),
        "gqa_group_equivalent": per_layer / reference(1, 1, 1),
        "mha_elements_per_token": reference(layers, given.get("q_heads", 128), 1),
    }
    if "ref_layers" in given:
        shape = given["ref_layers"], given["ref_kv_heads"]
        bits = given.get("bits_mla", 16), given.get("bits_ref", 16)
        small, large = elements * bits[0] / 8, reference(*shape, bits[1] / 8)
        answer["ref_elements_per_token"] = reference(*shape, 1)
        answer["reduction"] = 1 - small / large
    return answer


@reads("request_time|start token_times|times chunks metric")
def latency_metrics(given: Given) -> Any:
    times, counts = given.get("token_times"), None
    if "chunks" in given:
        times = [time for time, _ in given["chunks"]]
        counts = [count for _, count in given["chunks"]]
    start = given.get("request_time", 0.0)
    measured = labcore.latency_metrics(start, times, counts=counts)
    if given.get("metric") == "tpot":
        return {"tpot": labcore.time_per_output_token(times, counts=counts)}
    answer = measured._asdict() | {"mean_gap_between_chunks": measured.mean_gap}
    if "metric" in given:
        metric = one_of("metric", given["metric"], *answer)
        return {metric: answer[metric]}
    return answer


@reads("durations after|deps|dependencies|depends_on")
def critical_path(given: Given) -> Any:
    return labcore.critical_path(given["durations"], given.get("after", {}))._asdict()


@reads(
    "arrivals departures horizon|T lambda|lam|arrival_rate|rate mu|service_rate model "
    "L W|time"
)
def queueing(given: Given) -> Any:
    one_of("model", given.get("model", "M/M/1"), "M/M/1")
    if "departures" in given:
        horizon = given.get("horizon", max(given["departures"], default=0))
        trace = labcore.queue_trace(
            given["arrivals"], given["departures"], horizon=horizon
        )
        return {"L": trace.L, "lambda": trace.rate, "W": trace.W}
    if "mu" in given:
        return labcore.mm1(given["lambda"], given["mu"])._asdict()
    if "L" in given:
        return {"W": given["L"] / given["lambda"]}
    return {"L": labcore.littles_law(given["lambda"], given["W"])}


PRODUCTS = ("y = W x", "y = Wx", "gemv", "matvec")


@reads(
    "flops bytes peak_flops|peak bandwidth n rows|m columns|cols "
    "bytes_per_value|dtype_bytes op"
)
def roofline(given: Given) -> Any:
    if "n" in given or "rows" in given:
        one_of("op", given.get("op", PRODUCTS[0]), *PRODUCTS)
        rows = given["rows"] if "rows" in given else given["n"]
        columns = given["columns"] if "columns" in given else given["n"]
        width = given["bytes_per_value"]
        return labcore.matvec_cost(rows, columns, bytes_per_value=width)._asdict()
    found = labcore.roofline(
        given["flops"],
        given["bytes"],
        peak_flops=given.get("peak_flops", 1.0),
        bandwidth=given.get("bandwidth", 1.0),
    )
    return found._asdict() | {"time_lower_bound_s": found.lower_bound_seconds}


@reads("N|params|parameters D|tokens layers d_model|d seq|seq_len|s")
def train_flops(given: Given) -> Any:
    if "N" in given:
        return labcore.train_flops(given["N"], given["D"])
    shape = {name: given[name] for name in ("layers", "d_model", "seq")}
    return {
        "forward_qk_plus_av_flops_full": labcore.attention_flops(**shape),
        "causal_half_plus_diagonal": labcore.attention_flops(**shape, causal=True),
    }


def chunks_of(given: Given) -> list[bytes]:
    if "chunks" in given:
        return [chunk.encode("utf-8") for chunk in given["chunks"]]
    return [bytes.fromhex(chunk) for chunk in given["chunks_hex"]]


@reads("chunks_hex chunks|chunks_text last_event_id")
def sse(given: Given) -> Any:
    stream = labcore.sse_decode(chunks_of(given), **some(given, "last_event_id"))
    events = [event._asdict() for event in stream.events]
    if stream.retry is None:
        return events
    return {"retry_ms": stream.retry, "events": events}


@reads("chunks_hex chunks|chunks_text flush|final")
def utf8_stream(given: Given) -> Any:
    text = labcore.utf8_stream(chunks_of(given), **some(given, "flush"))
    return {"per_chunk": text, "final": "".join(text)}


@reads("rows|facts|records queries")
def bitemporal(given: Given) -> Any:
    rows = [
        fields(row, "id value valid tx|known subject", "a row") for row in given["rows"]
    ]
    facts = [
        labcore.Fact(
            row.get("value"), *row["valid"], *row["tx"], **some(row, "subject")
        )
        for row in rows
    ]
    queries = given.get("queries", [[0, 0]])  # without a query the rows are looked at
    return [
        labcore.bitemporal_lookup(facts, valid_at=valid_at, known_at=known_at)
        for valid_at, known_at in queries
    ]


@reads("calls")
def idempotency(given: Given) -> Any:
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


@reads("start ops|swaps")
def compare_and_swap(given: Given) -> Any:
    start = fields(given["start"], "value version", "start")
    now, ok = labcore.Versioned(start.get("value"), start["version"]), []
    for step in given["ops"]:
        swap = fields(step, "expect|expected new|value", "a swap")
        done, now = labcore.compare_and_swap(
            now, expect=swap["expect"], new=swap.get("new")
        )
        ok.append(done)
    return {"ok": ok, "end": now._asdict()}


@reads("q|query k|keys v|values sigma shift dtype")
def laplacian_attention(given: Given) -> Any:
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
