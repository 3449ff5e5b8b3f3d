"""Who knows what, and since when: versions, receipts, logs, permissions."""

from __future__ import annotations

import math
import posixpath
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..ops import _validate as must
from ..ops._op import op

NEVER = math.inf


class Fact(NamedTuple):
    """A value, when it holds in the world, and when it was on record.

    Both intervals are half-open: from is inside, to is not.
    """

    value: Any
    valid_from: float
    valid_to: float = NEVER
    known_from: float = -math.inf
    known_to: float = NEVER
    subject: str = ""


class Versioned(NamedTuple):
    """A value and the number of times it was written."""

    value: Any
    version: int


class Swap(NamedTuple):
    """Whether a swap took place, and what stands there now."""

    ok: bool
    now: Versioned


class Snapshot(NamedTuple):
    """What stands for all events up to a number."""

    covers: int
    summary: Any


class Event(NamedTuple):
    """One line of a log."""

    number: int
    body: Any


class Readable(NamedTuple):
    """A document, and the groups that may read it."""

    id: str
    readers: frozenset[str]


class Report(NamedTuple):
    """The outcome of a run, and the version that ran."""

    version: str
    exit_status: int


# ---- Two times ----------------------------------------------------------------------


def _facts(facts: Sequence[Fact]) -> None:
    for fact in facts:
        if not fact.valid_from < fact.valid_to:
            raise ValueError(f"facts hold an empty valid interval: {fact}")
        if not fact.known_from < fact.known_to:
            raise ValueError(f"facts hold an empty known interval: {fact}")
    for i, a in enumerate(facts):
        for b in facts[:i]:
            if (
                a.valid_from < b.valid_to
                and b.valid_from < a.valid_to
                and a.known_from < b.known_to
                and b.known_from < a.known_to
                and a.subject == b.subject
            ):
                raise ValueError(f"facts overlap in both times: {b} and {a}")


def _instant(**times: float) -> None:
    for name, t in times.items():
        if t != t:
            raise ValueError(f"{name} must be a time, got {t}")


def _asked(
    facts: Sequence[Fact], *, valid_at: float, known_at: float, subject: str = ""
) -> None:
    _facts(facts)
    _instant(valid_at=valid_at, known_at=known_at)


def _recorded(
    facts: Sequence[Fact],
    value: Any,
    *,
    valid_from: float,
    valid_to: float = NEVER,
    at: float,
    subject: str = "",
) -> None:
    _facts(facts)
    _instant(valid_from=valid_from, valid_to=valid_to, at=at)
    if not valid_from < valid_to:
        raise ValueError(
            f"valid_from must be before valid_to, got {valid_from} and {valid_to}"
        )
    latest = max((f.known_from for f in facts if f.subject == subject), default=-NEVER)
    if at < latest:
        raise ValueError(f"at must not be before the latest record, {latest}, got {at}")


@op(_asked)
def bitemporal_lookup(
    facts: Sequence[Fact], *, valid_at: float, known_at: float, subject: str = ""
) -> Any:
    """What was held true for one time, according to what was on record at another.

    valid_at: the time in the world; known_at: the time of the record. A later
    correction never changes the answer for an earlier known_at. None where nothing is
    on record. Raises ValueError for facts of one subject that overlap in both times,
    and for empty intervals. Sources: Snodgrass and Ahn 1985; Snodgrass 1999.

    >>> facts = [Fact("Oslo", 0, 10, 1, 5), Fact("Rome", 7, 10, 5)]
    >>> bitemporal_lookup(facts, valid_at=8, known_at=3)
    'Oslo'
    >>> bitemporal_lookup(facts, valid_at=8, known_at=5)
    'Rome'
    """
    for fact in facts:
        valid = fact.valid_from <= valid_at < fact.valid_to
        known = fact.known_from <= known_at < fact.known_to
        if valid and known and fact.subject == subject:
            return fact.value
    return None


@op(_recorded)
def bitemporal_record(
    facts: Sequence[Fact],
    value: Any,
    *,
    valid_from: float,
    valid_to: float = NEVER,
    at: float,
    subject: str = "",
) -> list[Fact]:
    """Put a fact on record: what it corrects is closed, and nothing is erased.

    at: the time of the record, not before the latest of the subject. A fact on record
    that overlaps the new one ends its known time at `at`, and those parts of it that
    the new one leaves alone begin theirs. Returns the new list.

    >>> first = bitemporal_record([], 5, valid_from=1, at=1)
    >>> [tuple(f)[:5] for f in bitemporal_record(first, 7, valid_from=5, at=10)]
    [(5, 1, inf, 1, 10), (5, 1, 5, 10, inf), (7, 5, inf, 10, inf)]
    """
    kept: list[Fact] = []
    for fact in facts:
        apart = fact.valid_to <= valid_from or valid_to <= fact.valid_from
        if apart or fact.known_to != NEVER or fact.subject != subject:
            kept.append(fact)
            continue
        if fact.known_from < at:
            kept.append(fact._replace(known_to=at))
        if fact.valid_from < valid_from:
            kept.append(fact._replace(valid_to=valid_from, known_from=at))
        if valid_to < fact.valid_to:
            kept.append(fact._replace(valid_from=valid_to, known_from=at))
    return [*kept, Fact(value, valid_from, valid_to, at, NEVER, subject)]


# ---- Versions -----------------------------------------------------------------------


def _swapped(current: Versioned, *, expect: int, new: Any) -> None:
    must.count(0, **{"version of current": current.version, "expect": expect})


@op(_swapped)
def compare_and_swap(current: Versioned, *, expect: int, new: Any) -> Swap:
    """Write only over the version that was read; say whether that was so.

    expect: the version that the writer has seen. Versions, not values, are compared: a
    value that went from a to b and back to a was written twice in between. A swap that
    fails changes nothing.

    >>> compare_and_swap(Versioned("a", 3), expect=3, new="b")
    Swap(ok=True, now=Versioned(value='b', version=4))
    """
    if current.version != expect:
        return Swap(False, current)
    return Swap(True, Versioned(new, current.version + 1))


@op()
def three_way_merge(
    base: Mapping[str, Any], ours: Mapping[str, Any], theirs: Mapping[str, Any]
) -> dict[str, Any]:
    """Both sides' changes since a common base; nobody's is lost.

    A key that one side changed, added or removed takes that side's state. Raises
    ValueError, naming theirs and the key, where both changed it in different ways:
    which is right cannot be computed.

    >>> three_way_merge({"a": 1, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 2})
    {'a': 2, 'b': 2}
    """
    gone = object()
    merged = {}
    for key in dict.fromkeys([*base, *ours, *theirs]):
        old, a, b = (side.get(key, gone) for side in (base, ours, theirs))
        if a != old and b != old and a != b:
            raise ValueError(f"theirs and ours both changed {key!r}: {b!r} and {a!r}")
        new = b if a == old else a
        if new is not gone:
            merged[key] = new
    return merged


@op()
def report_is_current(report: Report, version: str) -> bool:
    """Whether a report speaks for a version: it is of that one, and it succeeded.

    A green report of an older version says nothing about what was changed since.

    >>> report_is_current(Report("v8", 0), "v9")
    False
    """
    return report.exit_status == 0 and report.version == version


@op()
def approval_covers(approved: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    """Whether an approval is for this very thing: same action, place and version.

    Every field counts, and one that is missing on either side is a difference.

    >>> approval_covers({"do": "deploy", "version": "v8"},
    ...                 {"do": "deploy", "version": "v9"})
    False
    """
    return dict(approved) == dict(wanted)


def _days(days: int, condition: bool, *, window: int = 7) -> None:
    must.count(0, days=days, window=window)
    if not isinstance(condition, bool):
        raise ValueError(f"condition must be True or False, got {condition!r}")


@op(_days)
def refund_allowed(days: int, condition: bool, *, window: int = 7) -> bool:
    """Whether two conditions both hold: in time, and the other one.

    days: since the purchase; the window's last day counts. "Within seven days and on a
    working day" read as "or" lets everything through that meets half of it.

    >>> refund_allowed(6, False), refund_allowed(7, True)
    (False, True)
    """
    return days <= window and condition


# ---- Once, and only once ------------------------------------------------------------


class IdempotentExecutor:
    """Run an effect once a key, whoever asks how often, from however many threads.

    The key is reserved before the effect runs. Whoever comes with the same key while it
    runs waits for it, and is handed its result; so is whoever comes later. The same
    key with another payload is refused: one of the two would be given the other's
    result. If the effect raises, the key is free again and the exception goes to the
    one who ran it: an effect may raise only if it did nothing. waiting(key) is called
    when somebody is about to wait.
    """

    def __init__(
        self,
        effect: Callable[[Any], Any],
        waiting: Callable[[str], None] = lambda key: None,
    ) -> None:
        self._effect, self._waiting = effect, waiting
        self._changed = threading.Condition()
        self._payloads: dict[str, Any] = {}  # reserved keys
        self._results: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<IdempotentExecutor with {len(self._results)} results>"

    def submit(self, key: str, payload: Any) -> Any:
        """The result of the effect for this key, run now or before."""
        with self._changed:
            while key in self._payloads:
                if self._payloads[key] != payload:
                    raise ValueError(
                        f"payload of {key!r} was {self._payloads[key]!r}, "
                        f"got {payload!r}"
                    )
                if key in self._results:
                    return self._results[key]
                self._waiting(key)
                self._changed.wait()
            self._payloads[key] = payload
        try:
            result = self._effect(payload)
        except BaseException:
            with self._changed:
                del self._payloads[key]
                self._changed.notify_all()
            raise
        with self._changed:
            self._results[key] = result
            self._changed.notify_all()
        return result


def _callables(
    effect: Callable[[Any], Any], *, waiting: Callable[[str], None] | None = None
) -> None:
    if not callable(effect):
        raise ValueError(f"effect must be a function, got {effect!r}")
    if waiting is not None and not callable(waiting):
        raise ValueError(f"waiting must be a function, got {waiting!r}")


@op(_callables)
def idempotent_executor(
    effect: Callable[[Any], Any], *, waiting: Callable[[str], None] | None = None
) -> IdempotentExecutor:
    """A new :class:`IdempotentExecutor` for an effect, with no key taken.

    >>> pay = idempotent_executor(lambda amount: f"paid {amount}")
    >>> pay.submit("k1", 5), pay.submit("k1", 5)
    ('paid 5', 'paid 5')
    """
    if waiting is None:
        return IdempotentExecutor(effect)
    return IdempotentExecutor(effect, waiting)


def _statuses(statuses: Mapping[str, str], effects: Collection[str]) -> None:
    known = ("succeeded", "failed", "pending", "unknown")
    for key, status in statuses.items():
        if status not in known:
            raise ValueError(
                f"statuses must be among {', '.join(known)}, got {status!r} for {key!r}"
            )
    if isinstance(effects, str) or not isinstance(effects, Collection):
        raise ValueError(f"effects must be a collection of keys, got {effects!r}")


@op(_statuses)
def safe_to_retry(statuses: Mapping[str, str], effects: Collection[str]) -> list[str]:
    """The operations that may be run again without happening twice.

    statuses: operation -> "succeeded", "failed" (it did nothing), "pending" (it may
    still happen) or "unknown" (the answer was lost). effects: the operations whose
    effect is seen on the other side. Unknown is not failed: it may be run again only
    where the effect was looked for and is absent.

    >>> safe_to_retry({"op7": "unknown", "op8": "unknown"}, ["op7"])
    ['op8']
    """
    seen = set(effects)
    return [
        key
        for key, status in statuses.items()
        if key not in seen and status in ("failed", "unknown")
    ]


# ---- Logs ---------------------------------------------------------------------------


def _pairs_of(
    events: Sequence[tuple[str, str]], *, initial: Mapping[str, str] | None = None
) -> None:
    for event in events:
        if isinstance(event, str) or len(event) != 2:
            raise ValueError(f"events must be (key, status) pairs, got {event!r}")


def _compacted(log: Sequence[Event], snapshot: Snapshot) -> None:
    numbers = [event.number for event in log]
    if numbers != sorted(set(numbers)):
        raise ValueError(f"log must be numbered upwards, got {numbers}")
    must.count(0, **{"covers of snapshot": snapshot.covers})


@op(_pairs_of)
def replay_events(
    events: Sequence[tuple[str, str]], *, initial: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The state that a log leads to: the last status of each key.

    events: (key, status) in order. Replaying reads what happened and does nothing: a
    log replayed on its own result changes nothing.

    >>> replay_events([("c7", "pending"), ("c7", "succeeded"), ("c8", "pending")])
    {'c7': 'succeeded', 'c8': 'pending'}
    """
    state = dict(initial or {})
    for key, status in events:
        state[key] = status
    return state


@op(_compacted)
def compact_log(log: Sequence[Event], snapshot: Snapshot) -> list[Any]:
    """The snapshot in place of what it covers, and everything after it kept.

    A log grows while its summary is being written. What came since is not in the
    summary, and stays.

    >>> compact_log([Event(1, "a"), Event(2, "b")], Snapshot(1, "a happened"))
    [Snapshot(covers=1, summary='a happened'), Event(number=2, body='b')]
    """
    return [snapshot, *(event for event in log if event.number > snapshot.covers)]


# ---- Who may see, who answered, what is meant ---------------------------------------


def _visible(
    ranked: Sequence[Readable], groups: Collection[str], *, k: int | None = None
) -> None:
    for document in ranked:
        if isinstance(document.readers, str):
            raise ValueError(f"ranked: readers must be a set, got {document}")
    if isinstance(groups, str) or not isinstance(groups, Collection):
        raise ValueError(f"groups must be a collection of names, got {groups!r}")
    if k is not None:
        must.count(1, k=k)


def _paired(
    calls: Sequence[tuple[str, Any]], results: Sequence[tuple[str, Any]]
) -> None:
    for name, pairs in (("calls", calls), ("results", results)):
        ids = [id for id, _ in pairs]
        if len(set(ids)) < len(ids):
            raise ValueError(f"{name} name one id twice: {ids}")
    known = {id for id, _ in calls}
    for id, _ in results:
        if id not in known:
            raise ValueError(f"results name {id!r}, which nobody called")


def _paths(path: str, directory: str) -> None:
    for name, value in (("path", path), ("directory", directory)):
        if not isinstance(value, str) or not value:
            raise ValueError(f"{name} must be a path, got {value!r}")


def _screen(
    point: tuple[float, float],
    *,
    scroll: tuple[float, float] = (0, 0),
    ratio: float = 1,
) -> None:
    for name, pair in (("point", point), ("scroll", scroll)):
        if len(pair) != 2:
            raise ValueError(f"{name} must be (x, y), got {pair!r}")
        must.finite(**{name: float(pair[0] + pair[1])})
    must.positive(ratio=ratio)


@op(_visible)
def acl_filter(
    ranked: Sequence[Readable], groups: Collection[str], *, k: int | None = None
) -> list[str]:
    """The first k documents that somebody may read, in the order of the ranking.

    ranked: best first, each with the groups that may read it; groups: the reader's.
    Permission first, cut second: the other way round, what the reader may not see
    takes the places of what he may, and its absence tells that it is there.

    >>> ranked = [Readable("secret", frozenset({"admin"})),
    ...           Readable("open", frozenset({"admin", "user"}))]
    >>> acl_filter(ranked, ["user"], k=1)
    ['open']
    """
    mine = set(groups)
    return [document.id for document in ranked if mine & document.readers][:k]


@op(_paired)
def pair_results(
    calls: Sequence[tuple[str, Any]], results: Sequence[tuple[str, Any]]
) -> list[tuple[Any, Any]]:
    """Each call with its own result, by id; results come in any order.

    calls, results: (id, what). A call without a result yet has None.
    Raises ValueError for an id that stands twice, or that nobody called.

    >>> pair_results([("a", "read x"), ("b", "read y")], [("b", "Y"), ("a", "X")])
    [('read x', 'X'), ('read y', 'Y')]
    """
    by_id = dict(results)
    return [(what, by_id.get(id)) for id, what in calls]


@op(_paths)
def path_is_excluded(path: str, directory: str) -> bool:
    """Whether a path is a directory or lies inside it.

    A name that merely begins like the directory is another one: the boundary is a
    slash. ``.``, ``..`` and double slashes are resolved in the text of the path;
    symbolic links are not followed.

    >>> path_is_excluded("cache/x", "cache"), path_is_excluded("cache2/x", "cache")
    (True, False)
    """
    inside, outer = posixpath.normpath(path), posixpath.normpath(directory)
    return inside == outer or inside.startswith(outer.rstrip("/") + "/")


@op(_screen)
def page_to_screen(
    point: tuple[float, float],
    *,
    scroll: tuple[float, float] = (0, 0),
    ratio: float = 1,
) -> tuple[float, float]:
    """Where a point of a page is in a screenshot: (point - scroll) ratio.

    point, scroll: (x, y) in the page's units; ratio: pixels of the screenshot a unit.

    >>> page_to_screen((10, 300), scroll=(0, 200))
    (10, 100)
    """
    return (point[0] - scroll[0]) * ratio, (point[1] - scroll[1]) * ratio


@op(_screen)
def screen_to_page(
    point: tuple[float, float],
    *,
    scroll: tuple[float, float] = (0, 0),
    ratio: float = 1,
) -> tuple[float, float]:
    """Where a pixel of a screenshot is on the page: point / ratio + scroll.

    The inverse of :func:`page_to_screen`. A click wants the units of the page, and a
    model that looks at the screenshot gives its pixels.

    >>> screen_to_page((120, 80), ratio=2)
    (60.0, 40.0)
    """
    return point[0] / ratio + scroll[0], point[1] / ratio + scroll[1]
