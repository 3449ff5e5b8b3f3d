"""Worked examples of serving: memory, time, queues, budgets."""

from __future__ import annotations

from typing import Any

from ..ops.optim import zero_bytes_per_device
from ..ops.serving import (
    context_budget,
    cost_per_success,
    critical_path,
    error_budget,
    kv_cache_bytes,
    littles_law,
    queue_backlog,
    rate_limit,
    roofline,
    service_capacity,
    token_latency,
    train_flops,
)
from ._plain import whole
from ._registry import example

CHAPTER = "memory-quantization-serving"

CACHES = {
    "tiny": {
        "layers": 2,
        "tokens": 3,
        "kv_heads": 1,
        "head_dim": 2,
        "bytes_per_element": 4,
    },
    "large": {
        "layers": 32,
        "tokens": 32768,
        "kv_heads": 8,
        "head_dim": 128,
        "bytes_per_element": 2,
    },
}
WORK = {"A": 3, "B": 5, "merge": 2}


@example(
    "F16",
    "Every layer keeps its own keys and values: what a history weighs",
    chapter=CHAPTER,
    givens=CACHES,
    units="bytes; GiB and KiB are powers of 1024",
    title_zh="历史对话在每一层都占一份K/V",
)
def cache_sizes(tiny: Any, large: Any) -> dict[str, float]:
    """A toy cache in bytes, a long context in GiB, one token of it in KiB."""
    one_token = {**large, "tokens": 1}
    return {
        "tiny_bytes": int(kv_cache_bytes(**tiny)),
        "GiB": kv_cache_bytes(**large) / 2**30,
        "per_token_KiB": kv_cache_bytes(**one_token) / 2**10,
    }


example(
    "Q026",
    "From units to gibibytes: the cache of a long context",
    chapter=CHAPTER,
    givens=CACHES,
    units="bytes; GiB and KiB are powers of 1024",
    title_zh="按单位一步步算出长上下文的K/V占用",
    same_as="F16",
)(cache_sizes)


@example(
    "Q030",
    "When the first token comes, and when the fourth",
    chapter=CHAPTER,
    givens={"queue": 40, "prefill": 60, "first": 20, "step": 20, "tokens": 4},
    units="milliseconds",
)
def first_and_fourth(
    queue: int, prefill: int, first: int, step: int, tokens: int
) -> dict[str, float]:
    """Time to first token, time per token after it, and to the last of them."""
    times = {"queue": queue, "prefill": prefill, "first": first, "step": step}
    to_first = token_latency(1, **times)
    to_last = token_latency(tokens, **times)
    return {
        "queue_ms": queue,
        "prefill_ms": prefill,
        "first_step_ms": first,
        "TTFT_ms": to_first,
        "TPOT_ms": whole((to_last - to_first) / (tokens - 1)),
        "four_tokens_ms": to_last,
    }


@example(
    "R03-12",
    "A faster prefill or a shorter answer: which saves more",
    chapter=CHAPTER,
    givens={"prefill": 20, "step": 10, "tokens": (100, 50)},
    units="milliseconds",
)
def prefill_or_length(prefill: int, step: int, tokens: Any) -> dict[str, float]:
    """A hundred tokens; the same with half the prefill; half the tokens."""
    many, few = tokens
    halved = whole(prefill / 2)
    return {
        f"total{many}": token_latency(many, prefill=prefill, step=step),
        "half_prefill": token_latency(many, prefill=halved, step=step),
        f"total{few}": token_latency(few, prefill=prefill, step=step),
    }


@example(
    "Q049",
    "A context window is a budget: what is left for evidence",
    chapter=CHAPTER,
    givens={
        "window": 1000,
        "output": 200,
        "margin": 50,
        "fixed": (150, 100, 150),
        "evidence": (180, 120),
    },
    units="tokens",
)
def window_budget(
    window: int, output: int, margin: int, fixed: Any, evidence: Any
) -> dict[str, int]:
    """Set the answer aside, then the fixed parts, then choose evidence."""
    plan = context_budget(
        window, output=output, margin=margin, fixed=fixed, evidence=evidence
    )
    return {
        "input_budget": plan.input,
        "fixed": plan.fixed,
        "evidence_budget": plan.evidence,
        "selected_evidence": sum(plan.selected),
        "used_input": plan.used,
    }


@example(
    "Q076",
    "What one success costs, failures paid for",
    chapter=CHAPTER,
    givens={
        "A": {"total_cost": 100, "successes": 80},
        "B": {"total_cost": 70, "successes": 40},
    },
    units="cost",
)
def success_prices(**systems: Any) -> dict[str, Any]:
    """The total, the successes, and the one divided by the other."""
    return {
        name: {
            "total_cost": system["total_cost"],
            "successes": system["successes"],
            "cost_per_success": cost_per_success(**system),
        }
        for name, system in systems.items()
    }


@example(
    "S22",
    "Two prices of a success, with few failures",
    chapter=CHAPTER,
    givens={
        "A": {"total_cost": 1000, "successes": 990},
        "B": {"total_cost": 800, "successes": 980},
    },
    units="cost",
)
def close_prices(**systems: Any) -> dict[str, float]:
    """The cheaper run with a few more failures is the cheaper success."""
    return {
        f"{name}_cost_per_success": cost_per_success(**system)
        for name, system in systems.items()
    }


def side_by_side(times: Any) -> float:
    """A and B at once, then the merge that waits for both."""
    return critical_path(times, {"merge": ["A", "B"]}).makespan


@example(
    "Q078",
    "Two tools at once: the longer one counts, and so does the overhead",
    chapter=CHAPTER,
    givens={**WORK, "overhead": 4},
    units="seconds",
)
def parallel_tools(A: int, B: int, merge: int, overhead: int) -> dict[str, float]:
    """One after the other, at once, and at once with a coordinator to pay."""
    times = {"A": A, "B": B, "merge": merge}
    in_turn = critical_path(times, {"B": ["A"], "merge": ["B"]})
    slower = critical_path(
        {**times, "overhead": overhead},
        {"merge": ["A", "B"], "overhead": ["merge"]},
    )
    return {
        "serial_seconds": in_turn.makespan,
        "parallel_seconds": side_by_side(times),
        "parallel_with_4s_overhead": slower.makespan,
    }


@example(
    "Q097",
    "Speeding up what nobody waits for changes nothing",
    chapter=CHAPTER,
    givens={**WORK, "faster_A": 1, "faster_B": 2},
    units="seconds",
)
def optimize_one(
    A: int,
    B: int,
    merge: int,
    faster_A: int,
    faster_B: int,
) -> dict[str, float]:
    """The whole as it is, with a faster A, with a faster B."""
    times = {"A": A, "B": B, "merge": merge}
    return {
        "base": side_by_side(times),
        "A_optimized": side_by_side({**times, "A": faster_A}),
        "B_optimized": side_by_side({**times, "B": faster_B}),
    }


@example(
    "Q099",
    "Six arrivals a second where five can be served",
    chapter=CHAPTER,
    givens={
        "slots": 10,
        "mean_service_seconds": 2,
        "arrivals": 6,
        "seconds": 100,
        "steady_arrivals": 4,
        "steady_seconds": 3,
    },
    units="requests and seconds",
)
def overload(
    slots: int,
    mean_service_seconds: float,
    arrivals: float,
    seconds: float,
    steady_arrivals: float,
    steady_seconds: float,
) -> dict[str, float]:
    """Capacity, the backlog above it, and Little's law below it."""
    capacity = whole(service_capacity(slots, mean_service_seconds))
    return {
        "slots": slots,
        "mean_service_seconds": mean_service_seconds,
        "capacity_per_second": capacity,
        "arrivals_per_second": arrivals,
        "extra_backlog_after_100s": queue_backlog(arrivals, capacity, seconds),
        "steady_L_at_lambda4_W3": littles_law(steady_arrivals, steady_seconds),
    }


@example(
    "Q109",
    "Training operations, and the two ways to keep their number",
    chapter=CHAPTER,
    givens={"parameters": 10**9, "tokens": 20 * 10**9},
    units="FLOP; parameters; tokens",
)
def training_operations(parameters: int, tokens: int) -> dict[str, int]:
    """Six operations a parameter and token; twice the one needs half the other."""
    total = int(train_flops(parameters, tokens))
    doubled = 2 * parameters
    return {
        "C_FLOPs": total,
        "N_doubled": doubled,
        "D_halved": total // int(train_flops(doubled, 1)),
    }


@example(
    "R14-05",
    "An error budget: what may still fail",
    chapter=CHAPTER,
    givens={"requests": 10000, "slo": 0.99, "errors": 80},
    units="requests",
)
def budget_left(requests: int, slo: float, errors: int) -> dict[str, Any]:
    """Allowed, used and remaining failures of a service level."""
    budget = error_budget(requests, slo, errors)
    return {
        "requests": requests,
        "SLO": slo,
        "allowed_errors": budget.allowed,
        "used": budget.used,
        "remaining": budget.remaining,
    }


@example(
    "R14-07",
    "Four requests pass one limit and break the other",
    chapter=CHAPTER,
    givens={
        "requests": 4,
        "request_limit": 60,
        "tokens_per_request": 2000,
        "token_limit": 6000,
    },
    units="a minute",
)
def two_limits(
    requests: int, request_limit: int, tokens_per_request: int, token_limit: int
) -> dict[str, int]:
    """The load in both units, beside both limits."""
    tokens = requests * tokens_per_request
    decision = rate_limit(
        requests, tokens, request_limit=request_limit, token_limit=token_limit
    )
    if decision.exceeded != ("tokens",):
        raise ValueError(f"the tokens alone were to be too many, got {decision}")
    return {
        "requests": requests,
        "request_limit": request_limit,
        "tokens_per_request": tokens_per_request,
        "tokens": tokens,
        "token_limit": token_limit,
    }


@example(
    "S06",
    "Compute or memory: which bounds the time",
    chapter=CHAPTER,
    givens={"flops": 1e9, "bytes": 1e8, "peak_flops": 1e14, "bandwidth": 1e12},
    units="microseconds",
)
def time_bounds(
    flops: float, bytes: float, peak_flops: float, bandwidth: float
) -> dict[str, float]:
    """Each bound by itself, and what no overlap can beat."""
    bound = roofline(flops, bytes, peak_flops=peak_flops, bandwidth=bandwidth)
    micro = 1e6
    return {
        "compute_lower_bound_us": bound.compute_seconds * micro,
        "transfer_lower_bound_us": bound.transfer_seconds * micro,
        "ideal_overlap_lower_bound_us": whole(bound.lower_bound_seconds * micro),
    }


@example(
    "X05",
    "A thousand parameters on two devices: what each ZeRO stage divides",
    chapter=CHAPTER,
    givens={
        "parameters": 1000,
        "devices": 2,
        "weight_bytes": 4,
        "gradient_bytes": 4,
        "optimizer_bytes": 8,
    },
    units="bytes",
    title_zh="ZeRO各阶段把哪些训练状态分到各卡",
)
def training_state(
    parameters: int, devices: int, **bytes_each: float
) -> dict[str, float]:
    """The three kinds of state by themselves, then what one device holds."""

    def kept(stage: int, devices: int, **bytes_each: float) -> int:
        held = zero_bytes_per_device(
            parameters, devices=devices, stage=stage, **bytes_each
        )
        return int(held)

    def only(name: str) -> int:
        nothing = dict.fromkeys(bytes_each, 0)
        return kept(0, 1, **{**nothing, name: bytes_each[name]})

    return {
        "parameters": parameters,
        "P_bytes": only("weight_bytes"),
        "G_bytes": only("gradient_bytes"),
        "Adam_m_v_bytes": only("optimizer_bytes"),
        "data_parallel_per_device": kept(0, devices, **bytes_each),
        "zero1_per_device": kept(1, devices, **bytes_each),
        "zero2_per_device": kept(2, devices, **bytes_each),
        "zero3_per_device": kept(3, devices, **bytes_each),
    }


# The source's tests by program and name, each with the checks that stand for it.
NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_dag_critical_path"): ("critical_path_diamond",),
    ("additional_checks", "test_cache_units"): ("kv_cache_units",),
    ("additional_checks", "test_context_budget"): ("context_budget_worked",),
    ("additional_checks", "test_cost_with_failures"): ("cost_with_failures",),
    ("additional_checks", "test_critical_path_after_change"): (
        "critical_path_after_change",
    ),
    ("additional_checks", "test_error_budget"): ("error_budget_worked",),
    ("additional_checks", "test_prefill_off_by_one"): ("prefill_or_length",),
    ("additional_checks", "test_rate_limit_dimensions"): ("rate_limit_dimensions",),
    ("additional_checks", "test_roofline_units"): ("roofline_units",),
    ("additional_checks", "test_scale_pair_product"): (
        "train_flops_worked",
        "train_flops_trade",
    ),
    ("additional_checks", "test_supercritical_queue"): ("supercritical_queue",),
    ("additional_checks", "test_time_to_first_vs_completion"): (
        "first_token_and_last",
    ),
}
