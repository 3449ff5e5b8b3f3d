"""Laws of retrieval, evaluation, serving and streams, for inputs nobody chose."""

from __future__ import annotations

from itertools import pairwise

import labcore
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

ids = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6)
counts = st.integers(0, 12)
# Bytes in which everything that matters to an event stream is frequent.
pieces = st.sampled_from(
    [b"\r", b"\n", b"\r\n", b"\n\n", b"data", b":", b" ", b"id", b"event", b"retry: 7"]
    + [b"\xef\xbb\xbf", b"\xe6", b"\x88\x91", b"\xff", "漢".encode(), b"x", b"\0"]
)
bodies = st.lists(pieces, max_size=25).map(b"".join)
cuts = st.lists(st.integers(0, 80), max_size=6)


def cut(body: bytes, places: list[int]) -> list[bytes]:
    inside = sorted(min(place, len(body)) for place in places)
    return [body[a:b] for a, b in pairwise([0, *inside, len(body)])]


@given(body=bodies, places=cuts)
@settings(max_examples=300)
def test_where_a_stream_is_cut_changes_nothing(body, places):
    assert labcore.sse_decode(cut(body, places)) == labcore.sse_decode([body])


@given(body=bodies, more=bodies)
def test_what_comes_later_changes_no_event_before(body, more):
    first = labcore.sse_decode([body]).events
    assert labcore.sse_decode([body, more]).events[: len(first)] == first


@given(text=st.text(max_size=30), places=cuts)
def test_text_is_the_text_however_it_is_cut(text, places):
    assert "".join(labcore.utf8_stream(cut(text.encode(), places))) == text


@given(data=st.binary(max_size=12), places=cuts)
def test_bytes_are_refused_exactly_where_python_refuses_them(data, places):
    try:
        want = data.decode()
    except UnicodeDecodeError:
        with pytest.raises(ValueError, match="chunks"):
            labcore.utf8_stream(cut(data, places))
    else:
        assert "".join(labcore.utf8_stream(cut(data, places))) == want


@given(lists=st.lists(ids, min_size=1, max_size=4), seed=st.integers(0, 99))
def test_fusion_does_not_depend_on_the_order_of_the_lists(lists, seed):
    order = np.random.default_rng(seed).permutation(len(lists))
    assert labcore.rrf([lists[i] for i in order]) == labcore.rrf(lists)


@given(retrieved=ids, relevant=ids, k=st.integers(1, 9))
def test_precision_and_recall_are_shares_and_recall_grows(retrieved, relevant, k):
    p = labcore.precision(retrieved, relevant, k=k)
    r = labcore.recall(retrieved, relevant, k=k)
    assert 0 <= p <= 1 and 0 <= r <= 1
    assert labcore.recall(retrieved, relevant, k=k + 1) >= r
    assert (
        (p == 0) == (r == 0) == (labcore.reciprocal_rank(retrieved, relevant, k=k) == 0)
    )


@given(n=st.integers(1, 30), c=counts, k=st.integers(1, 29))
def test_pass_at_k_grows_with_every_draw_and_every_success(n, c, k):
    n = max(n, c, k + 1)
    value = labcore.pass_at_k(n, c, k)
    assert 0 <= value <= 1
    assert labcore.pass_at_k(n, c, k + 1) >= value
    if c < n:
        assert labcore.pass_at_k(n, c + 1, k) >= value


@given(b=counts, c=counts)
def test_a_p_value_is_one_and_is_smaller_the_more_uneven(b, c):
    p = labcore.mcnemar_exact(b, c)
    assert 0 < p <= 1
    if b >= c:
        assert labcore.mcnemar_exact(b + 1, max(c - 1, 0)) <= p or c == 0


@given(
    durations=st.lists(st.integers(0, 9), min_size=1, max_size=7),
    links=st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=9),
)
def test_a_plan_is_between_its_longest_task_and_the_sum(durations, links):
    n = len(durations)
    after: dict[int, list[int]] = {}
    for a, b in links:
        if a < b < n:
            after.setdefault(b, []).append(a)
    plan = labcore.critical_path(dict(enumerate(durations)), after)
    assert max(durations) <= plan.makespan <= sum(durations)
    assert all(slack >= 0 for slack in plan.slack.values())
    assert all(plan.slack[id] == 0 for id in plan.path)
    assert sum(durations[id] for id in plan.path) == plan.makespan


@given(
    visits=st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=8
    )
)
def test_littles_law_holds_for_any_visits(visits):
    arrivals = [float(a) for a, _ in visits]
    departures = [float(a + stay) for a, stay in visits]
    trace = labcore.queue_trace(arrivals, departures, horizon=max(departures) + 1.0)
    assert trace.L == pytest.approx(labcore.littles_law(trace.rate, trace.W))


@given(
    slo=st.decimals(0, 1, places=5).map(float),
    requests=st.integers(0, 10**6),
)
def test_an_error_budget_keeps_the_level_and_one_more_would_not(slo, requests):
    from fractions import Fraction

    allowed = labcore.error_budget(requests, slo, 0).allowed
    level = Fraction(repr(slo))
    assert requests - allowed >= level * requests
    assert requests - (allowed + 1) < level * requests


@given(
    records=st.lists(
        st.tuples(st.integers(0, 9), st.integers(1, 9), st.integers(0, 3)), max_size=6
    ),
    valid=st.integers(0, 18),
    known=st.integers(-1, 20),
)
def test_the_last_record_on_file_answers(records, valid, known):
    facts, at, said = [], 0, None
    for i, (start, length, later) in enumerate(records):
        at += later
        facts = labcore.bitemporal_record(
            facts, i, valid_from=start, valid_to=start + length, at=at
        )
        if start <= valid < start + length and at <= known:
            said = i
    assert labcore.bitemporal_lookup(facts, valid_at=valid, known_at=known) == said


@given(
    base=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
    ours=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
    theirs=st.dictionaries(st.sampled_from("abcd"), st.integers(0, 2)),
)
def test_a_merge_does_not_depend_on_who_is_who(base, ours, theirs):
    def merged(a, b):
        try:
            return labcore.three_way_merge(base, a, b)
        except ValueError:
            return None

    assert merged(ours, theirs) == merged(theirs, ours)
    assert merged(ours, base) == ours
