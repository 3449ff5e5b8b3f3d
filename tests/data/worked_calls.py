"""Right and wrong calls of retrieval, evaluation, serving and the small machines.

CALLS joins that of ``tests/data/calls.py``, BAD that of
``tests/unit/test_bad_input.py``; see there.
"""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Iterable
from typing import Any

import labcore
import numpy as np
from labcore.systems.database import open_accounts

NAN, INF = float("nan"), float("inf")
FOLDER = tempfile.TemporaryDirectory()
atexit.register(FOLDER.cleanup)
FILE, BANK, RECEIPTS = (f"{FOLDER.name}/{name}" for name in ("a.txt", "b.db", "r.db"))
NOWHERE = f"{FOLDER.name}/no/such/file"
labcore.atomic_replace(FILE, "text")
open_accounts(BANK)

DOCS = [["a", "b"], ["a", "a", "c"]]
POINTS = {"A": [0.0, 0.0], "B": [1.0, 0.0], "C": [2.0, 1.0]}
EDGES = [("A", "B"), ("B", "C")]
FACTS = [labcore.Fact("old", 0, 10, 1, 5), labcore.Fact("new", 0, 10, 5)]
LOG = [labcore.Event(1, "a"), labcore.Event(3, "b")]
RANKED = [labcore.Readable("x", frozenset({"g"})), labcore.Readable("y", frozenset())]
CACHE = {"layers": 2, "kv_heads": 3, "head_dim": 4, "bytes_per_element": 2}
HARDWARE = {"peak_flops": 100.0, "bandwidth": 10.0}
LIMITS = {"request_limit": 60, "token_limit": 6000}


def hits(draw: Any, *shape: int) -> np.ndarray:
    """Outcomes, each of them right and wrong at least once."""
    found = draw.rng.integers(0, 2, size=shape)
    found.flat[:2] = 0, 1
    return found


CALLS: dict[str, Any] = {
    "bm25_idf": lambda draw: ((5, 2), {}),
    "bm25_term": lambda draw: ((DOCS, "a"), {"k1": 1.5, "b": 0.5}),
    "bm25": lambda draw: ((DOCS, ["a", "c"]), {"saturation_factor": False}),
    "rrf": lambda draw: (([["a", "b"], ["b", "c"]],), {"c": 10}),
    "precision": lambda draw: ((["a", "x"], ["a", "b"]), {"k": 2}),
    "recall": lambda draw: ((["a", "x"], ["a", "b"]), {"k": 2}),
    "precision_recall": lambda draw: ((["a", "x"], ["a", "b"]), {"k": 2}),
    "reciprocal_rank": lambda draw: ((["x", "a"], ["a", "b"]), {"k": 2}),
    "maxsim": lambda draw: (
        (draw.numbers(3, 4), draw.numbers(5, 4)),
        {"q_mask": np.arange(3) < 2, "d_mask": np.arange(5) < 4},
    ),
    "nearest": lambda draw: ((POINTS, draw.numbers(2).tolist()), {"k": 2}),
    "greedy_graph_search": lambda draw: (
        (POINTS, EDGES, draw.numbers(2).tolist()),
        {"entry": "C", "beam": 2},
    ),
    "pass_at_k": lambda draw: ((10, 3, 5), {}),
    "pass_at_k_iid": lambda draw: ((draw.gates(2, 4), 3), {}),
    "pass_all_k": lambda draw: ((draw.gates(2, 4), 3), {}),
    "all_wrong_rate": lambda draw: ((hits(draw, 4, 3),), {}),
    "paired_table": lambda draw: ((hits(draw, 5), hits(draw, 5)), {}),
    "mcnemar_exact": lambda draw: ((2, 6), {}),
    "simpson_table": lambda draw: (
        ({"s": (9, 10), "l": (20, 100)}, {"s": (80, 100), "l": (1, 10)}),
        {},
    ),
    "brier": lambda draw: ((draw.gates(2, 4), hits(draw, 2, 4).astype(float)), {}),
    "calibration_table": lambda draw: (
        (draw.rng.uniform(size=9), hits(draw, 9)),
        {"bins": 4},
    ),
    "selective_accuracy": lambda draw: ((hits(draw, 5), hits(draw, 5)), {}),
    "error_rates": lambda draw: ((hits(draw, 5), hits(draw, 5)), {}),
    "kv_cache_bytes": lambda draw: ((), {**CACHE, "tokens": 5, "batch": 6}),
    "roofline": lambda draw: ((8.0, 2.0), HARDWARE),
    "matvec_cost": lambda draw: ((3, 5), {"bytes_per_value": 2}),
    "train_flops": lambda draw: ((10**9, 10**10), {}),
    "attention_flops": lambda draw: (
        (),
        {"layers": 2, "d_model": 3, "seq": 5, "causal": True},
    ),
    "token_latency": lambda draw: (
        (4,),
        {"queue": 1, "prefill": 2, "step": 3, "first": 4},
    ),
    "time_per_output_token": lambda draw: (([1.0, 2.0, 5.0],), {"counts": [1, 3, 4]}),
    "latency_metrics": lambda draw: ((0.5, [1.0, 2.0, 5.0]), {"counts": [1, 3, 4]}),
    "critical_path": lambda draw: (({"A": 2, "B": 3}, {"B": ["A"]}), {}),
    "service_capacity": lambda draw: ((10, 2.0), {}),
    "queue_backlog": lambda draw: ((6, 5, 100), {"initial": 3}),
    "littles_law": lambda draw: ((4, 3), {}),
    "queue_trace": lambda draw: (([0.0, 1.0], [3.0, 2.0]), {"horizon": 4.0}),
    "mm1": lambda draw: ((8, 10), {}),
    "error_budget": lambda draw: ((10000, 0.99, 80), {}),
    "rate_limit": lambda draw: ((4, 8000), LIMITS),
    "context_budget": lambda draw: (
        (100,),
        {"output": 20, "margin": 5, "fixed": [30], "evidence": [40, 20, 10]},
    ),
    "cost_per_success": lambda draw: ((100, 80), {}),
    "sse_decode": lambda draw: (([b"data: a\r", b"\n\r\n"],), {"last_event_id": "3"}),
    "utf8_stream": lambda draw: (([b"a\xc3", b"\xa9"],), {"flush": True}),
    "bitemporal_lookup": lambda draw: (
        (FACTS,),
        {"valid_at": 3, "known_at": 4, "subject": ""},
    ),
    "bitemporal_record": lambda draw: (
        (FACTS, "newest"),
        {"valid_from": 3, "valid_to": 6, "at": 7, "subject": ""},
    ),
    "compare_and_swap": lambda draw: (
        (labcore.Versioned("a", 3),),
        {"expect": 3, "new": "b"},
    ),
    "three_way_merge": lambda draw: (
        ({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}),
        {},
    ),
    "report_is_current": lambda draw: ((labcore.Report("v8", 0), "v8"), {}),
    "approval_covers": lambda draw: (({"do": "x"}, {"do": "x"}), {}),
    "refund_allowed": lambda draw: ((6, True), {"window": 5}),
    "idempotent_executor": lambda draw: ((str,), {"waiting": print}),
    "safe_to_retry": lambda draw: (({"a": "unknown", "b": "failed"}, ["a"]), {}),
    "replay_events": lambda draw: (([("a", "done")],), {"initial": {"b": "done"}}),
    "compact_log": lambda draw: ((LOG, labcore.Snapshot(2, "so far")), {}),
    "acl_filter": lambda draw: ((RANKED, ["g"]), {"k": 1}),
    "pair_results": lambda draw: (([("a", "x"), ("b", "y")], [("b", "Y")]), {}),
    "path_is_excluded": lambda draw: (("cache/x", "cache"), {}),
    "page_to_screen": lambda draw: (((1, 2),), {"scroll": (3, 4), "ratio": 2}),
    "screen_to_page": lambda draw: (((1, 2),), {"scroll": (3, 4), "ratio": 2}),
    "atomic_replace": lambda draw: ((FILE, "text"), {"hold": str}),
    "replace_if_unchanged": lambda draw: ((FILE, "text", "text"), {"hold": str}),
    "transfer": lambda draw: ((BANK, 1), {"hold": str}),
    "record_receipt": lambda draw: ((RECEIPTS, "op1", "done"), {}),
}
ON_COUNTS = set(CALLS) - {"maxsim", "pass_at_k_iid", "pass_all_k", "brier"}
TOPICS = ("retrieval", "evaluation", "serving", *labcore.SYSTEMS)

# ---- Wrong calls --------------------------------------------------------------------

Wrong = tuple[str, tuple[Any, ...], dict[str, Any]]


def bad(name: str, *args: Any, **kwargs: Any) -> Wrong:
    """A wrong call, and the name of the argument that its refusal must give."""
    return name, args, kwargs


def each(name: str, values: Iterable[Any], *args: Any, **kwargs: Any) -> list[Wrong]:
    """The same call with an option that is wrong in several ways."""
    return [bad(name, *args, **{**kwargs, name: value}) for value in values]


def wrong_settings(*args: Any) -> list[Wrong]:
    return [
        *each("k1", (-0.1, NAN, INF), *args),
        *each("b", (-0.1, 1.1, NAN), *args),
    ]


def wrong_docs(query: Any) -> list[Wrong]:
    wrong = ([], [[], []], "a b", ["a b"], [["a"], "b"], [3], None)
    return [bad("docs", docs, query) for docs in wrong]


def wrong_relevance(*, empty: str = "") -> list[Wrong]:
    found: list[Wrong] = [
        *(bad("retrieved", ids, ["a"]) for ids in ("a", None)),
        *(bad("relevant", ["a"], ids) for ids in ("a", None)),
        *each("k", (0, -1, 1.0, True), ["a"], ["a"]),
    ]
    if "p" in empty:
        found.append(bad("retrieved", [], ["a"]))
    if "r" in empty:
        found.append(bad("relevant", ["a"], []))
    return found


def wrong_outcomes(first: str, second: str) -> list[Wrong]:
    wrong = ([0, 2], [0, -1], [0.5, 1], ["a", "b"], [0, NAN])
    return [
        *(bad(first, x, [0, 1]) for x in wrong),
        *(bad(second, [0, 1], x) for x in wrong),
        bad(second, [0, 1], [0, 1, 1]),
        bad(first, [0, 1], [1]),
        bad(first, [], []),
    ]


def wrong_points() -> list[Wrong]:
    return [
        bad("points", {}, [0.0]),
        bad("points", {"A": [NAN]}, [0.0]),
        bad("points", {"A": [0.0, 1.0]}, [0.0]),
        bad("query", {"A": [0.0]}, [INF]),
    ]


def wrong_counts(good: dict[str, int], *, least: int = 1) -> list[Wrong]:
    """Options that are counts, each wrong in turn."""
    wrong = (least - 1, -1, 1.5, True, "3", None)
    return [call for name in good for call in each(name, wrong, **good)]


BAD: dict[str, list[Wrong]] = {
    "bm25_idf": [
        *(bad("n", n, 0) for n in (0, -1, 1.0, True)),
        *(bad("df", 3, df) for df in (-1, 4, 1.0, True)),
    ],
    "bm25_term": [
        *wrong_docs("a"),
        bad("term", DOCS, ["a"]),
        *wrong_settings(DOCS, "a"),
    ],
    "bm25": [
        *wrong_docs(["a"]),
        *(bad("query", DOCS, query) for query in ("a", None)),
        *wrong_settings(DOCS, ["a"]),
    ],
    "rrf": [
        *(bad("lists", lists) for lists in ("ab", ["ab"], [None], None)),
        *each("c", (-1, -1.5, NAN, INF), [["a"]]),
    ],
    "precision": wrong_relevance(empty="p"),
    "recall": wrong_relevance(empty="r"),
    "precision_recall": wrong_relevance(empty="pr"),
    "reciprocal_rank": wrong_relevance(empty="r"),
    "maxsim": [
        bad("q", [[NAN]], [[1.0]]),
        bad("d", [[1.0]], [[INF]]),
        bad("q", np.zeros((0, 1)), [[1.0]]),
        bad("d", [[1.0]], np.zeros((0, 1))),
        bad("d", [[1.0]], []),
        bad("q", [1.0], [[1.0]]),
        bad("d", [[1.0]], [[1.0, 2.0]]),
        bad("q", np.ones((2, 1, 1)), np.ones((3, 1, 1))),
        *each("q_mask", ([1], [True, True], [False]), [[1.0]], [[1.0]]),
        *each("d_mask", ([1], [True, True], [False]), [[1.0]], [[1.0]]),
    ],
    "nearest": [*wrong_points(), *each("k", (0, -1, 1.0), {"A": [0.0]}, [0.0])],
    "greedy_graph_search": [
        *(
            (name, (args[0], [], args[1]), {"entry": "A"})
            for name, args, _ in wrong_points()
        ),
        bad("edges", POINTS, [("A", "Z")], [0.0, 0.0], entry="A"),
        bad("edges", POINTS, [("A", "B", "C")], [0.0, 0.0], entry="A"),
        bad("edges", POINTS, None, [0.0, 0.0], entry="A"),
        bad("entry", POINTS, EDGES, [0.0, 0.0], entry="Z"),
        *each("beam", (0, -1, 1.0, True), POINTS, EDGES, [0.0, 0.0], entry="A"),
    ],
    "pass_at_k": [
        *(bad("n", n, 0, 1) for n in (0, -1, 1.0, True)),
        *(bad("c", 3, c, 1) for c in (-1, 4, 1.0)),
        *(bad("k", 3, 1, k) for k in (0, 4, -1, 1.0)),
    ],
    "pass_at_k_iid": [
        *(bad("p", p, 1) for p in (-0.1, 1.1, NAN, [0.5, 2.0])),
        *(bad("k", 0.5, k) for k in (0, -1, 1.0, True)),
    ],
    "pass_all_k": [
        *(bad("p", p, 1) for p in (-0.1, 1.1, NAN, [0.5, 2.0])),
        *(bad("k", 0.5, k) for k in (0, -1, 1.0, True)),
    ],
    "all_wrong_rate": [
        bad("correct", x) for x in ([1, 0], [[2]], [[0.5]], [["a"]], [[[1]]], [[]], 1)
    ],
    "paired_table": wrong_outcomes("a", "b"),
    "mcnemar_exact": [
        *(bad("b", b, 2) for b in (-1, 1.0, True)),
        *(bad("c", 2, c) for c in (-1, 1.0, True)),
    ],
    "simpson_table": [
        bad("a", {}, {}),
        bad("b", {"s": (1, 2)}, {"l": (1, 2)}),
        *(
            bad("a", {"s": x}, {"s": (1, 2)})
            for x in ((3, 2), (-1, 2), (0, 0), (1.0, 2))
        ),
        *(
            bad("b", {"s": (1, 2)}, {"s": x})
            for x in ((3, 2), (-1, 2), (0, 0), (1.0, 2))
        ),
    ],
    "brier": [
        *(bad("p", [p], [1]) for p in (-0.1, 1.1, NAN)),
        *(bad("y", [0.5], [y]) for y in (0.5, 2, -1, NAN)),
        bad("y", [0.5], [1, 0]),
        bad("p", [], []),
        bad("p", 0.5, 1),
    ],
    "calibration_table": [
        *(bad("p", [p], [1]) for p in (-0.1, 1.1, NAN)),
        *(bad("y", [0.5], [y]) for y in (0.5, 2, -1, NAN)),
        bad("y", [0.5], [1, 0]),
        bad("p", [], []),
        *each("bins", (0, -1, 2.0, True), [0.5], [1]),
    ],
    "selective_accuracy": [
        *wrong_outcomes("correct", "answered"),
        bad("answered", [1, 1], [0, 0]),
    ],
    "error_rates": [
        *wrong_outcomes("predicted", "actual"),
        bad("actual", [0, 1], [0, 0]),
        bad("actual", [0, 1], [1, 1]),
    ],
    "kv_cache_bytes": [
        *wrong_counts({**CACHE, "batch": 1})[:18],
        *each("batch", (0, 1.0), **CACHE),
        *each("tokens", (-1, 1.0), **CACHE),
        *each("bytes_per_element", (0, -1, NAN), **CACHE),
    ],
    "roofline": [
        *(bad("flops", x, 1.0, **HARDWARE) for x in (0.0, -1.0, NAN, INF)),
        *(bad("bytes", 1.0, x, **HARDWARE) for x in (0.0, -1.0, NAN, INF)),
        *each("peak_flops", (0.0, NAN), 1.0, 1.0, bandwidth=1.0),
        *each("bandwidth", (0.0, NAN), 1.0, 1.0, peak_flops=1.0),
    ],
    "matvec_cost": [
        *(bad("rows", n, 1, bytes_per_value=2) for n in (0, -1, 1.0)),
        *(bad("columns", 1, n, bytes_per_value=2) for n in (0, -1, 1.0)),
        *each("bytes_per_value", (0, -2, NAN), 1, 1),
    ],
    "train_flops": [
        *(bad("parameters", n, 1) for n in (0, -1, NAN, INF)),
        *(bad("tokens", 1, n) for n in (0, -1, NAN, INF)),
    ],
    "attention_flops": wrong_counts({"layers": 1, "d_model": 2, "seq": 3}),
    "token_latency": [
        *(bad("tokens", n, step=1) for n in (0, -1, 1.0, True)),
        *each("step", (-1, NAN, INF), 1),
        *each("queue", (-1, NAN), 1, step=1),
        *each("prefill", (-1, NAN), 1, step=1),
        *each("first", (-1, NAN), 1, step=1),
    ],
    "time_per_output_token": [
        *(bad("token_times", x) for x in ([], [1.0], [2.0, 1.0], [1.0, NAN], 1.0)),
        bad("token_times", [1.0], counts=[1]),
        *each("counts", ([1], [1, 0], [1, 1.0]), [1.0, 2.0]),
    ],
    "latency_metrics": [
        *(
            bad("token_times", 0.0, x)
            for x in ([], [2.0, 1.0], [1.0, NAN], 1.0, [-1.0])
        ),
        *(bad("request_time", x, [1.0]) for x in (NAN, INF, 2.0)),
        *each("counts", ([1], [1, 0], [1, 1.0]), 0.0, [1.0, 2.0]),
    ],
    "critical_path": [
        bad("durations", {}, {}),
        *(bad("durations", {"A": x}, {}) for x in (-1, NAN, INF)),
        bad("after", {"A": 1}, {"A": ["Z"]}),
        bad("after", {"A": 1}, {"Z": ["A"]}),
        bad("after", {"A": 1}, {"A": ["A"]}),
        bad("after", {"A": 1, "B": 1, "C": 1}, {"A": ["B"], "B": ["A"]}),
        bad("after", {"A": 1, "B": 1}, {"A": "B"}),
    ],
    "service_capacity": [
        *(bad("slots", n, 1) for n in (0, -1, 1.0)),
        *(bad("service_time", 1, x) for x in (0, -1, NAN, INF)),
    ],
    "queue_backlog": [
        *(bad("arrival_rate", x, 1, 1) for x in (-1, NAN)),
        *(bad("capacity", 1, x, 1) for x in (-1, NAN)),
        *(bad("seconds", 1, 1, x) for x in (-1, NAN)),
        *each("initial", (-1, NAN), 1, 1, 1),
    ],
    "littles_law": [
        *(bad("rate", x, 1) for x in (-1, NAN)),
        *(bad("time", 1, x) for x in (-1, NAN)),
    ],
    "queue_trace": [
        *(bad("arrivals", [x], [1.0], horizon=2.0) for x in (-1.0, NAN)),
        bad("arrivals", [], [], horizon=1.0),
        bad("arrivals", [0.0, 1.0], [1.0], horizon=2.0),
        *(bad("departures", [1.0], [x], horizon=2.0) for x in (0.5, NAN)),
        *each("horizon", (0.0, -1.0, NAN, 1.0), [0.0], [1.5]),
    ],
    "mm1": [
        *(bad("arrival_rate", x, 1) for x in (-1, NAN, 1, 2)),
        *(bad("service_rate", 0, x) for x in (0, -1, NAN)),
    ],
    "error_budget": [
        *(bad("requests", n, 0.9, 0) for n in (-1, 1.0)),
        *(bad("slo", 10, x, 0) for x in (-0.1, 1.1, NAN)),
        *(bad("errors", 10, 0.9, n) for n in (-1, 1.0, 11)),
    ],
    "rate_limit": [
        *(bad("requests", n, 1, **LIMITS) for n in (-1, 1.0)),
        *(bad("tokens", 1, n, **LIMITS) for n in (-1, 1.0)),
        *each("request_limit", (-1, 1.0), 1, 1, token_limit=1),
        *each("token_limit", (-1, 1.0), 1, 1, request_limit=1),
    ],
    "context_budget": [
        *(bad("window", n, output=1) for n in (0, -1, 1.0)),
        *each("output", (-1, 1.0), 10),
        *each("margin", (-1, 1.0), 10, output=1),
        *each("fixed", ([-1], [1.0], [20]), 10, output=1),
        *each("evidence", ([-1], [1.0]), 10, output=1),
        bad("window", 10, output=11),
    ],
    "cost_per_success": [
        *(bad("total_cost", x, 1) for x in (-1, NAN)),
        *(bad("successes", 1, n) for n in (0, -1, 1.0)),
    ],
    "sse_decode": [
        *(bad("chunks", x) for x in (b"data", "data", ["data"], [None], None)),
        *each("last_event_id", (3, None, b"3"), [b"a"]),
    ],
    "utf8_stream": [
        *(bad("chunks", x) for x in (b"data", "data", ["data"], None)),
        *(bad("chunks", [x]) for x in (b"\xff", b"\xc3", b"\xed\xa0\x80")),
    ],
    "bitemporal_lookup": [
        bad("facts", [labcore.Fact("a", 5, 5, 0)], valid_at=1, known_at=1),
        bad("facts", [labcore.Fact("a", NAN, 5, 0)], valid_at=1, known_at=1),
        bad("facts", [labcore.Fact("a", 0, 5, 2, 1)], valid_at=1, known_at=1),
        bad("facts", [FACTS[0], FACTS[0]], valid_at=1, known_at=1),
        bad("valid_at", FACTS, valid_at=NAN, known_at=1),
        bad("known_at", FACTS, valid_at=1, known_at=NAN),
    ],
    "bitemporal_record": [
        bad("facts", [FACTS[0], FACTS[0]], "a", valid_from=0, at=9),
        *each("valid_from", (NAN, INF), FACTS, "a", at=9),
        *each("valid_to", (NAN, 3, 2), FACTS, "a", valid_from=3, at=9),
        *each("at", (NAN, 4), FACTS, "a", valid_from=3),
    ],
    "compare_and_swap": [
        bad("current", labcore.Versioned("a", -1), expect=1, new="b"),
        bad("current", labcore.Versioned("a", 1.0), expect=1, new="b"),
        *each("expect", (-1, 1.0, None), labcore.Versioned("a", 1), new="b"),
    ],
    "three_way_merge": [
        bad("theirs", {"a": 1}, {"a": 2}, {"a": 3}),
        bad("theirs", {"a": 1}, {}, {"a": 3}),
        bad("theirs", {}, {"a": 2}, {"a": 3}),
    ],
    "refund_allowed": [
        *(bad("days", n, True) for n in (-1, 1.0)),
        *(bad("condition", 1, x) for x in (1, None, "yes")),
        *each("window", (-1, 1.0), 1, True),
    ],
    "idempotent_executor": [
        bad("effect", None),
        bad("effect", "f"),
        bad("waiting", str, waiting="f"),
    ],
    "safe_to_retry": [
        bad("statuses", {"a": "done"}, []),
        *(bad("effects", {"a": "failed"}, x) for x in ("a", None)),
    ],
    "replay_events": [*(bad("events", x) for x in (["ab"], [("a", "b", "c")]))],
    "compact_log": [
        bad("log", [LOG[1], LOG[0]], labcore.Snapshot(1, "")),
        bad("log", [LOG[0], LOG[0]], labcore.Snapshot(1, "")),
        *(bad("snapshot", LOG, labcore.Snapshot(n, "")) for n in (-1, 1.0)),
    ],
    "acl_filter": [
        bad("ranked", [labcore.Readable("x", "g")], ["g"]),
        *(bad("groups", RANKED, x) for x in ("g", None)),
        *each("k", (0, -1, 1.0), RANKED, ["g"]),
    ],
    "pair_results": [
        bad("calls", [("a", "x"), ("a", "y")], []),
        bad("results", [("a", "x")], [("a", "X"), ("a", "Y")]),
        bad("results", [("a", "x")], [("b", "X")]),
    ],
    "path_is_excluded": [
        *(bad("path", x, "a") for x in ("", None, b"a")),
        *(bad("directory", "a", x) for x in ("", None, b"a")),
    ],
    **{
        name: [
            *(bad("point", x) for x in ((1,), (1, 2, 3), (NAN, 1), (1, INF))),
            *each("scroll", ((1,), (NAN, 0)), (1, 2)),
            *each("ratio", (0, -1, NAN), (1, 2)),
        ]
        for name in ("page_to_screen", "screen_to_page")
    },
    "atomic_replace": [
        *(bad("path", x, "text") for x in ("", None, NOWHERE)),
        *(bad("text", FILE, x) for x in (None, b"text")),
        bad("hold", FILE, "text", hold=None),
    ],
    "replace_if_unchanged": [
        *(bad("path", x, "a", "b") for x in ("", None, NOWHERE)),
        *(bad("expect", FILE, x, "b") for x in (None, b"a")),
        *(bad("text", FILE, "a", x) for x in (None, b"b")),
        bad("hold", FILE, "a", "b", hold=None),
    ],
    "transfer": [
        *(bad("path", x, 1) for x in ("", None, NOWHERE)),
        *(bad("amount", BANK, x) for x in (0, -1, 1.0, True)),
        bad("hold", BANK, 1, hold=None),
    ],
    "record_receipt": [
        *(bad("path", x, "a", "b") for x in ("", None, NOWHERE)),
        *(bad("key", RECEIPTS, x, "b") for x in ("", None)),
        *(bad("result", RECEIPTS, "a", x) for x in ("", None)),
    ],
    "report_is_current": [],
    "approval_covers": [],
}
# Parameters that cannot be wrong: flags, and whatever two things are compared.
FREE = {
    ("bm25", "saturation_factor"),
    ("attention_flops", "causal"),
    ("utf8_stream", "flush"),
    ("bitemporal_lookup", "subject"),
    ("bitemporal_record", "subject"),
    ("bitemporal_record", "value"),
    ("compare_and_swap", "new"),
    ("three_way_merge", "base"),
    ("three_way_merge", "ours"),  # speaks with theirs
    ("report_is_current", "report"),
    ("report_is_current", "version"),
    ("approval_covers", "approved"),
    ("approval_covers", "wanted"),
    ("replay_events", "initial"),
}
