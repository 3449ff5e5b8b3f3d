"""Versions, receipts, logs, permissions: what must hold, and how it breaks."""

from __future__ import annotations

import threading
from itertools import product
from typing import Any

import numpy as np

from ..systems.state import (
    NEVER,
    Event,
    Fact,
    IdempotentExecutor,
    Readable,
    Report,
    Snapshot,
    Versioned,
    acl_filter,
    approval_covers,
    bitemporal_lookup,
    bitemporal_record,
    compact_log,
    compare_and_swap,
    idempotent_executor,
    page_to_screen,
    pair_results,
    path_is_excluded,
    refund_allowed,
    replay_events,
    report_is_current,
    safe_to_retry,
    screen_to_page,
    three_way_merge,
)
from ._check import Inputs, Rng, nothing
from .worked import state as chapter

LONG = 10.0  # seconds that a thread is waited for: only a broken version needs them

# Oslo until 10, said at 1; corrected at 5: Oslo until 7, Rome from then on.
CITIES = [
    Fact("Oslo", 0, 10, 1, 5),
    Fact("Oslo", 0, 7, 5),
    Fact("Rome", 7, NEVER, 5),
]
RANKED = [
    Readable("A", frozenset({"admin"})),
    Readable("B", frozenset({"admin", "staff"})),
    Readable("C", frozenset({"user", "admin"})),
    Readable("D", frozenset({"user"})),
]


# ---- What is drawn ----------------------------------------------------------------


def some_records(rng: Rng, size: int) -> Inputs:
    """Facts recorded one after another, which overlap; two of another subject."""
    records = [{"value": "old", "valid_from": 0, "valid_to": 20, "at": 1}]
    for i in range(1 + size // 2):
        start = 2 * int(rng.integers(1, 6))
        records.append(
            {
                "value": f"v{i}",
                "valid_from": start,
                "valid_to": start + 2 * int(rng.integers(1, 5)),
                "at": 3 + 2 * i,
            }
        )
    for at in (3, 4):
        records.append(
            {"value": "other", "valid_from": 2, "at": at, "subject": "elsewhere"}
        )
    return {"records": records}


def some_sides(rng: Rng, size: int) -> Inputs:
    """A base, and two sides that changed, added and removed different keys."""
    base = {f"k{i}": i for i in range(size + 4)}
    ours = {**base, "k0": -1, "ours": int(rng.integers(9))}
    theirs = {**base, "k2": -2, "theirs": int(rng.integers(9))}
    del ours["k1"], theirs["k3"]
    return {"base": base, "ours": ours, "theirs": theirs}


def some_log(rng: Rng, size: int) -> Inputs:
    """Events on few keys, in an order in which the last status is not the greatest."""
    keys = [f"c{i}" for i in range(size + 1)]
    events = [(str(rng.choice(keys)), f"s{rng.integers(9)}") for _ in range(3 * size)]
    first = [("early", "done"), ("c0", "pending"), ("c0", "failed")]
    return {"events": [*first, *events, ("c0", "done")]}


def some_documents(rng: Rng, size: int) -> Inputs:
    """A ranking whose first half is for others."""
    groups = [["admin"], ["user"], ["user", "admin"]]
    hidden = [Readable(f"h{i}", frozenset({"admin"})) for i in range(size + 1)]
    rest = [
        Readable(f"d{i}", frozenset(groups[int(rng.integers(3))]))
        for i in range(2 * size)
    ]
    rest.insert(0, Readable("both", frozenset({"user", "admin"})))
    last = [Readable(f"z{i}", frozenset({"user"})) for i in range(size + 1)]
    return {"ranked": [*hidden, *rest, *last], "k": size + 1}


def some_calls(rng: Rng, size: int) -> Inputs:
    """Calls, and their results in another order; one is still missing."""
    n = size + 3
    calls = [(f"c{i}", f"call {i}") for i in range(n)]
    order = np.roll(np.arange(n - 1), 1 + int(rng.integers(n - 2)))
    return {"calls": calls, "results": [(f"c{i}", f"result {i}") for i in order]}


def a_screen(rng: Rng, size: int) -> Inputs:
    """A point, a scroll position and a number of pixels a unit, in eighths."""
    x, y, left, top = (rng.integers(1, 400, size=4) / 8).tolist()
    return {"point": (x, y), "scroll": (left, top), "ratio": float(2**size)}


# ---- Two times: what must hold ------------------------------------------------------


@chapter.check(
    "bitemporal_scenario",
    "A correction on day 10 for days from 5 on changes what is known, not what was.",
    draw=nothing,
    kind="exact",
)
def _():
    facts = bitemporal_record([], 5, valid_from=1, valid_to=99, at=1, subject="prod")
    facts = bitemporal_record(
        facts, 7, valid_from=5, valid_to=99, at=10, subject="prod"
    )
    # Day 3 was never corrected; day 7 was 5 until the tenth; 7 since.
    return _asked(facts, [(3, 11), (7, 8), (7, 11)], subject="prod"), [5, 5, 7]


@chapter.check(
    "bitemporal_day_of_record",
    "A fact is known from the day of its record on, that day included.",
    draw=nothing,
    kind="exact",
)
def _():
    facts = bitemporal_record([], 3, valid_from=1, valid_to=99, at=1, subject="A")
    facts = bitemporal_record(facts, 5, valid_from=10, valid_to=99, at=12, subject="A")
    questions = [(11, 11), (11, 12), (11, 0), (99, 12), (10, 12)]
    return _asked(facts, questions, subject="A"), [3, 5, None, None, 5]


@chapter.check(
    "bitemporal_ends_are_open",
    "Intervals hold their beginning and not their end, in both times.",
    draw=nothing,
    kind="exact",
)
def _():
    questions = [(8, 3), (8, 6), (7, 5), (6.9, 5), (8, 0.5), (10, 3), (0, 1), (7, 4.9)]
    want = ["Oslo", "Rome", "Rome", "Oslo", None, None, "Oslo", "Oslo"]
    return _asked(CITIES, questions), want


@chapter.check(
    "bitemporal_latest_record_wins",
    "For every pair of times the last record that covers both answers.",
    draw=some_records,
    kind="exact",
)
def _(records):
    facts: list[Fact] = []
    for record in records:
        facts = bitemporal_record(facts, **record)
    times = list(product(range(0, 21, 2), range(0, 9, 2)))
    got = [_asked(facts, times, subject=subject) for subject in ("", "elsewhere")]
    want = [
        [_last_said(records, valid, known, subject) for valid, known in times]
        for subject in ("", "elsewhere")
    ]
    return got, want


@chapter.check(
    "bitemporal_past_unchanged",
    "A record changes no answer for a time before it.",
    draw=some_records,
    kind="exact",
)
def _(records):
    facts: list[Fact] = []
    got, want = [], []
    for record in records[:-2]:
        before = [
            (valid, known) for valid in range(0, 21, 4) for known in range(record["at"])
        ]
        old = _asked(facts, before)
        facts = bitemporal_record(facts, **record)
        got.append(_asked(facts, before))
        want.append(old)
    return got, want


@chapter.check(
    "bitemporal_record_rows",
    "A second record of one day replaces the first; facts that touch stay as they are.",
    draw=nothing,
    kind="exact",
)
def _():
    facts = bitemporal_record([], "a", valid_from=5, valid_to=9, at=1)
    facts = bitemporal_record(facts, "b", valid_from=9, valid_to=12, at=2)
    facts = bitemporal_record(facts, "c", valid_from=0, valid_to=5, at=3)
    touching = [(f.value, f.known_from, f.known_to) for f in facts]
    facts = bitemporal_record(facts, "d", valid_from=0, valid_to=5, at=3)
    same_day = [(f.value, f.known_from, f.known_to) for f in facts]
    rest = [("a", 1, NEVER), ("b", 2, NEVER)]
    return (touching, same_day), (
        [*rest, ("c", 3, NEVER)],
        [*rest, ("d", 3, NEVER)],
    )


@chapter.check(
    "bitemporal_refuses_overlap",
    "Two facts for the same time, on record at the same time, are refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    facts = [Fact("a", 0, 5, 0), Fact("b", 4, 9, 0)]
    return lambda: bitemporal_lookup(facts, valid_at=4, known_at=0), "facts overlap"


# ---- Versions: what must hold -------------------------------------------------------


@chapter.check(
    "swap_refuses_stale",
    "A writer that saw version 7 does not overwrite version 8 or 9.",
    draw=nothing,
    kind="exact",
)
def _():
    got = [
        tuple(compare_and_swap(Versioned("B", version), expect=7, new="A"))
        for version in (8, 9, 7)
    ]
    return got, [(False, ("B", 8)), (False, ("B", 9)), (True, ("A", 8))]


@chapter.check(
    "swap_sees_there_and_back",
    "A value that changed and changed back was written, and the swap is refused.",
    draw=nothing,
    kind="exact",
)
def _():
    now, told = Versioned("a", 1), []
    for expect, new in ((1, "b"), (2, "a"), (1, "z")):
        ok, now = compare_and_swap(now, expect=expect, new=new)
        told.append(ok)
    return (told, tuple(now)), ([True, True, False], ("a", 3))


@chapter.check(
    "merge_keeps_both",
    "Two writers, two keys: both changes are kept.",
    draw=nothing,
    kind="exact",
)
def _():
    base, ours, theirs = {"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2}
    return three_way_merge(base, ours, theirs), {"a": 2, "b": 2}


@chapter.check(
    "merge_of_changes",
    "A merge is the base with both lists of changes applied, in either order.",
    draw=some_sides,
    kind="exact",
)
def _(base, ours, theirs):
    want = {**base, "k0": -1, "k2": -2, "ours": ours["ours"]}
    want["theirs"] = theirs["theirs"]
    del want["k1"], want["k3"]
    one, other = (
        three_way_merge(base, ours, theirs),
        three_way_merge(base, theirs, ours),
    )
    return (one, other), (want, want)


@chapter.check(
    "merge_same_change_twice",
    "A change that both sides made is no conflict.",
    draw=some_sides,
    kind="exact",
)
def _(base, ours, theirs):
    return three_way_merge(base, ours, ours), ours


@chapter.check(
    "merge_refuses_conflict",
    "A key that both sides changed in different ways is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: three_way_merge({"a": 1}, {"a": 2}, {"a": 3}), "theirs"


@chapter.check(
    "report_of_this_version",
    "A green report of v8 is none for v9, nor a red one of v9.",
    draw=nothing,
    kind="exact",
)
def _():
    reports = [("v8", 0), ("v9", 1), ("v9", 0), ("v8", 1)]
    got = [report_is_current(Report(*report), "v9") for report in reports]
    return got, [False, False, True, False]


@chapter.check(
    "report_of_this_commit",
    "Tests that passed at r7 do not speak for r8.",
    draw=nothing,
    kind="exact",
)
def _():
    verified = Report("r7", 0)
    return [report_is_current(verified, now) for now in ("r7", "r8")], [True, False]


@chapter.check(
    "approval_for_this_thing",
    "An approval for staging and v8 is none for production, for v9, or for less.",
    draw=nothing,
    kind="exact",
)
def _():
    approved = {"do": "deploy", "place": "staging", "version": "v8"}
    wanted = [
        approved,
        {**approved, "version": "v9"},
        {**approved, "place": "production"},
        {**approved, "do": "delete"},
        {**approved, "force": "yes"},
        {"do": "deploy"},
    ]
    got = [approval_covers(approved, this) for this in wanted]
    return got, [True, False, False, False, False, False]


@chapter.check(
    "refund_needs_both",
    "In time and on a working day: both conditions, not one of them.",
    draw=nothing,
    kind="exact",
)
def _():
    cases = list(product((6, 7, 8), (True, False)))
    got = [refund_allowed(days, workday) for days, workday in cases]
    # Allowed are six and seven days, on a working day; and eight in a longer window.
    want = [True, False, True, False, False, False]
    return [*got, refund_allowed(8, True, window=10)], [*want, True]


# ---- Once: what must hold -----------------------------------------------------------


@chapter.check(
    "idempotent_replay",
    "The same key runs once; another key runs again, with the same payload.",
    draw=nothing,
    kind="exact",
)
def _():
    run, executions = _counting()
    results = [run.submit(key, 10) for key in ("k7", "k7", "k8", "k7")]
    return (results, executions), ([110, 110, 120, 110], [10, 10])


@chapter.check(
    "idempotent_refuses_other_payload",
    "The same key with another payload is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    run, _ = _counting()
    run.submit("k7", 10)
    return lambda: run.submit("k7", 20), "payload"


@chapter.check(
    "idempotent_concurrent",
    "Threads with one key run the effect once, and all are given its result.",
    draw=nothing,
    kind="exact",
)
def _():
    return _together(4), ([10], [110] * 4)


@chapter.check(
    "idempotent_after_exception",
    "An effect that raised has done nothing, and its key is free again.",
    draw=nothing,
    kind="exact",
)
def _():
    tries: list[int] = []

    def effect(payload):
        tries.append(payload)
        if len(tries) == 1:
            raise OSError("no connection")
        return "paid"

    run, told = idempotent_executor(effect), []
    for _ in range(3):
        try:
            told.append(run.submit("k", 5))
        except OSError as error:
            told.append(str(error))
    return (told, tries), (["no connection", "paid", "paid"], [5, 5])


@chapter.check(
    "unknown_is_not_failed",
    "An operation whose answer was lost, and whose effect is there, is not run again.",
    draw=nothing,
    kind="exact",
)
def _():
    # The counter stood at 10; op7 added 1, and its answer was lost.
    statuses = {"op6": "succeeded", "op7": "unknown"}
    counter, effects = 11, ["op6", "op7"]
    for _ in safe_to_retry(statuses, effects):
        counter += 1
    return counter, 10 + 1


@chapter.check(
    "retry_table",
    "Failed may be run again, unknown only where the effect is absent, others not.",
    draw=nothing,
    kind="exact",
)
def _():
    statuses = {
        "a": "failed",
        "b": "unknown",
        "c": "unknown",
        "d": "pending",
        "e": "succeeded",
        "f": "failed",
    }
    return safe_to_retry(statuses, ["c", "e", "f"]), ["a", "b"]


# ---- Logs: what must hold -----------------------------------------------------------


@chapter.check(
    "replay_last_status",
    "A log leads to the last status of every key.",
    draw=some_log,
    kind="exact",
)
def _(events):
    keys = dict.fromkeys(key for key, _ in events)
    want = {key: [s for k, s in events if k == key][-1] for key in keys}
    return replay_events(events), want


@chapter.check(
    "replay_twice",
    "Replayed on its own result a log changes nothing; in two parts it is the whole.",
    draw=some_log,
    kind="exact",
)
def _(events):
    once, half = replay_events(events), len(events) // 2
    first = replay_events(events[:half])
    return (
        replay_events(events, initial=once),
        replay_events(events[half:], initial=first),
    ), (once, once)


@chapter.check(
    "replay_worked",
    "One succeeded, one pending, however often the log is read.",
    draw=nothing,
    kind="exact",
)
def _():
    events = [("c7", "succeeded"), ("c8", "pending")]
    return replay_events(events * 2), {"c7": "succeeded", "c8": "pending"}


@chapter.check(
    "compaction_keeps_suffix",
    "Event 21 came while 1 to 20 were summed up, and is still there.",
    draw=nothing,
    kind="exact",
)
def _():
    log = [Event(i, f"event {i}") for i in range(1, 22)]
    got = compact_log(log, Snapshot(20, "state 20"))
    return list(map(tuple, got)), [(20, "state 20"), (21, "event 21")]


@chapter.check(
    "compaction_same_state",
    "A snapshot and what follows lead to the state of the whole log.",
    draw=some_log,
    kind="exact",
)
def _(events):
    log = [Event(10 * i, event) for i, event in enumerate(events)]
    half = len(log) // 2
    summary = replay_events([event.body for event in log[:half]])
    snapshot, *rest = compact_log(log, Snapshot(10 * half - 10, summary))
    got = replay_events([event.body for event in rest], initial=snapshot.summary)
    return got, replay_events(events)


# ---- Who may see, who answered, what is meant: what must hold -----------------------


@chapter.check(
    "acl_before_cut",
    "Two of the first two are hidden: the reader is shown the third and fourth.",
    draw=nothing,
    kind="exact",
)
def _():
    return acl_filter(RANKED, ["user"], k=2), ["C", "D"]


@chapter.check(
    "acl_hides_the_best",
    "The best match is private, and is not shown to a user.",
    draw=nothing,
    kind="exact",
)
def _():
    best, second = RANKED[0], RANKED[2]
    got = [acl_filter([best, second], groups) for groups in (["user"], ["admin"], [])]
    return got, [["C"], ["A", "C"], []]


@chapter.check(
    "acl_first_visible",
    "The first k that one may read, in the order of the ranking; one group is enough.",
    draw=some_documents,
    kind="exact",
)
def _(ranked, k):
    visible = [d.id for d in ranked if "user" in d.readers or "guest" in d.readers]
    got = [acl_filter(ranked, ["guest", "user"], k=n) for n in (k, None)]
    return got, [visible[:k], visible]


@chapter.check(
    "pairs_by_id",
    "Results that come in another order go to their own calls.",
    draw=some_calls,
    kind="exact",
)
def _(calls, results):
    n = len(calls) - 1
    want = [(f"call {i}", f"result {i}") for i in range(n)] + [(f"call {n}", None)]
    return pair_results(calls, results), want


@chapter.check(
    "pairs_worked",
    "The test's result comes first and is not the configuration's.",
    draw=nothing,
    kind="exact",
)
def _():
    calls = [("a", "read(config)"), ("b", "read(test)")]
    got = pair_results(calls, [("b", "TEST"), ("a", "CONFIG")])
    return got, [("read(config)", "CONFIG"), ("read(test)", "TEST")]


@chapter.check(
    "pairs_refuse_strangers",
    "A result that nobody asked for is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: pair_results([("a", "x")], [("b", "y")]), "results"


@chapter.check(
    "path_boundary",
    "A directory excludes itself and what is in it, not a name that begins like it.",
    draw=nothing,
    kind="exact",
)
def _():
    got, want = [], []
    for name in ("a", "cache", "build"):
        paths = [
            name,
            f"{name}/x",
            f"{name}/x/y",
            f"{name}b/x",
            f"{name}b",
            f"x/{name}",
        ]
        got.append([path_is_excluded(path, name) for path in paths])
        want.append([True, True, True, False, False, False])
    return got, want


@chapter.check(
    "path_spellings",
    "However a path is written: slashes at the end, doubled, dots.",
    draw=nothing,
    kind="exact",
)
def _():
    pairs = [
        ("cache/x", "cache/"),
        ("cache//x", "cache"),
        ("./cache/x", "cache"),
        ("cache/../src", "cache"),
        ("src/../cache/x", "./cache"),
        ("/tmp", "/"),
        ("cache", "cache/x"),
    ]
    got = [path_is_excluded(path, directory) for path, directory in pairs]
    return got, [True, True, True, False, True, True, False]


@chapter.check(
    "screen_worked",
    "Scrolled by 200, a point at 300 is at 100; at two pixels a unit 120 is 60.",
    draw=nothing,
    kind="exact",
)
def _():
    # 300 - 200; 120 / 2 and 80 / 2; and both at once: (50, 300) at two pixels a unit.
    return (
        page_to_screen((0, 300), scroll=(0, 200)),
        screen_to_page((120, 80), ratio=2),
        page_to_screen((50, 300), scroll=(10, 200), ratio=2),
    ), ((0, 100), (60.0, 40.0), (80, 200))


@chapter.check(
    "screen_and_back",
    "A point shown on the screen and clicked there is the point.",
    draw=a_screen,
    kind="exact",
)
def _(point, scroll, ratio):
    shown = page_to_screen(point, scroll=scroll, ratio=ratio)
    return screen_to_page(shown, scroll=scroll, ratio=ratio), point


def _asked(facts, questions, subject=""):
    return [
        bitemporal_lookup(facts, valid_at=valid, known_at=known, subject=subject)
        for valid, known in questions
    ]


def _last_said(records, valid, known, subject):
    """The value of the last record that covers both times, by looking at them all."""
    said = [
        record["value"]
        for record in records
        if record.get("subject", "") == subject
        and record["valid_from"] <= valid < record.get("valid_to", NEVER)
        and record["at"] <= known
    ]
    return said[-1] if said else None


def _counting():
    """An executor that adds to a balance of 100, and the list of what it ran."""
    executions: list[int] = []

    def effect(amount):
        executions.append(amount)
        return 100 + sum(executions)

    return idempotent_executor(effect), executions


def _together(callers):
    """Threads with the same key, of which all others come while the first is inside.

    The effect of the first ends when every other has come: has begun to wait, has run
    the effect itself, was given a result, or was refused.
    """
    executions: list[int] = []
    results: list[Any] = [None] * callers
    inside, changed = threading.Event(), threading.Condition()
    come: set[threading.Thread] = set()

    def has_come(_=None):
        with changed:
            come.add(threading.current_thread())
            changed.notify_all()

    def effect(amount):
        executions.append(amount)
        result = 100 + sum(executions)
        if len(executions) == 1:
            inside.set()
            with changed:
                changed.wait_for(lambda: len(come) == callers - 1, LONG)
        return result

    run = idempotent_executor(effect, waiting=has_come)

    def call(i):
        try:
            results[i] = run.submit("k7", 10)
        except Exception as error:
            results[i] = f"{type(error).__name__}: {error}"
        has_come()

    threads = [threading.Thread(target=call, args=(i,)) for i in range(callers)]
    threads[0].start()
    inside.wait(LONG)
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    return executions, results


# ---- Two times: how it breaks -------------------------------------------------------


@chapter.fault(
    "bitemporal_latest_only",
    "what is on record now answers for every time",
    operation="bitemporal_lookup",
    story="The corrected value replaces history: an old report cannot be explained.",
    made_for="bitemporal_scenario",
    stays_green="merge_keeps_both",
)
def _(facts, *, valid_at, known_at, subject=""):
    now = max([f.known_from for f in facts] + [known_at])
    return bitemporal_lookup(facts, valid_at=valid_at, known_at=now, subject=subject)


@chapter.fault(
    "bitemporal_axes_swapped",
    "the two times exchange their places",
    operation="bitemporal_lookup",
    story="Two numbers of the same type side by side; some questions agree by luck.",
    made_for="bitemporal_scenario",
    stays_green="bitemporal_refuses_overlap",
)
def _(facts, *, valid_at, known_at, subject=""):
    return bitemporal_lookup(
        facts, valid_at=known_at, known_at=valid_at, subject=subject
    )


@chapter.fault(
    "bitemporal_closed_ends",
    "intervals hold their ends",
    operation="bitemporal_lookup",
    story="BETWEEN in SQL is closed on both sides: midnight belongs to two days.",
    made_for="bitemporal_ends_are_open",
    stays_green="bitemporal_refuses_overlap",
)
def _(facts, *, valid_at, known_at, subject=""):
    for f in facts:
        if (
            f.subject == subject
            and f.valid_from <= valid_at <= f.valid_to
            and f.known_from <= known_at <= f.known_to
        ):
            return f.value
    return None


@chapter.fault(
    "bitemporal_any_subject",
    "facts of another subject answer too",
    operation="bitemporal_lookup",
    story="A memory shared by two projects: what holds in one is told in the other.",
    made_for="bitemporal_latest_record_wins",
    stays_green="bitemporal_scenario",
)
def _(facts, *, valid_at, known_at, subject=""):
    for other in [subject, *{f.subject for f in facts} - {subject}]:
        value = bitemporal_lookup(
            facts, valid_at=valid_at, known_at=known_at, subject=other
        )
        if value is not None:
            return value
    return None


@chapter.fault(
    "bitemporal_takes_overlap",
    "of two facts for one time the first answers",
    operation="bitemporal_lookup",
    story="A table without a constraint: the answer is whatever the plan reads first.",
    made_for="bitemporal_refuses_overlap",
    stays_green="bitemporal_scenario",
    unguarded=True,
)
def _(facts, *, valid_at, known_at, subject=""):
    for f in facts:
        valid = f.valid_from <= valid_at < f.valid_to
        if valid and f.known_from <= known_at < f.known_to and f.subject == subject:
            return f.value
    return None


@chapter.fault(
    "record_rewrites_history",
    "a correction replaces what it corrects",
    operation="bitemporal_record",
    story="UPDATE instead of INSERT: the old belief is gone.",
    made_for="bitemporal_past_unchanged",
    stays_green="bitemporal_ends_are_open",
)
def _(facts, value, *, valid_from, valid_to=NEVER, at, subject=""):
    new = bitemporal_record(
        facts, value, valid_from=valid_from, valid_to=valid_to, at=at, subject=subject
    )
    return [f for f in new if f.known_to == NEVER]


@chapter.fault(
    "record_closes_whole_fact",
    "a correction of a part ends the whole fact",
    operation="bitemporal_record",
    story="The days that nobody corrected are no longer known.",
    made_for="bitemporal_scenario",
    stays_green="bitemporal_past_unchanged",
)
def _(facts, value, *, valid_from, valid_to=NEVER, at, subject=""):
    kept = []
    for f in facts:
        apart = f.valid_to <= valid_from or valid_to <= f.valid_from
        if apart or f.known_to != NEVER or f.subject != subject:
            kept.append(f)
        elif f.known_from < at:
            kept.append(f._replace(known_to=at))
    return [*kept, Fact(value, valid_from, valid_to, at, NEVER, subject)]


@chapter.fault(
    "record_rewrites_neighbours",
    "facts that touch the new one are recorded anew",
    operation="bitemporal_record",
    story="Closed intervals again: every answer is right, and the table doubles.",
    made_for="bitemporal_record_rows",
    stays_green="bitemporal_latest_record_wins",
)
def _(facts, value, *, valid_from, valid_to=NEVER, at, subject=""):
    kept = []
    for f in bitemporal_record(
        facts, value, valid_from=valid_from, valid_to=valid_to, at=at, subject=subject
    ):
        touches = f.valid_to == valid_from or f.valid_from == valid_to
        if touches and f.known_to == NEVER and f.known_from < at:
            kept += [f._replace(known_to=at), f._replace(known_from=at)]
        else:
            kept.append(f)
    return kept


# ---- Versions: how it breaks --------------------------------------------------------


@chapter.fault(
    "swap_last_writer_wins",
    "whoever comes last has written",
    operation="compare_and_swap",
    story="No comparison: what somebody else wrote in between is lost in silence.",
    made_for="swap_refuses_stale",
    stays_green="merge_keeps_both",
)
def _(current, *, expect, new):
    return compare_and_swap(current, expect=current.version, new=new)


@chapter.fault(
    "swap_newer_is_fine",
    "a version not older than the one seen is good enough",
    operation="compare_and_swap",
    story="A comparison with <=: it refuses the impossible and lets the stale pass.",
    made_for="swap_refuses_stale",
    stays_green="merge_of_changes",
)
def _(current, *, expect, new):
    if expect <= current.version:
        return compare_and_swap(current, expect=current.version, new=new)
    return compare_and_swap(current, expect=expect, new=new)


@chapter.fault(
    "swap_version_stands_still",
    "the version is not counted up",
    operation="compare_and_swap",
    story="The first swap works, and so does every stale one after it.",
    made_for="swap_sees_there_and_back",
    stays_green="report_of_this_version",
)
def _(current, *, expect, new):
    found = compare_and_swap(current, expect=expect, new=new)
    return found._replace(now=found.now._replace(version=current.version))


@chapter.fault(
    "swap_failure_counts",
    "a swap that fails counts the version up",
    operation="compare_and_swap",
    story="A loser of the race invalidates the winner.",
    made_for="swap_refuses_stale",
    stays_green="merge_keeps_both",
)
def _(current, *, expect, new):
    found = compare_and_swap(current, expect=expect, new=new)
    return found._replace(now=found.now._replace(version=current.version + 1))


@chapter.fault(
    "merge_last_writer",
    "the second side is taken whole",
    operation="three_way_merge",
    story="Both read, both write the whole document: the first update is lost.",
    made_for="merge_keeps_both",
    stays_green="merge_same_change_twice",
)
def _(base, ours, theirs):
    three_way_merge(base, ours, theirs)
    return dict(theirs)


@chapter.fault(
    "merge_without_base",
    "both sides are poured together, the second over the first",
    operation="three_way_merge",
    story="Without the base a key that was removed comes back, and old beats new.",
    made_for="merge_of_changes",
    stays_green="merge_same_change_twice",
)
def _(base, ours, theirs):
    three_way_merge(base, ours, theirs)
    return {**ours, **theirs}


@chapter.fault(
    "merge_both_changed_is_conflict",
    "a key that both sides changed is a conflict, whatever they made of it",
    operation="three_way_merge",
    story="Two people who fix the same typo have to talk about it.",
    made_for="merge_same_change_twice",
    stays_green="merge_keeps_both",
)
def _(base, ours, theirs):
    gone = object()
    for key in {*base, *ours, *theirs}:
        old, a, b = (side.get(key, gone) for side in (base, ours, theirs))
        if a != old and b != old:
            raise ValueError(f"theirs and ours both changed {key!r}")
    return three_way_merge(base, ours, theirs)


@chapter.fault(
    "merge_takes_theirs",
    "a conflict goes to the second side",
    operation="three_way_merge",
    story="A merge that never asks.",
    made_for="merge_refuses_conflict",
    stays_green="merge_of_changes",
)
def _(base, ours, theirs):
    keys = {k for k in ours if k in theirs and ours[k] != base.get(k) != theirs[k]}
    mine = {k: theirs[k] if k in keys else v for k, v in ours.items()}
    return three_way_merge(base, mine, theirs)


@chapter.fault(
    "report_green_is_green",
    "any report that succeeded will do",
    operation="report_is_current",
    story="The tests passed, on the commit before: a badge, not evidence.",
    made_for="report_of_this_version",
    stays_green="approval_for_this_thing",
)
def _(report, version):
    return report.exit_status == 0


@chapter.fault(
    "report_exists",
    "any report of this version will do",
    operation="report_is_current",
    story="The job ran; nobody looked at how it ended.",
    made_for="report_of_this_version",
    stays_green="report_of_this_commit",
)
def _(report, version):
    return report.version == version


@chapter.fault(
    "approval_for_the_action",
    "an approval holds for every place and version",
    operation="approval_covers",
    story="Approved once, deployed for ever: the artefact has changed since.",
    made_for="approval_for_this_thing",
    stays_green="report_of_this_version",
)
def _(approved, wanted):
    return approved.get("do") == wanted.get("do")


@chapter.fault(
    "approval_of_shared_fields",
    "fields that one side does not name are not compared",
    operation="approval_covers",
    story="A subset for equality: a request that says less, or asks for more, passes.",
    made_for="approval_for_this_thing",
    stays_green="report_of_this_commit",
)
def _(approved, wanted):
    return all(approved[key] == wanted[key] for key in approved.keys() & wanted)


@chapter.fault(
    "refund_either",
    "one of the two conditions is enough",
    operation="refund_allowed",
    story="A sentence with two conditions, turned into code with the wrong word.",
    made_for="refund_needs_both",
    stays_green="approval_for_this_thing",
)
def _(days, condition, *, window=7):
    return days <= window or condition


@chapter.fault(
    "refund_last_day_out",
    "the last day of the window does not count",
    operation="refund_allowed",
    story="Within seven days: the seventh is, or is not.",
    made_for="refund_needs_both",
    stays_green="report_of_this_version",
)
def _(days, condition, *, window=7):
    return days < window and condition


# ---- Once: how it breaks ------------------------------------------------------------


@chapter.fault(
    "idempotent_no_receipts",
    "every call runs the effect",
    operation="idempotent_executor",
    story="A retry after a lost answer pays twice.",
    made_for="idempotent_replay",
    stays_green="unknown_is_not_failed",
)
def _(effect, *, waiting=None):
    class Forgets(IdempotentExecutor):
        def submit(self, key, payload):
            return self._effect(payload)

    return Forgets(effect)


@chapter.fault(
    "idempotent_payload_ignored",
    "the key alone decides",
    operation="idempotent_executor",
    story="A key used for another request is answered with the first one's result.",
    made_for="idempotent_refuses_other_payload",
    stays_green="idempotent_replay",
)
def _(effect, *, waiting=None):
    class Trusts(IdempotentExecutor):
        def submit(self, key, payload):
            return super().submit(key, self._payloads.get(key, payload))

    return Trusts(effect, waiting or (lambda key: None))


@chapter.fault(
    "idempotent_receipt_after",
    "the key is written down when the effect has ended",
    operation="idempotent_executor",
    story=(
        "Look, run, write down: right in every test with one thread, and two clicks in "
        "one second pay twice."
    ),
    made_for="idempotent_concurrent",
    stays_green="idempotent_replay",
)
def _(effect, *, waiting=None):
    class Late(IdempotentExecutor):
        def submit(self, key, payload):
            if key in self._results:
                return super().submit(key, payload)
            result = self._effect(payload)
            self._payloads[key], self._results[key] = payload, result
            return result

    return Late(effect)


@chapter.fault(
    "idempotent_key_lost_on_error",
    "a key whose effect raised stays reserved for ever",
    operation="idempotent_executor",
    story="The reservation is not undone: the customer cannot try again.",
    made_for="idempotent_after_exception",
    stays_green="idempotent_concurrent",
)
def _(effect, *, waiting=None):
    class Keeps(IdempotentExecutor):
        def submit(self, key, payload):
            if key in self._payloads and key not in self._results and failed:
                raise ValueError(f"payload of {key!r} is in flight")
            try:
                return super().submit(key, payload)
            except OSError:
                failed.append(key)
                self._payloads[key] = payload
                raise

    failed: list[str] = []
    return Keeps(effect, waiting or (lambda key: None))


@chapter.fault(
    "retry_unknown",
    "unknown is treated as failed",
    operation="safe_to_retry",
    story="A time-out says that no answer came, and is read as: it did not happen.",
    made_for="unknown_is_not_failed",
    stays_green="idempotent_replay",
)
def _(statuses, effects):
    return [key for key, status in statuses.items() if status in ("failed", "unknown")]


@chapter.fault(
    "retry_never_unknown",
    "unknown is treated as succeeded",
    operation="safe_to_retry",
    story="The careful mistake: what did not happen never will.",
    made_for="retry_table",
    stays_green="unknown_is_not_failed",
)
def _(statuses, effects):
    seen = set(effects)
    return [key for key, s in statuses.items() if s == "failed" and key not in seen]


@chapter.fault(
    "retry_pending",
    "what is still under way is started again",
    operation="safe_to_retry",
    story="Impatience: everything that has not succeeded is run again.",
    made_for="retry_table",
    stays_green="unknown_is_not_failed",
)
def _(statuses, effects):
    seen = set(effects)
    return [key for key, s in statuses.items() if s != "succeeded" and key not in seen]


# ---- Logs: how it breaks ------------------------------------------------------------


@chapter.fault(
    "replay_first_status",
    "the first status of a key stays",
    operation="replay_events",
    story="setdefault where an assignment was meant.",
    made_for="replay_last_status",
    stays_green="replay_worked",
)
def _(events, *, initial=None):
    state = dict(initial or {})
    for key, status in events:
        state.setdefault(key, status)
    return state


@chapter.fault(
    "replay_does_it_again",
    "replaying counts every event anew",
    operation="replay_events",
    story="Events that are commands: reading the log twice sends the mail twice.",
    made_for="replay_worked",
    stays_green="compaction_keeps_suffix",
)
def _(events, *, initial=None):
    state = dict(initial or {})
    for key, status in events:
        state[key] = f"{state[key]}, {status}" if key in state else status
    return state


@chapter.fault(
    "replay_from_nothing",
    "what was there before is dropped",
    operation="replay_events",
    story="The snapshot is loaded, and not used.",
    made_for="compaction_same_state",
    stays_green="replay_last_status",
)
def _(events, *, initial=None):
    return replay_events(events)


@chapter.fault(
    "compaction_drops_suffix",
    "the snapshot replaces the whole log",
    operation="compact_log",
    story="What arrived while the summary was written is lost.",
    made_for="compaction_keeps_suffix",
    stays_green="replay_worked",
)
def _(log, snapshot):
    return [snapshot]


@chapter.fault(
    "compaction_by_position",
    "as many events are dropped as the snapshot's number says",
    operation="compact_log",
    story="Numbers taken for positions: right in a log without gaps.",
    made_for="compaction_same_state",
    stays_green="compaction_keeps_suffix",
)
def _(log, snapshot):
    return [snapshot, *log[snapshot.covers :]]


@chapter.fault(
    "compaction_keeps_covered",
    "the last covered event is kept beside the snapshot",
    operation="compact_log",
    story="At least for more than: one event is applied twice.",
    made_for="compaction_keeps_suffix",
    stays_green="compaction_same_state",
)
def _(log, snapshot):
    return [snapshot, *(event for event in log if event.number >= snapshot.covers)]


# ---- Who may see, who answered, what is meant: how it breaks ------------------------


@chapter.fault(
    "acl_after_cut",
    "the first k are taken, then filtered",
    operation="acl_filter",
    story=(
        "Permissions checked at the end: the reader gets less than there is, and can "
        "count what is hidden."
    ),
    made_for="acl_before_cut",
    stays_green="acl_hides_the_best",
)
def _(ranked, groups, *, k=None):
    return acl_filter(list(ranked)[:k], groups)


@chapter.fault(
    "acl_not_asked",
    "everything found is shown",
    operation="acl_filter",
    story="The search index knows no permissions; the model quotes what it was given.",
    made_for="acl_hides_the_best",
    stays_green="pairs_by_id",
)
def _(ranked, groups, *, k=None):
    return [document.id for document in ranked][:k]


@chapter.fault(
    "acl_all_groups",
    "the reader must be in every group of the document",
    operation="acl_filter",
    story="All for any: documents for two groups are seen by nobody.",
    made_for="acl_before_cut",
    stays_green="pairs_worked",
)
def _(ranked, groups, *, k=None):
    return [d.id for d in ranked if d.readers <= set(groups)][:k]


@chapter.fault(
    "pairs_by_arrival",
    "the first result goes to the first call",
    operation="pair_results",
    story="Right as long as tools answer in the order in which they were called.",
    made_for="pairs_worked",
    stays_green="pairs_refuse_strangers",
)
def _(calls, results):
    pair_results(calls, results)
    values = [value for _, value in results] + [None] * len(calls)
    return [(what, value) for (_, what), value in zip(calls, values, strict=False)]


@chapter.fault(
    "pairs_drop_pending",
    "a call without a result is left out",
    operation="pair_results",
    story="An inner join: nobody notices that an answer is missing.",
    made_for="pairs_by_id",
    stays_green="pairs_worked",
)
def _(calls, results):
    return [pair for pair in pair_results(calls, results) if pair[1] is not None]


@chapter.fault(
    "pairs_take_strangers",
    "results without a call are passed over",
    operation="pair_results",
    story="An id with a typo is a missing result, and looks like a slow tool.",
    made_for="pairs_refuse_strangers",
    stays_green="pairs_by_id",
    unguarded=True,
)
def _(calls, results):
    by_id = dict(results)
    return [(what, by_id.get(id)) for id, what in calls]


@chapter.fault(
    "path_prefix",
    "a path is excluded if it begins with the name",
    operation="path_is_excluded",
    story="startswith without the slash: excluding build hides builder.",
    made_for="path_boundary",
    stays_green="pairs_worked",
)
def _(path, directory):
    return path.startswith(directory)


@chapter.fault(
    "path_anywhere",
    "the name may stand anywhere in the path",
    operation="path_is_excluded",
    story="The rule of gitignore for names without a slash, applied to a path.",
    made_for="path_boundary",
    stays_green="screen_worked",
)
def _(path, directory):
    return directory in path.split("/")


@chapter.fault(
    "path_as_written",
    "paths are compared as they are written",
    operation="path_is_excluded",
    story="A slash at the end of the configuration, and nothing is excluded any more.",
    made_for="path_spellings",
    stays_green="path_boundary",
)
def _(path, directory):
    return path == directory or path.startswith(directory + "/")


@chapter.fault(
    "path_not_itself",
    "a directory does not exclude itself",
    operation="path_is_excluded",
    story="Only what is inside is skipped: the walk still lists the directory.",
    made_for="path_boundary",
    stays_green="screen_and_back",
)
def _(path, directory):
    return path != directory and path_is_excluded(path, directory)


@chapter.fault(
    "screen_scroll_added",
    "the scroll position is added",
    operation="page_to_screen",
    story="The sign of a scroll: right at the top of the page.",
    made_for="screen_worked",
    stays_green="path_boundary",
)
def _(point, *, scroll=(0, 0), ratio=1):
    return page_to_screen(point, scroll=(-scroll[0], -scroll[1]), ratio=ratio)


@chapter.fault(
    "screen_scroll_after_ratio",
    "the scroll is subtracted in pixels",
    operation="page_to_screen",
    story="Units mixed: right on a screen with one pixel a unit.",
    made_for="screen_and_back",
    stays_green="path_spellings",
)
def _(point, *, scroll=(0, 0), ratio=1):
    return point[0] * ratio - scroll[0], point[1] * ratio - scroll[1]


@chapter.fault(
    "click_in_pixels",
    "a pixel of the screenshot is clicked as it is",
    operation="screen_to_page",
    story="On a screen with two pixels a unit every click lands at twice the distance.",
    made_for="screen_worked",
    stays_green="path_boundary",
)
def _(point, *, scroll=(0, 0), ratio=1):
    return screen_to_page(point, scroll=scroll)


@chapter.fault(
    "click_forgets_scroll",
    "the scroll position is forgotten",
    operation="screen_to_page",
    story="Clicks are right until the page is scrolled.",
    made_for="screen_and_back",
    stays_green="screen_worked",
)
def _(point, *, scroll=(0, 0), ratio=1):
    return screen_to_page(point, ratio=ratio)
