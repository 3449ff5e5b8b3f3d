"""Memory, time and money of serving: bytes, bounds, queues, budgets.

Whole numbers in, whole numbers out where nothing is divided; fractions work too.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from . import _validate as must
from ._op import op


class Roofline(NamedTuple):
    """What bounds a computation: arithmetic or memory; times in seconds."""

    intensity: float
    ridge: float
    bound: str
    compute_seconds: float
    transfer_seconds: float
    lower_bound_seconds: float
    attainable_flops: float


class ProductCost(NamedTuple):
    """Operations and bytes of one product."""

    flops: int
    bytes: float
    intensity: float


class LatencyMetrics(NamedTuple):
    """What was measured of one answer, in the unit of its times."""

    ttft: float
    tpot: float | None
    e2e: float
    mean_gap: float | None


class CriticalPath(NamedTuple):
    """When each task can end at best, and which tasks decide it."""

    makespan: float
    path: list[Any]
    finish: dict[Any, float]
    slack: dict[Any, float]


class QueueTrace(NamedTuple):
    """Averages of a watched queue: number inside, arrivals a second, time inside."""

    L: float
    rate: float
    W: float


class MM1(NamedTuple):
    """The steady state of a single server with random arrivals and services."""

    rho: float
    L: float
    Lq: float
    W: float
    Wq: float


class ErrorBudget(NamedTuple):
    """How many requests may fail, have failed, may still fail."""

    allowed: int
    used: int
    remaining: int


class RateLimit(NamedTuple):
    """Whether a load passes, and which limits it exceeds."""

    allowed: bool
    exceeded: tuple[str, ...]


class ContextBudget(NamedTuple):
    """Where the tokens of a context window go."""

    input: int
    fixed: int
    evidence: int
    selected: tuple[int, ...]
    used: int


# ---- Bytes --------------------------------------------------------------------------


def _cache(
    *,
    layers: int,
    kv_heads: int,
    head_dim: int,
    bytes_per_element: float,
    tokens: int = 1,
    batch: int = 1,
) -> None:
    must.count(1, layers=layers, kv_heads=kv_heads, head_dim=head_dim, batch=batch)
    must.count(0, tokens=tokens)
    must.positive(bytes_per_element=bytes_per_element)


@op(_cache)
def kv_cache_bytes(
    *,
    layers: int,
    kv_heads: int,
    head_dim: int,
    bytes_per_element: float,
    tokens: int = 1,
    batch: int = 1,
) -> float:
    r"""Bytes of the keys and values that a decoder keeps.

    $$2 \cdot \text{layers} \cdot \text{batch} \cdot \text{tokens} \cdot
    \text{kv heads} \cdot d_{\text{head}} \cdot \text{bytes}$$

    The 2 is for K and V. kv_heads, not query heads; head_dim is a setting of its own
    and need not be the width divided by the heads. Bytes: divide by 2**30 for GiB, by
    10**9 for GB. Source: Ainslie et al. 2023 for the shared heads.

    >>> kv_cache_bytes(layers=32, kv_heads=8, head_dim=128, bytes_per_element=2)
    131072
    """
    elements = 2 * layers * batch * tokens * kv_heads * head_dim
    return elements * bytes_per_element


# ---- Operations ---------------------------------------------------------------------


def _hardware(
    flops: float, bytes: float, *, peak_flops: float, bandwidth: float
) -> None:
    must.positive(flops=flops, bytes=bytes, peak_flops=peak_flops, bandwidth=bandwidth)


def _product(rows: int, columns: int, *, bytes_per_value: float) -> None:
    must.count(1, rows=rows, columns=columns)
    must.positive(bytes_per_value=bytes_per_value)


def _training(parameters: float, tokens: float) -> None:
    must.positive(parameters=parameters, tokens=tokens)


def _sequence(*, layers: int, d_model: int, seq: int, causal: bool = False) -> None:
    must.count(1, layers=layers, d_model=d_model, seq=seq)


@op(_hardware)
def roofline(
    flops: float, bytes: float, *, peak_flops: float, bandwidth: float
) -> Roofline:
    r"""The least time a computation can take, whatever else it does.

    $$t \ge \max\left(\frac{\text{flops}}{\text{peak}},
    \frac{\text{bytes}}{\text{bandwidth}}\right)$$

    flops: floating-point operations, a multiply-add is two; bytes moved to and from
    memory; peak in FLOP/s, bandwidth in bytes/s. The larger term bounds it ("compute"
    or "memory"; on the ridge, where they are equal, "compute"). The maximum is right
    if both overlap fully: a lower bound, not a forecast.
    Source: Williams, Waterman and Patterson 2009.

    >>> bound = roofline(1e9, 1e8, peak_flops=1e14, bandwidth=1e12)
    >>> bound.bound, bound.lower_bound_seconds
    ('memory', 0.0001)
    """
    compute, transfer = flops / peak_flops, bytes / bandwidth
    intensity, ridge = flops / bytes, peak_flops / bandwidth
    return Roofline(
        intensity,
        ridge,
        "compute" if compute >= transfer else "memory",
        compute,
        transfer,
        max(compute, transfer),
        min(peak_flops, intensity * bandwidth),
    )


@op(_product)
def matvec_cost(rows: int, columns: int, *, bytes_per_value: float) -> ProductCost:
    """A matrix times a vector: what one decoded token does with one weight.

    2 rows columns operations; the matrix, the vector and the result are moved once.
    In 16 bits that is one operation a byte, far below any ridge.

    >>> matvec_cost(4096, 4096, bytes_per_value=2).flops
    33554432
    """
    flops = 2 * rows * columns
    moved = (rows * columns + columns + rows) * bytes_per_value
    return ProductCost(flops, moved, flops / moved)


@op(_training)
def train_flops(parameters: float, tokens: float) -> float:
    """Operations to train a dense Transformer, about 6 N D.

    parameters N, tokens D: 2 N a token forward, 4 N backward; a multiply-add is two.
    Without the attention scores, which :func:`attention_flops` counts.
    Sources: Kaplan et al. 2020; Hoffmann et al. 2022.

    >>> train_flops(10**9, 20 * 10**9) == 12 * 10**19
    True
    """
    return 6 * parameters * tokens


@op(_sequence)
def attention_flops(
    *, layers: int, d_model: int, seq: int, causal: bool = False
) -> int:
    """Operations of the scores and of the weighted sum, forward.

    Two products of 2 d_model operations for each pair of tokens: seq^2 pairs, or
    seq (seq + 1) / 2 where a query sees only its past, the diagonal included.

    >>> attention_flops(layers=1, d_model=64, seq=128)
    4194304
    """
    pairs = seq * (seq + 1) // 2 if causal else seq * seq
    return layers * 2 * 2 * d_model * pairs


# ---- Time ---------------------------------------------------------------------------


def _not_negative(**times: Any) -> None:
    for name, x in times.items():
        must.finite(**{name: float(x)})
        if x < 0:
            raise ValueError(f"{name} must not be negative, got {x}")


def _steps(
    tokens: int, *, queue: float = 0, prefill: float = 0, step: float, first: float = 0
) -> None:
    must.count(1, tokens=tokens)
    _not_negative(queue=queue, prefill=prefill, step=step, first=first)


def _timed(
    request_time: float,
    token_times: Sequence[float],
    *,
    counts: Sequence[int] | None = None,
) -> None:
    times = np.asarray(token_times, float)
    if times.ndim != 1 or times.size == 0:
        raise ValueError(f"token_times must be a list of times, got {token_times!r}")
    must.finite(request_time=float(request_time), token_times=times)
    if times[0] < request_time:
        raise ValueError(
            f"token_times begin before request_time: {times[0]} < {request_time}"
        )
    if np.any(np.diff(times) < 0):
        raise ValueError(f"token_times must not go back, got {token_times!r}")
    if counts is not None:
        must.same("chunks", counts=len(counts), token_times=len(token_times))
        for count in counts:
            must.count(1, counts=count)


def _several(
    token_times: Sequence[float], *, counts: Sequence[int] | None = None
) -> None:
    times = np.asarray(token_times, float)
    first = float(times.flat[0]) if times.size else 0.0
    _timed(first, token_times, counts=counts)
    if (len(token_times) if counts is None else sum(counts)) < 2:
        raise ValueError("token_times hold one token: TPOT needs at least two")


@op(_steps)
def token_latency(
    tokens: int, *, queue: float = 0, prefill: float = 0, step: float, first: float = 0
) -> float:
    """When the last of so many tokens is there.

    queue + prefill + first + (tokens - 1) step: the first token comes at the end of
    the prefill (plus first, where producing it takes a step of its own), and is
    followed by tokens - 1 steps. With tokens 1 this is the time to first token.

    >>> token_latency(1, queue=40, prefill=60, first=20, step=20)
    120
    >>> token_latency(4, queue=40, prefill=60, first=20, step=20)
    180
    """
    return queue + prefill + first + (tokens - 1) * step


@op(_several)
def time_per_output_token(
    token_times: Sequence[float], *, counts: Sequence[int] | None = None
) -> float:
    """Mean time between tokens after the first: (last - first) / (tokens - 1).

    token_times: when each arrived, or each chunk of counts tokens. The first token's
    time belongs to the prefill. Raises ValueError for a single token.

    >>> time_per_output_token([2.0, 6.0, 10.0], counts=[1, 4, 4])
    1.0
    """
    tokens = len(token_times) if counts is None else sum(counts)
    return (token_times[-1] - token_times[0]) / (tokens - 1)


@op(_timed)
def latency_metrics(
    request_time: float,
    token_times: Sequence[float],
    *,
    counts: Sequence[int] | None = None,
) -> LatencyMetrics:
    """Time to first token, per output token, to the end, and between arrivals.

    request_time and token_times on one clock; counts: tokens in each arrival, 1 unless
    given. With several tokens an arrival the gap between arrivals is not the time per
    token. tpot is None for one token, mean_gap for one arrival.

    >>> latency_metrics(0.0, [2.0, 6.0, 10.0], counts=[1, 4, 4])
    LatencyMetrics(ttft=2.0, tpot=1.0, e2e=10.0, mean_gap=4.0)
    """
    arrivals = len(token_times)
    tokens = arrivals if counts is None else sum(counts)
    whole = token_times[-1] - token_times[0]
    return LatencyMetrics(
        token_times[0] - request_time,
        time_per_output_token(token_times, counts=counts) if tokens > 1 else None,
        token_times[-1] - request_time,
        whole / (arrivals - 1) if arrivals > 1 else None,
    )


def _tasks(
    durations: Mapping[Any, float], after: Mapping[Any, Collection[Any]]
) -> None:
    if not durations:
        raise ValueError("durations is empty: there is no task")
    _not_negative(**{f"durations of {id!r}": x for id, x in durations.items()})
    for id, earlier in after.items():
        if isinstance(earlier, str) or not isinstance(earlier, Collection):
            raise ValueError(f"after must hold lists of tasks, got {earlier!r}")
        for task in (id, *earlier):
            if task not in durations:
                raise ValueError(f"after names {task!r}, a task without a duration")
    waits = {id: set(after.get(id, ())) for id in durations}
    while waits:
        ready = {id for id, earlier in waits.items() if not earlier & waits.keys()}
        if not ready:
            raise ValueError(f"after goes in a circle: {sorted(waits, key=str)}")
        waits = {id: earlier for id, earlier in waits.items() if id not in ready}


@op(_tasks)
def critical_path(
    durations: Mapping[Any, float], after: Mapping[Any, Collection[Any]]
) -> CriticalPath:
    r"""How long a set of tasks takes if whatever can run at once does.

    $$\mathrm{finish}_i = \mathrm{duration}_i + \max_{j \text{ before } i}
    \mathrm{finish}_j$$

    durations: task -> time; after: task -> the tasks it waits for. path is the longest
    chain; of equally long ones the one whose tasks are named first. slack is how much
    later a task may end without moving the whole.
    Raises ValueError for a circle and for a task without a duration.

    >>> plan = critical_path({"A": 3, "B": 5, "C": 2}, {"C": ["A", "B"]})
    >>> plan.makespan, plan.path, plan.slack["A"]
    (7, ['B', 'C'], 2)
    """
    before = {id: list(after.get(id, ())) for id in durations}
    order = _in_order(before)
    finish: dict[Any, float] = {}
    for id in order:
        finish[id] = durations[id] + max((finish[j] for j in before[id]), default=0)
    makespan = max(finish.values())
    latest = dict.fromkeys(durations, makespan)
    for id in reversed(order):
        for j in before[id]:
            latest[j] = min(latest[j], latest[id] - durations[id])
    path = [next(id for id in durations if finish[id] == makespan)]
    while before[path[0]]:
        path.insert(0, max(before[path[0]], key=finish.__getitem__))
    slack = {id: latest[id] - finish[id] for id in durations}
    return CriticalPath(makespan, path, finish, slack)


def _in_order(before: Mapping[Any, list[Any]]) -> list[Any]:
    """The tasks, each behind those it waits for; as they are named where free."""
    order: list[Any] = []
    while len(order) < len(before):
        waiting = (id for id in before if id not in order)
        order.append(next(id for id in waiting if set(before[id]) <= set(order)))
    return order


# ---- Queues -------------------------------------------------------------------------


def _slots(slots: int, service_time: float) -> None:
    must.count(1, slots=slots)
    must.positive(service_time=service_time)


def _flow(
    arrival_rate: float, capacity: float, seconds: float, *, initial: float = 0
) -> None:
    _not_negative(
        arrival_rate=arrival_rate, capacity=capacity, seconds=seconds, initial=initial
    )


def _little(rate: float, time: float) -> None:
    _not_negative(rate=rate, time=time)


def _watched(
    arrivals: Sequence[float], departures: Sequence[float], *, horizon: float
) -> None:
    must.positive(horizon=horizon)
    must.same("visits", arrivals=len(arrivals), departures=len(departures))
    if not len(arrivals):
        raise ValueError("arrivals is empty: there was nobody to watch")
    came, left = np.asarray(arrivals, float), np.asarray(departures, float)
    must.finite(arrivals=came, departures=left)
    if np.any(came < 0):
        raise ValueError(f"arrivals must not be before 0, got {came.min()}")
    if np.any(left < came):
        raise ValueError("departures must not be before their arrivals")
    if np.any(left > horizon):
        raise ValueError(
            f"horizon must be after every departure, got {horizon}: the system must "
            "end empty"
        )


def _steady(arrival_rate: float, service_rate: float) -> None:
    _not_negative(arrival_rate=arrival_rate)
    must.positive(service_rate=service_rate)
    if arrival_rate >= service_rate:
        raise ValueError(
            f"arrival_rate must be below service_rate = {service_rate}, got "
            f"{arrival_rate}: no steady state"
        )


@op(_slots)
def service_capacity(slots: int, service_time: float) -> float:
    """Requests a second that so many slots can finish: slots / service_time.

    >>> service_capacity(10, 2)
    5.0
    """
    return slots / service_time


@op(_flow)
def queue_backlog(
    arrival_rate: float, capacity: float, seconds: float, *, initial: float = 0
) -> float:
    """How many wait after a time, if rates are steady: what came less what could go.

    max(0, initial + (arrival_rate - capacity) seconds). Above capacity it grows
    without end, however long one waits; the randomness that makes queues below
    capacity is in :func:`mm1`.

    >>> queue_backlog(6, 5, 100)
    100
    """
    return max(0, initial + (arrival_rate - capacity) * seconds)


@op(_little)
def littles_law(rate: float, time: float) -> float:
    r"""How many are inside on average: $L = \lambda W$.

    rate: arrivals a second; time: seconds that each spends inside. Exact for any order
    of service and any distribution, where the system begins and ends empty or is
    steady. Source: Little 1961.

    >>> littles_law(4, 3)
    12
    """
    return rate * time


@op(_watched)
def queue_trace(
    arrivals: Sequence[float], departures: Sequence[float], *, horizon: float
) -> QueueTrace:
    """Averages of what was seen up to the horizon, each measured by itself.

    arrivals, departures: times of each visit, from 0 on, in the same order. L is the
    number inside, averaged over time by counting between events; rate is visits a
    second; W is the mean visit. Raises ValueError where someone is still inside at the
    horizon.

    >>> queue_trace([0, 1, 2], [3, 3, 5], horizon=5).L
    1.6
    """
    came, left = np.asarray(arrivals, float), np.asarray(departures, float)
    events = np.unique([*came, *left, float(horizon)])
    inside = [np.sum((came <= t) & (t < left)) for t in events[:-1]]
    area = float(np.sum(inside * np.diff(events)))
    n = len(came)
    return QueueTrace(area / horizon, n / horizon, float(np.mean(left - came)))


@op(_steady)
def mm1(arrival_rate: float, service_rate: float) -> MM1:
    r"""One server, random arrivals, random service: its steady state.

    $$\rho = \lambda / \mu, \quad L = \frac{\rho}{1 - \rho}, \quad
    W = \frac{1}{\mu - \lambda}, \quad L_q = \rho L, \quad W_q = \rho W$$

    Rates a second, exponential times; the q is for waiting, without the one served.
    Raises ValueError for rho >= 1, where the queue grows for ever.

    >>> [round(x, 6) for x in mm1(8, 10)]
    [0.8, 4.0, 3.2, 0.5, 0.4]
    """
    rho = arrival_rate / service_rate
    inside = arrival_rate / (service_rate - arrival_rate)
    time = 1 / (service_rate - arrival_rate)
    return MM1(rho, inside, rho * inside, time, rho * time)


# ---- Budgets ------------------------------------------------------------------------


def _service_level(requests: int, slo: float, errors: int) -> None:
    must.count(0, requests=requests, errors=errors)
    must.within(0.0, 1.0, slo=float(slo))
    if errors > requests:
        raise ValueError(f"errors must be at most requests = {requests}, got {errors}")


def _load(
    requests: int,
    tokens: int,
    *,
    request_limit: int,
    token_limit: int,
) -> None:
    must.count(
        0,
        requests=requests,
        tokens=tokens,
        request_limit=request_limit,
        token_limit=token_limit,
    )


def _window(
    window: int,
    *,
    output: int,
    margin: int = 0,
    fixed: Sequence[int] = (),
    evidence: Sequence[int] = (),
) -> None:
    must.count(1, window=window)
    must.count(0, output=output, margin=margin)
    for name, parts in (("fixed", fixed), ("evidence", evidence)):
        for part in parts:
            must.count(0, **{name: part})
    room = window - output - margin
    if sum(fixed) > room:
        raise ValueError(
            f"fixed parts need {sum(fixed)} tokens, and window leaves {room} for input"
        )


def _cost(total_cost: float, successes: int) -> None:
    _not_negative(total_cost=total_cost)
    must.count(1, successes=successes)


@op(_service_level)
def error_budget(requests: int, slo: float, errors: int) -> ErrorBudget:
    """How many requests may fail at a service level, and how many still may.

    allowed: the largest whole number of failures that keeps the level. slo is read as
    the decimal it is written as: 1 - 0.99 in binary is a little more than 0.01, and
    0.9999 a little less than it should be, which would be off by one. remaining is
    negative where the budget is spent.

    >>> error_budget(10000, 0.99, 80)
    ErrorBudget(allowed=100, used=80, remaining=20)
    """
    share = slo if isinstance(slo, Fraction) else Fraction(repr(float(slo)))
    allowed = math.floor((1 - share) * requests)
    return ErrorBudget(allowed, errors, allowed - errors)


@op(_load)
def rate_limit(
    requests: int, tokens: int, *, request_limit: int, token_limit: int
) -> RateLimit:
    """Whether a minute's load passes two limits that have different units.

    Every limit must hold by itself: few requests with many tokens pass the one and
    exceed the other. A load equal to its limit passes.

    >>> rate_limit(4, 8000, request_limit=60, token_limit=6000)
    RateLimit(allowed=False, exceeded=('tokens',))
    """
    over = [
        ("requests", requests > request_limit),
        ("tokens", tokens > token_limit),
    ]
    exceeded = tuple(name for name, is_over in over if is_over)
    return RateLimit(not exceeded, exceeded)


@op(_window)
def context_budget(
    window: int,
    *,
    output: int,
    margin: int = 0,
    fixed: Sequence[int] = (),
    evidence: Sequence[int] = (),
) -> ContextBudget:
    """What of a context window is left for evidence, and which pieces fit.

    input = window - output - margin; evidence = input less the fixed parts (system,
    tools, question). The output shares the window with the input: it is set aside
    first. evidence: sizes of the candidates in order of rank; one that no longer fits
    is passed over and smaller ones behind it may still come in. All in tokens.
    Raises ValueError where the fixed parts alone do not fit.

    >>> context_budget(100, output=20, fixed=[30], evidence=[40, 20, 10])
    ContextBudget(input=80, fixed=30, evidence=50, selected=(40, 10), used=80)
    """
    for_input = window - output - margin
    left = room = for_input - sum(fixed)
    selected = []
    for size in evidence:
        if size <= left:
            selected.append(size)
            left -= size
    used = sum(fixed) + sum(selected)
    return ContextBudget(for_input, sum(fixed), room, tuple(selected), used)


@op(_cost)
def cost_per_success(total_cost: float, successes: int) -> float:
    """What one success costs, the failures paid for too: total_cost / successes.

    total_cost: of all attempts. The cheaper attempt can be the dearer success.
    Raises ValueError without a success.

    >>> cost_per_success(100, 80), cost_per_success(70, 40)
    (1.25, 1.75)
    """
    return total_cost / successes
