"""Exercises on retrieval."""

from __future__ import annotations

from ..identities import recorded
from ..ops.retrieval import bm25_term, rrf
from . import exercise


@exercise(
    "ranking/half",
    hint="Write the factor without b, since the length is the average: f(k1 + 1)/(f + "
    "k1). For which f is it half of k1 + 1?",
    because="f/(f + k1) is one half where f = k1: that is what k1 means.",
    larger_k1=4,
)
def _(larger_k1: float) -> int:
    length, half = 40, (larger_k1 + 1) / 2
    for f in range(1, length):
        doc = ["term"] * f + ["other"] * (length - f)
        found = bm25_term([doc, ["other"] * length], "term", k1=larger_k1)
        if found.tf_factor[0] == half:
            return f
    raise ValueError("no number of matches brings half of the ceiling")


@exercise(
    "ranking/both_lists",
    hint="The winner of one list has 1/(c + 1). At place r in both lists an id has "
    "2/(c + r). Up to which r is that more?",
    because="2/(c + r) is above 1/(c + 1) as long as r is below c + 2. There both are "
    "equal.",
    c=60,
)
def _(c: float) -> int:
    place = 1
    while _both(place + 1, c) > rrf([["winner"]], c=c)[0][1]:
        place += 1
    return place


@exercise(
    "ranking/notices",
    hint="Loop over the faults of bm25, bm25_term and bm25_idf, and sort the documents "
    "by their scores inside lab.broken.",
    because="A negative weight turns the order around, and presence sees no counts. "
    "Nothing else changes the order.",
)
def _() -> set[str]:
    return {
        id
        for id, row in recorded()["faults"].items()
        if row["operation"] in ("bm25", "bm25_term", "bm25_idf")
        and "bm25_two_matches_ahead" in row["red"]
    }


def _both(place: int, c: float) -> float:
    """The score of an id that stands at this place in both of two lists."""
    ahead = [[f"{name}{i}" for i in range(place - 1)] for name in "xy"]
    return dict(rrf([[*one, "both"] for one in ahead], c=c))["both"]
