"""Memory, time and money of serving: what must hold, and how it breaks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np

from ..ops.serving import (
    attention_flops,
    context_budget,
    cost_per_success,
    critical_path,
    error_budget,
    kv_cache_bytes,
    latency_metrics,
    littles_law,
    matvec_cost,
    mm1,
    queue_backlog,
    queue_trace,
    rate_limit,
    roofline,
    service_capacity,
    time_per_output_token,
    token_latency,
    train_flops,
)
from ._check import Inputs, Rng, nothing
from .worked import serving as chapter

LARGE = {"layers": 32, "kv_heads": 8, "head_dim": 128, "bytes_per_element": 2}
DIAMOND = {"B": ["A"], "C": ["A"], "D": ["B", "C"]}


# ---- What is drawn ----------------------------------------------------------------


def a_cache(rng: Rng, size: int) -> Inputs:
    """A small cache of float32, no two of its dimensions the same."""
    return {
        "layers": size + 1,
        "batch": size + 2,
        "tokens": size + 3,
        "kv_heads": size + 4,
        "head_dim": size + 5,
    }


def some_hardware(rng: Rng, size: int) -> Inputs:
    """A processor, and an intensity on either side of its ridge."""
    peak, bandwidth = rng.uniform(1, 3) * 1e14, rng.uniform(1, 3) * 1e12
    return {"peak": peak, "bandwidth": bandwidth, "factor": float(rng.uniform(2, 9))}


def a_product(rng: Rng, size: int) -> Inputs:
    """Rows and columns of a small matrix that is not square."""
    return {"rows": size + 1, "columns": 2 * size + 3}


def some_training(rng: Rng, size: int) -> Inputs:
    """Parameters and tokens, neither twenty times the other."""
    n = int(rng.integers(1, 10)) * 10**9
    return {"parameters": n, "tokens": 7 * n, "factor": size + 2}


def a_sequence(rng: Rng, size: int) -> Inputs:
    """Layers, width and tokens of a small decoder."""
    return {"layers": size + 1, "d_model": size + 2, "seq": size + 4}


def some_steps(rng: Rng, size: int) -> Inputs:
    """Times of one answer, in whole milliseconds, all of them different."""
    return {
        "queue": int(rng.integers(1, 50)),
        "prefill": int(rng.integers(50, 100)),
        "first": int(rng.integers(5, 9)),
        "step": int(rng.integers(10, 20)),
        "tokens": size + 2,
    }


def some_chunks(rng: Rng, size: int) -> Inputs:
    """Chunks of unequal sizes whose tokens come at a constant pace."""
    counts = [1, *rng.integers(2, 6, size=size + 1).tolist()]
    return {
        "counts": counts,
        "request_time": float(rng.uniform(1, 2)),
        "ttft": float(rng.uniform(0.3, 0.6)),
        "pace": float(rng.uniform(0.05, 0.1)),
    }


def a_plan(rng: Rng, size: int) -> Inputs:
    """Tasks in layers, each waiting for some of the layer before; whole durations."""
    names = [f"{layer}{i}" for layer in "abc" for i in range(size + 1)]
    durations = {name: int(rng.integers(1, 9)) for name in names}
    after: dict[str, list[str]] = {}
    for above, below in ("ab", "bc"):
        for i in range(size + 1):
            chosen = rng.permutation(size + 1)[: 1 + i % 2].tolist()
            after[f"{below}{i}"] = [f"{above}{j}" for j in chosen]
    durations["b1"], durations["c1"] = 30, 50  # the end waits for the second named
    after["c1"] = ["b0", "b1"]
    mixed = rng.permutation(names).tolist()  # named in any order
    return {"durations": {name: durations[name] for name in mixed}, "after": after}


def some_visits(rng: Rng, size: int) -> Inputs:
    """Visits of whole length that overlap, out of order, with idle time after them."""
    n = size + 2
    arrivals = rng.integers(0, 2 * n, size=n)
    departures = arrivals + rng.integers(1, 6, size=n)
    return {
        "arrivals": arrivals.astype(float),
        "departures": departures.astype(float),
        "horizon": float(departures.max() + 2),
    }


def some_rates(rng: Rng, size: int) -> Inputs:
    """Arrivals and services a second, the server busy between 30 and 70 percent."""
    service = float(rng.uniform(2, 9))
    return {"arrival": service * float(rng.uniform(0.3, 0.7)), "service": service}


def a_flow(rng: Rng, size: int) -> Inputs:
    """More come than go, in whole numbers a second."""
    capacity = int(rng.integers(2, 9))
    return {
        "arrivals": capacity + int(rng.integers(1, 5)),
        "capacity": capacity,
        "seconds": size + 3,
        "initial": int(rng.integers(1, 9)),
    }


def a_window(rng: Rng, size: int) -> Inputs:
    """A window, and more evidence than fits; small pieces stand behind large ones."""
    fixed = rng.integers(20, 60, size=size + 1).tolist()
    output, margin = int(rng.integers(50, 99)), int(rng.integers(5, 20))
    evidence = [90, 500, *rng.integers(20, 90, size=size + 2).tolist(), 5]
    return {
        "window": output + margin + sum(fixed) + 200,
        "output": output,
        "margin": margin,
        "fixed": fixed,
        "evidence": evidence,
    }


def some_attempts(rng: Rng, size: int) -> Inputs:
    """Attempts with a price each, of which some succeed."""
    n = 3 * size + 2
    return {
        "prices": rng.integers(1, 9, size=n).tolist(),
        "outcomes": [int(i % 3 == 0) for i in range(n)],
    }


# ---- Bytes and operations: what must hold --------------------------------------------


@chapter.check(
    "kv_cache_units",
    "96 bytes for a toy, 128 KiB a token and 4 GiB for 32768 tokens of a large model.",
    draw=nothing,
    kind="exact",
)
def _():
    # 2 * 2 * 3 * 1 * 2 * 4 = 96. A token: 2 * 2^5 * 2^3 * 2^7 * 2 = 2^17 bytes; 2^15
    # of them, 2^32.
    tiny = kv_cache_bytes(
        layers=2, kv_heads=1, head_dim=2, bytes_per_element=4, tokens=3
    )
    return (
        [tiny, kv_cache_bytes(**LARGE), kv_cache_bytes(**LARGE, tokens=2**15)],
        [96, 128 * 2**10, 4 * 2**30],
    )


@chapter.check(
    "kv_cache_allocated",
    "As many bytes as the arrays have.",
    draw=a_cache,
    kind="exact",
)
def _(layers, batch, tokens, kv_heads, head_dim):
    held = np.zeros((2, layers, batch, tokens, kv_heads, head_dim), np.float32)
    got = kv_cache_bytes(
        layers=layers,
        batch=batch,
        tokens=tokens,
        kv_heads=kv_heads,
        head_dim=head_dim,
        bytes_per_element=4,
    )
    return got, held.nbytes


@chapter.check(
    "kv_cache_refuses_no_heads",
    "A model without key-value heads is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: kv_cache_bytes(**{**LARGE, "kv_heads": 0}), "kv_heads"


@chapter.check(
    "roofline_units",
    "A gigaflop and 100 MB: 10 microseconds to compute, 100 to move, so 100.",
    draw=nothing,
    kind="value",
)
def _():
    # 1e9 / 1e14 = 1e-5 s; 1e8 / 1e12 = 1e-4 s.
    found = roofline(1e9, 1e8, peak_flops=1e14, bandwidth=1e12)
    got = [found.compute_seconds, found.transfer_seconds, found.lower_bound_seconds]
    return 1e6 * np.array(got), np.array([10.0, 100.0, 100.0])


@chapter.check(
    "roofline_two_sides",
    "Below the ridge memory bounds, above it compute; attained is work over time.",
    draw=some_hardware,
)
def _(peak, bandwidth, factor):
    ridge = peak / bandwidth
    low, high = (
        roofline(1e12, 1e12 / x, peak_flops=peak, bandwidth=bandwidth)
        for x in (ridge / factor, ridge * factor)
    )
    got = [low.ridge, low.intensity, low.attainable_flops, high.attainable_flops]
    want = [ridge, ridge / factor, peak / factor, peak]
    times = [low.lower_bound_seconds, high.lower_bound_seconds]
    return (
        (np.array(got), np.array(times)),
        (np.array(want), np.array([1e12 * factor / peak, 1e12 / peak])),
    )


@chapter.check(
    "roofline_names_the_bound",
    "What bounds is named: memory, compute, and compute on the ridge.",
    draw=nothing,
    kind="exact",
)
def _():
    return [
        roofline(flops, 1.0, peak_flops=8.0, bandwidth=2.0).bound
        for flops in (2.0, 4.0, 8.0)
    ], ["memory", "compute", "compute"]


@chapter.check(
    "matvec_counted",
    "A matrix times a vector, counted: a multiplication and an addition a weight.",
    draw=a_product,
)
def _(rows, columns):
    w, x = np.ones((rows, columns), np.float32), np.ones(columns, np.float32)
    y, flops = np.zeros(rows, np.float32), 0
    for i in range(rows):
        for j in range(columns):
            y[i] += w[i, j] * x[j]
            flops += 2
    moved = w.nbytes + x.nbytes + y.nbytes
    got = matvec_cost(rows, columns, bytes_per_value=4)
    return np.array(got, float), np.array([flops, moved, flops / moved])


@chapter.check(
    "train_flops_worked",
    "A billion parameters and twenty billion tokens: 1.2e20 operations.",
    draw=nothing,
    kind="value",
)
def _():
    # 2 forward and 4 backward for each of 10^9 * 2 * 10^10 pairs.
    return float(train_flops(10**9, 20 * 10**9)), 12e19


@chapter.check(
    "train_flops_trade",
    "More parameters and fewer tokens in proportion: the same operations.",
    draw=some_training,
)
def _(parameters, tokens, factor):
    more = train_flops(factor * parameters, tokens)
    return float(more), float(train_flops(parameters, factor * tokens))


@chapter.check(
    "attention_flops_counted",
    "Scores and weighted sums, counted pair by pair, with and without a causal mask.",
    draw=a_sequence,
    kind="exact",
)
def _(layers, d_model, seq):
    want = []
    for causal in (False, True):
        pairs = [(i, j) for i in range(seq) for j in range(seq) if not causal or j <= i]
        scores = weighted = 2 * d_model * len(pairs)
        want.append(layers * (scores + weighted))
    got = [
        attention_flops(layers=layers, d_model=d_model, seq=seq, causal=causal)
        for causal in (False, True)
    ]
    return got, want


# ---- Time: what must hold -----------------------------------------------------------


@chapter.check(
    "first_token_and_last",
    "The first token after 120 ms, the fourth after 180.",
    draw=nothing,
    kind="exact",
)
def _():
    # 40 + 60 + 20, and three more steps of 20.
    times = {"queue": 40, "prefill": 60, "first": 20, "step": 20}
    return [token_latency(1, **times), token_latency(4, **times)], [120, 180]


@chapter.check(
    "prefill_or_length",
    "Half the prefill saves 10 of 1010 ms, half the tokens 500.",
    draw=nothing,
    kind="exact",
)
def _():
    # The first token comes with the prefill: 20 + 99 * 10, 10 + 99 * 10, 20 + 49 * 10.
    whole = token_latency(100, prefill=20, step=10)
    faster = token_latency(100, prefill=10, step=10)
    shorter = token_latency(50, prefill=20, step=10)
    return [whole, faster, whole - shorter], [1010, 1000, 500]


@chapter.check(
    "latency_step_by_step",
    "The time of the last token is that of all steps in turn.",
    draw=some_steps,
    kind="exact",
)
def _(queue, prefill, first, step, tokens):
    clock = queue
    clock += prefill
    clock += first
    for _ in range(1, tokens):
        clock += step
    got = token_latency(tokens, queue=queue, prefill=prefill, first=first, step=step)
    return got, clock


@chapter.check(
    "tpot_constant_pace",
    "Tokens at a constant pace: the pace is found, whatever the chunks.",
    draw=some_chunks,
)
def _(counts, request_time, ttft, pace):
    times = request_time + ttft + pace * (np.cumsum(counts) - 1)
    got = latency_metrics(request_time, times.tolist(), counts=counts)
    end = ttft + pace * (sum(counts) - 1)
    gap = pace * (sum(counts) - 1) / (len(counts) - 1)
    one_each = time_per_output_token((3.0 + pace * np.arange(4)).tolist())
    want = [ttft, pace, end, gap]
    return (np.array(got), one_each), (np.array(want), pace)


@chapter.check(
    "tpot_without_first_wait",
    "A longer wait for the first token does not change the time per token after it.",
    draw=some_chunks,
)
def _(counts, request_time, ttft, pace):
    times = request_time + ttft + pace * (np.cumsum(counts) - 1)
    later = latency_metrics(request_time, (times + 5.0).tolist(), counts=counts)
    return later.tpot, latency_metrics(request_time, times.tolist(), counts=counts).tpot


@chapter.check(
    "one_token_has_no_pace",
    "One token has a first time and an end, and no time per token; two have all.",
    draw=nothing,
    kind="exact",
)
def _():
    one, two = latency_metrics(1.0, [1.5]), latency_metrics(1.0, [1.5, 1.75])
    return (tuple(one), tuple(two)), ((0.5, None, 0.5, None), (0.5, 0.25, 0.75, 0.25))


@chapter.check(
    "tpot_refuses_one_token",
    "The time between tokens needs two of them.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: time_per_output_token([0.3]), "token_times"


@chapter.check(
    "critical_path_diamond",
    "2, then 3 beside 5, then 1: eight, by way of the five.",
    draw=nothing,
    kind="exact",
)
def _():
    found = critical_path({"A": 2, "B": 3, "C": 5, "D": 1}, DIAMOND)
    # D starts at 2 + max(3, 5); B could end 2 later.
    return (
        (found.makespan, found.path, found.finish, found.slack),
        (
            8,
            ["A", "C", "D"],
            {"A": 2, "B": 5, "C": 7, "D": 8},
            {"A": 0, "B": 2, "C": 0, "D": 0},
        ),
    )


@chapter.check(
    "critical_path_after_change",
    "3 beside 5, then 2: a faster 3 changes nothing, a faster 5 makes it five.",
    draw=nothing,
    kind="exact",
)
def _():
    def whole(a, b):
        return critical_path({"A": a, "B": b, "merge": 2}, {"merge": ["A", "B"]})

    got = [whole(3, 5).makespan, whole(1, 5).makespan, whole(3, 2).makespan]
    return got, [7, 7, 5]


@chapter.check(
    "critical_path_all_chains",
    "The longest of all chains of tasks that wait for one another, and such a chain.",
    draw=a_plan,
    kind="exact",
)
def _(durations, after):
    longest = max(_chains(durations, after).values())
    found = critical_path(durations, after)
    linked = all(
        a in after[b] for a, b in zip(found.path, found.path[1:], strict=False)
    )
    return (
        (found.makespan, sum(durations[id] for id in found.path), linked),
        (longest, longest, True),
    )


@chapter.check(
    "critical_path_slack",
    "A task that ends later by its slack moves nothing, by one more it moves the end.",
    draw=a_plan,
    kind="exact",
)
def _(durations, after):
    found = critical_path(durations, after)
    got = []
    for id, slack in found.slack.items():
        for more in (0, 1):
            slower = {**durations, id: durations[id] + slack + more}
            got.append(max(_chains(slower, after).values()) - found.makespan)
    return got, [0, 1] * len(durations)


@chapter.check(
    "critical_path_refuses_circles",
    "Tasks that wait for each other never start.",
    draw=nothing,
    kind="refuses",
)
def _():
    waiting = {"A": ["B"], "B": ["A"]}
    return lambda: critical_path({"A": 1, "B": 1}, waiting), "after"


# ---- Queues: what must hold ---------------------------------------------------------


@chapter.check(
    "supercritical_queue",
    "Six a second, and ten slots of two seconds serve five: a hundred wait at last.",
    draw=nothing,
    kind="value",
)
def _():
    # 10 / 2 = 5 a second; (6 - 5) * 100.
    return float(queue_backlog(6, service_capacity(10, 2), 100)), 100.0


@chapter.check(
    "backlog_second_by_second",
    "The backlog, one second after another, growing and then draining to nothing.",
    draw=a_flow,
    kind="exact",
)
def _(arrivals, capacity, seconds, initial):
    growing = draining = initial
    for _ in range(seconds):
        growing = max(0, growing + arrivals - capacity)
        draining = max(0, draining + capacity - arrivals)
    got = [
        queue_backlog(arrivals, capacity, seconds, initial=initial),
        queue_backlog(capacity, arrivals, seconds, initial=initial),
        queue_backlog(capacity, arrivals, 99, initial=initial),
    ]
    return got, [growing, draining, 0]


@chapter.check(
    "capacity_by_filling",
    "Slots that are always full finish this many a second.",
    draw=a_flow,
)
def _(arrivals, capacity, seconds, initial):
    service, whole = arrivals, arrivals * seconds
    finished = sum(t % arrivals == 0 for t in range(1, whole + 1))
    return service_capacity(capacity, service), capacity * finished / whole


@chapter.check(
    "littles_law_measured",
    "The number inside, counted over time, is the rate times the time inside.",
    draw=some_visits,
)
def _(arrivals, departures, horizon):
    trace = queue_trace(arrivals, departures, horizon=horizon)
    return np.float64(trace.L), np.float64(littles_law(trace.rate, trace.W))


@chapter.check(
    "queue_trace_by_seconds",
    "Number inside, second by second; visits a second; the mean visit.",
    draw=some_visits,
)
def _(arrivals, departures, horizon):
    visits = list(zip(arrivals, departures, strict=True))
    inside = [sum(a <= t < d for a, d in visits) for t in range(int(horizon))]
    want = [
        np.mean(inside),
        len(visits) / horizon,
        np.mean([d - a for a, d in visits]),
    ]
    return np.array(queue_trace(arrivals, departures, horizon=horizon)), np.array(want)


@chapter.check(
    "littles_law_worked",
    "Four a second that stay three seconds: twelve inside.",
    draw=nothing,
    kind="exact",
)
def _():
    # In any three seconds twelve arrive; those and no others are inside at their end.
    return littles_law(4, 3), sum(1 for tick in range(12) if tick / 4 < 3)


@chapter.check(
    "mm1_balance",
    "The steady state from its balance equations: what goes up comes down.",
    draw=some_rates,
)
def _(arrival, service):
    # pi_(n+1) = pi_n arrival/service, summed to 1: cut off where it is below 1e-30.
    n = np.arange(250)
    pi = (arrival / service) ** n
    pi /= math.fsum(pi)
    inside = math.fsum(n * pi)
    waiting = math.fsum(np.maximum(n - 1, 0) * pi)
    want = [1 - pi[0], inside, waiting, inside / arrival, waiting / arrival]
    return np.array(mm1(arrival, service)), np.array(want)


@chapter.check(
    "mm1_refuses_overload",
    "A server with as much work as it can do has no steady state.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: mm1(10, 10), "arrival_rate"


# ---- Budgets: what must hold --------------------------------------------------------


@chapter.check(
    "error_budget_worked",
    "One percent of ten thousand, of which eighty are used: twenty are left.",
    draw=nothing,
    kind="exact",
)
def _():
    return tuple(error_budget(10000, 0.99, 80)), (100, 80, 100 - 80)


@chapter.check(
    "error_budget_decimals",
    "A level of 90, 99, 99.9 percent allows one failure in 10, 100, 1000 requests.",
    draw=nothing,
    kind="exact",
)
def _():
    levels = [0.9, 0.99, 0.999, 0.9999, 0.99999]
    got = [error_budget(10 ** (i + 1), slo, 0).allowed for i, slo in enumerate(levels)]
    return [*got, error_budget(150, 0.99, 0).allowed], [1, 1, 1, 1, 1, 1]


@chapter.check(
    "rate_limit_dimensions",
    "Four requests of 2000 tokens: within 60 requests, over 6000 tokens.",
    draw=nothing,
    kind="exact",
)
def _():
    limits = {"request_limit": 60, "token_limit": 6000}
    loads = [(4, 4 * 2000), (3, 3 * 2000), (61, 61), (60, 6000), (61, 6001)]
    got = [tuple(rate_limit(*load, **limits)) for load in loads]
    want: list[tuple[bool, tuple[str, ...]]] = [
        (False, ("tokens",)),
        (True, ()),
        (False, ("requests",)),
        (True, ()),
        (False, ("requests", "tokens")),
    ]
    return got, want


@chapter.check(
    "context_budget_worked",
    "A window of 1000, less the answer and all that is fixed: 350 for evidence.",
    draw=nothing,
    kind="exact",
)
def _():
    got = context_budget(
        1000, output=200, margin=50, fixed=[150, 100, 150], evidence=[180, 120]
    )
    # 1000 - 200 - 50 = 750; less 400, 350; 180 + 120 fit; 400 + 300 used.
    return tuple(got), (750, 400, 350, (180, 120), 700)


@chapter.check(
    "context_budget_by_choice",
    "Evidence enters in the order of rank while it fits; smaller pieces may follow.",
    draw=a_window,
    kind="exact",
)
def _(window, output, margin, fixed, evidence):
    # Of all selections the one that says yes as early as it can.
    fitting = [
        choice
        for choice in product((1, 0), repeat=len(evidence))
        if np.dot(choice, evidence) <= window - output - margin - sum(fixed)
    ]
    first = max(fitting)
    best = tuple(s for s, taken in zip(evidence, first, strict=True) if taken)
    got = context_budget(
        window, output=output, margin=margin, fixed=fixed, evidence=evidence
    )
    room = 200  # as the window was drawn
    return (got.selected, got.evidence, got.used), (best, room, sum(fixed) + sum(best))


@chapter.check(
    "cost_with_failures",
    "70 for 40 successes is dearer than 100 for 80.",
    draw=nothing,
    kind="order",
)
def _():
    return cost_per_success(70, 40), cost_per_success(100, 80)


@chapter.check(
    "cost_of_attempts",
    "Failures are paid for by the successes.",
    draw=some_attempts,
)
def _(prices, outcomes):
    # As a fraction: every success carries an equal share of all prices.
    share = sum(Fraction(price, sum(outcomes)) for price in prices)
    return cost_per_success(sum(prices), sum(outcomes)), float(share)


@chapter.check(
    "cost_refuses_no_success",
    "Without a success there is no price of one.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: cost_per_success(100, 0), "successes"


def _chains(durations: Mapping[str, int], after: Mapping[str, list[str]]) -> Any:
    """The length of every chain of tasks that wait for one another."""
    chains: dict[tuple[str, ...], int] = {}
    todo: list[tuple[str, ...]] = [(id,) for id in durations]
    while todo:
        chain = todo.pop()
        chains[chain] = sum(durations[id] for id in chain)
        todo += [(before, *chain) for before in after.get(chain[0], ())]
    return chains


# ---- Bytes and operations: how it breaks ---------------------------------------------


@chapter.fault(
    "kv_cache_keys_only",
    "keys are counted and values forgotten",
    operation="kv_cache_bytes",
    story="The factor 2 that is left out of every second back-of-envelope estimate.",
    made_for="kv_cache_units",
    stays_green="kv_cache_refuses_no_heads",
)
def _(*, layers, kv_heads, head_dim, bytes_per_element, tokens=1, batch=1):
    return layers * batch * tokens * kv_heads * head_dim * bytes_per_element


@chapter.fault(
    "kv_cache_bits_for_bytes",
    "the width of a number is taken for bits",
    operation="kv_cache_bytes",
    story="fp16 is 16 bits; a configuration that says 2 means bytes.",
    made_for="kv_cache_units",
    stays_green="kv_cache_refuses_no_heads",
)
def _(*, layers, kv_heads, head_dim, bytes_per_element, tokens=1, batch=1):
    return 2 * layers * batch * tokens * kv_heads * head_dim * bytes_per_element // 8


@chapter.fault(
    "kv_cache_no_batch",
    "one sequence is counted, whatever the batch",
    operation="kv_cache_bytes",
    story="A plan for one user, deployed for sixteen.",
    made_for="kv_cache_allocated",
    stays_green="kv_cache_units",
)
def _(*, layers, kv_heads, head_dim, bytes_per_element, tokens=1, batch=1):
    return 2 * layers * tokens * kv_heads * head_dim * bytes_per_element


@chapter.fault(
    "kv_cache_takes_no_heads",
    "no head is no memory",
    operation="kv_cache_bytes",
    story="A missing key of the configuration read as 0.",
    made_for="kv_cache_refuses_no_heads",
    stays_green="kv_cache_units",
    unguarded=True,
)
def _(*, layers, kv_heads, head_dim, bytes_per_element, tokens=1, batch=1):
    return 2 * layers * batch * tokens * kv_heads * head_dim * bytes_per_element


@chapter.fault(
    "roofline_adds_times",
    "the two times are added",
    operation="roofline",
    story="No overlap at all: an estimate, and not the lower bound that it is called.",
    made_for="roofline_units",
    stays_green="roofline_names_the_bound",
)
def _(flops, bytes, *, peak_flops, bandwidth):
    found = roofline(flops, bytes, peak_flops=peak_flops, bandwidth=bandwidth)
    return found._replace(
        lower_bound_seconds=found.compute_seconds + found.transfer_seconds
    )


@chapter.fault(
    "roofline_compute_only",
    "peak operations decide, whatever is moved",
    operation="roofline",
    story=(
        "The number on the data sheet: right for large products, a hundred times off "
        "for one token."
    ),
    made_for="roofline_two_sides",
    stays_green="train_flops_worked",
)
def _(flops, bytes, *, peak_flops, bandwidth):
    found = roofline(flops, bytes, peak_flops=peak_flops, bandwidth=bandwidth)
    return found._replace(
        lower_bound_seconds=found.compute_seconds, attainable_flops=peak_flops
    )


@chapter.fault(
    "roofline_bound_inverted",
    "the faster of the two is named as the bound",
    operation="roofline",
    story="Bound by memory, or limited by it least: the word is read both ways.",
    made_for="roofline_names_the_bound",
    stays_green="roofline_units",
)
def _(flops, bytes, *, peak_flops, bandwidth):
    found = roofline(flops, bytes, peak_flops=peak_flops, bandwidth=bandwidth)
    return found._replace(bound="memory" if found.bound == "compute" else "compute")


@chapter.fault(
    "matvec_counts_pairs",
    "a multiplication with its addition counts once",
    operation="matvec_cost",
    story="MACs for FLOPs, between two columns of one table of hardware.",
    made_for="matvec_counted",
    stays_green="attention_flops_counted",
)
def _(rows, columns, *, bytes_per_value):
    found = matvec_cost(rows, columns, bytes_per_value=bytes_per_value)
    return found._replace(flops=rows * columns, intensity=found.intensity / 2)


@chapter.fault(
    "matvec_weights_only",
    "only the matrix is moved",
    operation="matvec_cost",
    story="Right to three digits for a large square matrix.",
    made_for="matvec_counted",
    stays_green="roofline_units",
)
def _(rows, columns, *, bytes_per_value):
    found = matvec_cost(rows, columns, bytes_per_value=bytes_per_value)
    moved = rows * columns * bytes_per_value
    return found._replace(bytes=moved, intensity=found.flops / moved)


@chapter.fault(
    "train_flops_forward_only",
    "two operations a parameter and token",
    operation="train_flops",
    story="The forward pass is a third of the work.",
    made_for="train_flops_worked",
    stays_green="train_flops_trade",
)
def _(parameters, tokens):
    return 2 * parameters * tokens


@chapter.fault(
    "train_flops_assumes_twenty",
    "twenty tokens a parameter are taken for granted",
    operation="train_flops",
    story=(
        "The ratio of one scaling study put in place of the tokens: most models since "
        "are trained on many more."
    ),
    made_for="train_flops_trade",
    stays_green="train_flops_worked",
)
def _(parameters, tokens):
    return 6 * parameters * 20 * parameters


@chapter.fault(
    "attention_flops_half",
    "a causal mask halves the pairs exactly",
    operation="attention_flops",
    story="The diagonal is forgotten: one pair in a short sequence, nothing in a long.",
    made_for="attention_flops_counted",
    stays_green="train_flops_worked",
)
def _(*, layers, d_model, seq, causal=False):
    full = layers * 4 * d_model * seq * seq
    return full // 2 if causal else full


@chapter.fault(
    "attention_flops_scores_only",
    "the weighted sum is not counted",
    operation="attention_flops",
    story="The two products have the same size; one of them has the famous name.",
    made_for="attention_flops_counted",
    stays_green="matvec_counted",
)
def _(*, layers, d_model, seq, causal=False):
    return attention_flops(layers=layers, d_model=d_model, seq=seq, causal=causal) // 2


# ---- Time: how it breaks ------------------------------------------------------------


@chapter.fault(
    "latency_counts_first_twice",
    "n tokens take n steps after the prefill",
    operation="token_latency",
    story="The first token comes with the prefill; the loop counts it again.",
    made_for="prefill_or_length",
    stays_green="tpot_constant_pace",
)
def _(tokens, *, queue=0, prefill=0, step, first=0):
    return queue + prefill + first + tokens * step


@chapter.fault(
    "latency_no_queue",
    "the clock starts when the request leaves the queue",
    operation="token_latency",
    story="Measured inside the server: the wait of the user is not in it.",
    made_for="first_token_and_last",
    stays_green="prefill_or_length",
)
def _(tokens, *, queue=0, prefill=0, step, first=0):
    return token_latency(tokens, prefill=prefill, step=step, first=first)


@chapter.fault(
    "tpot_divides_by_n",
    "the time after the first token is divided by all tokens",
    operation="time_per_output_token",
    story="Fence posts for gaps: small for long answers, half for two tokens.",
    made_for="tpot_constant_pace",
    stays_green="tpot_without_first_wait",
)
def _(token_times, *, counts=None):
    tokens = len(token_times) if counts is None else sum(counts)
    return (token_times[-1] - token_times[0]) / tokens


@chapter.fault(
    "tpot_is_gap",
    "the gap between chunks is reported as the time per token",
    operation="time_per_output_token",
    story=(
        "A server that sends several tokens at once looks slow to a client that counts "
        "chunks."
    ),
    made_for="tpot_constant_pace",
    stays_green="tpot_without_first_wait",
)
def _(token_times, *, counts=None):
    return (token_times[-1] - token_times[0]) / max(1, len(token_times) - 1)


@chapter.fault(
    "tpot_of_one_is_zero",
    "one token takes no time",
    operation="time_per_output_token",
    story="A default that improves the average of short answers.",
    made_for="tpot_refuses_one_token",
    stays_green="tpot_constant_pace",
    unguarded=True,
)
def _(token_times, *, counts=None):
    if len(token_times) == 1 and counts is None:
        return 0.0
    return time_per_output_token(token_times, counts=counts)


@chapter.fault(
    "tpot_with_first_wait",
    "the wait for the first token is spread over all",
    operation="latency_metrics",
    story="End to end divided by tokens: prefill and decoding cannot be told apart.",
    made_for="tpot_without_first_wait",
    stays_green="first_token_and_last",
)
def _(request_time, token_times, *, counts=None):
    found = latency_metrics(request_time, token_times, counts=counts)
    tokens = len(token_times) if counts is None else sum(counts)
    return found._replace(tpot=found.e2e / tokens)


@chapter.fault(
    "latency_one_token_zeroes",
    "what does not exist is 0",
    operation="latency_metrics",
    story="A dashboard shows a pace of 0 ms, which would be very fast.",
    made_for="one_token_has_no_pace",
    stays_green="tpot_constant_pace",
)
def _(request_time, token_times, *, counts=None):
    found = latency_metrics(request_time, token_times, counts=counts)
    return found._replace(tpot=found.tpot or 0.0, mean_gap=found.mean_gap or 0.0)


@chapter.fault(
    "critical_path_adds_all",
    "all durations are added",
    operation="critical_path",
    story="Work for time: what runs at once is paid in turn.",
    made_for="critical_path_diamond",
    stays_green="first_token_and_last",
)
def _(durations, after):
    found = critical_path(durations, after)
    return found._replace(makespan=sum(durations.values()))


@chapter.fault(
    "critical_path_longest_task",
    "the longest task decides",
    operation="critical_path",
    story="The slowest call is optimised, whether or not anybody waits for it.",
    made_for="critical_path_after_change",
    stays_green="critical_path_refuses_circles",
)
def _(durations, after):
    found = critical_path(durations, after)
    return found._replace(makespan=max(durations.values()))


@chapter.fault(
    "critical_path_first_reason",
    "a task waits for the first of its reasons only",
    operation="critical_path",
    story="A merge that starts when the first branch is back.",
    made_for="critical_path_diamond",
    stays_green="critical_path_refuses_circles",
)
def _(durations, after):
    return critical_path(
        durations, {id: list(before)[:1] for id, before in after.items()}
    )


@chapter.fault(
    "critical_path_no_slack",
    "slack is the time until the end",
    operation="critical_path",
    story="What waits behind a task is forgotten: all but the last look movable.",
    made_for="critical_path_slack",
    stays_green="critical_path_after_change",
)
def _(durations, after):
    found = critical_path(durations, after)
    slack = {id: found.makespan - end for id, end in found.finish.items()}
    return found._replace(slack=slack)


@chapter.fault(
    "critical_path_takes_circles",
    "a circle is cut where it is met",
    operation="critical_path",
    story="A visited set that keeps the walk finite, and the answer wrong.",
    made_for="critical_path_refuses_circles",
    stays_green="critical_path_diamond",
    unguarded=True,
)
def _(durations, after):
    try:
        return critical_path(durations, after)
    except ValueError:
        return critical_path(durations, {})


# ---- Queues: how it breaks ----------------------------------------------------------


@chapter.fault(
    "backlog_forgets_capacity",
    "what came, not what is left",
    operation="queue_backlog",
    story="Arrivals plotted as queue length.",
    made_for="supercritical_queue",
    stays_green="littles_law_measured",
)
def _(arrival_rate, capacity, seconds, *, initial=0):
    return initial + arrival_rate * seconds


@chapter.fault(
    "backlog_below_zero",
    "a queue may be negative",
    operation="queue_backlog",
    story="Idle time saved up for later: a server cannot work ahead.",
    made_for="backlog_second_by_second",
    stays_green="supercritical_queue",
)
def _(arrival_rate, capacity, seconds, *, initial=0):
    return initial + (arrival_rate - capacity) * seconds


@chapter.fault(
    "backlog_starts_empty",
    "what waited at the beginning is forgotten",
    operation="queue_backlog",
    story="Each interval computed by itself.",
    made_for="backlog_second_by_second",
    stays_green="supercritical_queue",
)
def _(arrival_rate, capacity, seconds, *, initial=0):
    return queue_backlog(arrival_rate, capacity, seconds)


@chapter.fault(
    "capacity_times_service",
    "slots times the time of service",
    operation="service_capacity",
    story="Slower service, more capacity: the units would have said so.",
    made_for="supercritical_queue",
    stays_green="littles_law_measured",
)
def _(slots, service_time):
    return slots * service_time


@chapter.fault(
    "littles_law_divides",
    "rate over time",
    operation="littles_law",
    story="L = lambda W solved for the wrong letter.",
    made_for="littles_law_measured",
    stays_green="queue_trace_by_seconds",
)
def _(rate, time):
    return rate / time


@chapter.fault(
    "trace_time_over_horizon",
    "the mean visit is averaged over the horizon",
    operation="queue_trace",
    story="Time inside per unit of time is L, called W.",
    made_for="queue_trace_by_seconds",
    stays_green="littles_law_worked",
)
def _(arrivals, departures, *, horizon):
    found = queue_trace(arrivals, departures, horizon=horizon)
    return found._replace(W=float(np.sum(np.subtract(departures, arrivals))) / horizon)


@chapter.fault(
    "trace_mean_over_events",
    "the number inside is averaged over arrivals, not over time",
    operation="queue_trace",
    story="What an arriving customer sees is not what a clock sees.",
    made_for="littles_law_measured",
    stays_green="littles_law_worked",
)
def _(arrivals, departures, *, horizon):
    found = queue_trace(arrivals, departures, horizon=horizon)
    seen = [
        sum(a <= t < d for a, d in zip(arrivals, departures, strict=True))
        for t in arrivals
    ]
    return found._replace(L=float(np.mean(seen)))


@chapter.fault(
    "mm1_waiting_for_inside",
    "the one being served is not counted",
    operation="mm1",
    story="L and L_q exchange their names between textbooks.",
    made_for="mm1_balance",
    stays_green="littles_law_measured",
)
def _(arrival_rate, service_rate):
    found = mm1(arrival_rate, service_rate)
    return found._replace(L=found.Lq, W=found.Wq)


@chapter.fault(
    "mm1_deterministic",
    "the wait of a server whose service always takes the same",
    operation="mm1",
    story="M/D/1 for M/M/1: exactly half of the wait.",
    made_for="mm1_balance",
    stays_green="littles_law_worked",
)
def _(arrival_rate, service_rate):
    found = mm1(arrival_rate, service_rate)
    return found._replace(
        Lq=found.Lq / 2,
        Wq=found.Wq / 2,
        L=found.L - found.Lq / 2,
        W=found.W - found.Wq / 2,
    )


@chapter.fault(
    "mm1_takes_overload",
    "the formula is used above capacity too",
    operation="mm1",
    story="A negative queue length has been shown on a dashboard.",
    made_for="mm1_refuses_overload",
    stays_green="mm1_balance",
    unguarded=True,
)
def _(arrival_rate, service_rate):
    if arrival_rate < service_rate:
        return mm1(arrival_rate, service_rate)
    return mm1(0, service_rate)._replace(L=math.inf)


# ---- Budgets: how it breaks ---------------------------------------------------------


@chapter.fault(
    "error_budget_binary",
    "the allowed share is computed in binary and cut off",
    operation="error_budget",
    story="1 - 0.9999 is less than 0.0001: one failure in ten thousand becomes none.",
    made_for="error_budget_decimals",
    stays_green="error_budget_worked",
)
def _(requests, slo, errors):
    allowed = math.floor((1 - slo) * requests)
    return error_budget(requests, slo, errors)._replace(
        allowed=allowed, remaining=allowed - errors
    )


@chapter.fault(
    "error_budget_of_successes",
    "the level itself is taken for the budget",
    operation="error_budget",
    story="99 percent may fail: what a config with the wrong sign of meaning allows.",
    made_for="error_budget_worked",
    stays_green="rate_limit_dimensions",
)
def _(requests, slo, errors):
    allowed = math.floor(slo * requests)
    return error_budget(requests, slo, errors)._replace(
        allowed=allowed, remaining=allowed - errors
    )


@chapter.fault(
    "error_budget_rounds_up",
    "a started failure is allowed",
    operation="error_budget",
    story="The level is then broken by what the budget permits.",
    made_for="error_budget_decimals",
    stays_green="error_budget_worked",
)
def _(requests, slo, errors):
    allowed = math.ceil((1 - Fraction(str(slo))) * requests)
    return error_budget(requests, slo, errors)._replace(
        allowed=allowed, remaining=allowed - errors
    )


@chapter.fault(
    "rate_limit_one_of_two",
    "a load passes if it is within either limit",
    operation="rate_limit",
    story="Any for all: four requests are few, whatever is in them.",
    made_for="rate_limit_dimensions",
    stays_green="context_budget_worked",
)
def _(requests, tokens, *, request_limit, token_limit):
    found = rate_limit(
        requests, tokens, request_limit=request_limit, token_limit=token_limit
    )
    return found._replace(allowed=len(found.exceeded) < 2)


@chapter.fault(
    "rate_limit_requests_only",
    "only requests are counted",
    operation="rate_limit",
    story="The older of the two limits; the other comes back as an error of the API.",
    made_for="rate_limit_dimensions",
    stays_green="error_budget_worked",
)
def _(requests, tokens, *, request_limit, token_limit):
    return rate_limit(requests, 0, request_limit=request_limit, token_limit=token_limit)


@chapter.fault(
    "context_forgets_output",
    "the answer is thought to have a window of its own",
    operation="context_budget",
    story="The input fills the window, and the answer is cut off.",
    made_for="context_budget_worked",
    stays_green="rate_limit_dimensions",
)
def _(window, *, output, margin=0, fixed=(), evidence=()):
    return context_budget(
        window, output=0, margin=margin, fixed=fixed, evidence=evidence
    )


@chapter.fault(
    "context_stops_at_first",
    "the first piece that does not fit ends the selection",
    operation="context_budget",
    story="A break where a continue was meant: one long document starves the rest.",
    made_for="context_budget_by_choice",
    stays_green="context_budget_worked",
)
def _(window, *, output, margin=0, fixed=(), evidence=()):
    room = window - output - margin - sum(fixed)
    fitting: list[int] = []
    for size in evidence:
        if sum(fitting) + size > room:
            break
        fitting.append(size)
    return context_budget(
        window, output=output, margin=margin, fixed=fixed, evidence=fitting
    )


@chapter.fault(
    "cost_inverted",
    "successes for one unit of money",
    operation="cost_per_success",
    story="The better system has the higher number, and the table says cost.",
    made_for="cost_with_failures",
    stays_green="cost_refuses_no_success",
)
def _(total_cost, successes):
    return successes / total_cost


@chapter.fault(
    "cost_total_only",
    "the cheaper total wins",
    operation="cost_per_success",
    story="Prices compared without what they bought.",
    made_for="cost_with_failures",
    stays_green="cost_refuses_no_success",
)
def _(total_cost, successes):
    return float(total_cost)


@chapter.fault(
    "cost_of_no_success_is_total",
    "without a success the total is divided by one",
    operation="cost_per_success",
    story="max(1, n) against the division by zero: nothing for 100 looks cheap.",
    made_for="cost_refuses_no_success",
    stays_green="cost_of_attempts",
    unguarded=True,
)
def _(total_cost, successes):
    return total_cost / max(1, successes)
