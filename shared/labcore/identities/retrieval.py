"""Retrieval: what must hold, and how it breaks."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from ..ops.gradients import contrastive_gradient
from ..ops.optim import sgd_step
from ..ops.retrieval import (
    bm25,
    bm25_idf,
    bm25_term,
    greedy_graph_search,
    maxsim,
    nearest,
    precision,
    precision_recall,
    recall,
    reciprocal_rank,
    rrf,
)
from ._check import Inputs, Rng, nothing
from .worked import retrieval as chapter

# Lengths 2, 4, 2; "exclude" once, twice, never.
DOCS = [["exclude", "path"], ["exclude", "exclude", "path", "cache"], ["log", "output"]]
LISTS = [["A", "B", "C"], ["B", "C", "D"]]
LINE = {"A": [4.0], "B": [5.0], "C": [1.0]}
LINKS = [("A", "B"), ("B", "C")]


# ---- What is drawn ----------------------------------------------------------------


def some_docs(rng: Rng, size: int) -> Inputs:
    """Documents of unequal length; the rare word is in two of them, "often" in all."""
    docs = []
    for i in range(size + 3):
        filling = rng.choice(["u", "v", "w"], size=2 * i + 1).tolist()
        docs.append(
            ["often"] * (1 + i % 2) + ["rare"] * (i in (1, 2)) * (i + 1) + filling
        )
    return {
        "docs": docs,
        "k1": float(rng.uniform(0.8, 1.8)),
        "b": float(rng.uniform(0.4, 0.9)),
    }


def some_lists(rng: Rng, size: int) -> Inputs:
    """Two rankings of the same ids in opposite orders of luck, and one shorter."""
    ids = [f"d{i}" for i in range(size + 3)]
    lists = [rng.permutation(ids).tolist() for _ in range(2)]
    return {"lists": [*lists, lists[0][-2:]], "c": float(rng.integers(1, 70))}


def a_constant(rng: Rng, size: int) -> Inputs:
    """A constant for fusion, not the paper's."""
    return {"c": size + int(rng.integers(1, 20))}


def some_relevance(rng: Rng, size: int) -> Inputs:
    """A ranking whose first hit is not its first place; some relevant are missed."""
    hits, misses = size + 1, size + 2
    mixed = rng.permutation(
        [f"yes{i}" for i in range(hits)] + [f"no{i}" for i in range(misses - 1)]
    ).tolist()
    relevant = [f"yes{i}" for i in range(hits + 2)]
    return {"retrieved": ["no", *mixed], "relevant": relevant}


def some_vectors(rng: Rng, size: int) -> Inputs:
    """Documents all of whose similarities to the queries are negative."""
    q = np.abs(rng.normal(size=(2, size + 1, 3))) + 0.1
    d = -np.abs(rng.normal(size=(2, size + 2, 3))) - 0.1
    return {"q": q, "d": d}


def mixed_vectors(rng: Rng, size: int) -> Inputs:
    """Similarities of both signs; one vector of each side is padding."""
    q = rng.normal(size=(2, size + 2, 3))
    d = rng.normal(size=(2, size + 3, 3))
    d[:, -1] = 9 * q.sum(axis=1)  # padding that would win if it were looked at
    return {
        "q": q,
        "d": d,
        "q_mask": np.arange(size + 2) < size + 1,
        "d_mask": np.arange(size + 3) < size + 2,
    }


def a_graph(rng: Rng, size: int) -> Inputs:
    """Points on a chain that is entered at its end, and a few chords."""
    n = size + 4
    points = {f"p{i}": rng.normal(size=2).tolist() for i in range(n)}
    names = list(points)
    edges = list(zip(names, names[1:], strict=False))
    pairs = [rng.choice(names[:-1], 2, replace=False) for _ in range(size)]
    chords = [tuple(pair.tolist()) for pair in pairs]
    return {
        "points": points,
        "edges": edges + chords,
        "query": rng.normal(size=2).tolist(),
        "entry": names[-1],
    }


# ---- Term weights: what must hold --------------------------------------------------


@chapter.check(
    "bm25_worked",
    "By hand: 0.5235 for one match in two words, 0.5666 for two in four.",
    draw=nothing,
    kind="value",
)
def _():
    # idf = ln(1 + 1.5/2.5) = ln 1.6. Average length 8/3: the lengths weigh
    # 1.2 (.25 + .75 * 2 / (8/3)) = .975 and 1.2 (.25 + .75 * 4 / (8/3)) = 1.65.
    # Factors: 1 * 2.2 / 1.975 and 2 * 2.2 / 3.65; nothing for no match.
    want = math.log(1.6) * np.array([2.2 / 1.975, 4.4 / 3.65, 0.0])
    return bm25(DOCS, ["exclude"]), want


@chapter.check(
    "bm25_two_matches_ahead",
    "Two matches among four words stay ahead of one among two; no match has nothing.",
    draw=nothing,
    kind="order",
)
def _():
    one, two, none = bm25(DOCS, ["exclude"])
    return np.array([two, one]), np.array([one, none])


@chapter.check(
    "bm25_reciprocal_form",
    "Each factor is (k1 + 1) / (1 + k1 L / f), L the length's weight.",
    draw=some_docs,
)
def _(docs, k1, b):
    lengths = np.array([len(doc) for doc in docs])
    f = np.array([doc.count("often") for doc in docs])
    weight = 1 + b * (lengths / lengths.mean() - 1)
    idf = np.log(1 + 0.5 / (len(docs) + 0.5))  # it is in every document
    want = idf * (k1 + 1) / (1 + k1 * weight / f)
    return bm25(docs, ["often"], k1=k1, b=b), want


@chapter.check(
    "bm25_query_terms_add",
    "A query is the sum of its terms; one that stands twice counts twice.",
    draw=some_docs,
)
def _(docs, k1, b):
    often, rare = (bm25(docs, [t], k1=k1, b=b) for t in ("often", "rare"))
    got = bm25(docs, ["rare", "often", "rare", "absent"], k1=k1, b=b)
    return got, often + 2 * rare


@chapter.check(
    "bm25_idf_positive",
    "The weight of a term is positive even where every document holds it.",
    draw=some_docs,
    kind="order",
)
def _(docs, k1, b):
    n = len(docs)
    return np.array([bm25_idf(n, df) for df in range(n + 1)]), np.zeros(n + 1)


@chapter.check(
    "bm25_rarer_weighs_more",
    "The fewer documents hold a term, the more it weighs.",
    draw=some_docs,
    kind="order",
)
def _(docs, k1, b):
    idf = np.array([bm25_idf(len(docs), df) for df in range(len(docs) + 1)])
    return idf[:-1], idf[1:]


@chapter.check(
    "bm25_idf_worked",
    "In one document of three a term weighs ln(8/3), in all of them ln(8/7).",
    draw=nothing,
    kind="value",
)
def _():
    # 1 + 2.5/1.5 = 8/3, however often it stands in that one; 1 + .5/3.5 = 8/7.
    pink = [["pink"] * 5, ["blue"], ["red"]]
    got = [bm25_term(pink, "pink").idf, bm25_idf(3, 3)]
    return np.array(got), np.log([8 / 3, 8 / 7])


@chapter.check(
    "bm25_more_matches_raise",
    "One more match in place of another word raises the score, of a common term too.",
    draw=some_docs,
    kind="order",
)
def _(docs, k1, b):
    def score(matches):
        changed = [["often"] * matches + ["u"] * (6 - matches), *docs]
        return bm25(changed, ["often"], k1=k1, b=b)[0]

    return np.array([score(2), score(6)]), np.array([score(1), score(2)])


@chapter.check(
    "bm25_saturates",
    "No number of matches brings more than k1 + 1 times the idf.",
    draw=some_docs,
    kind="order",
)
def _(docs, k1, b):
    many = [["often"] * 50, *docs]
    most = (k1 + 1) * bm25_idf(len(many), len(many))
    return most, float(bm25(many, ["often"], k1=k1, b=b)[0])


@chapter.check(
    "bm25_b_zero_ignores_length",
    "With b = 0 words that nobody asks for change nothing.",
    draw=some_docs,
)
def _(docs, k1, b):
    longer = [[*doc, *["x"] * (3 * i)] for i, doc in enumerate(docs)]
    return (
        bm25(longer, ["often"], k1=k1, b=0.0),
        bm25(docs, ["often"], k1=k1, b=0.0),
    )


@chapter.check(
    "bm25_full_length_only_density",
    "With b = 1 a document written twice over scores what it scored.",
    draw=some_docs,
)
def _(docs, k1, b):
    twice = [*docs, [*docs[0], *docs[0]]]  # one collection, one average length
    scores = bm25(twice, ["often"], k1=k1, b=1.0)
    return scores[-1], scores[0]


@chapter.check(
    "bm25_without_factor",
    "Without the factor k1 + 1 every score is that much smaller.",
    draw=some_docs,
)
def _(docs, k1, b):
    plain = bm25(docs, ["often"], k1=k1, b=b, saturation_factor=False)
    return (k1 + 1) * plain, bm25(docs, ["often"], k1=k1, b=b)


@chapter.check(
    "bm25_refuses_empty",
    "A collection without documents has no average length, and is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: bm25_term([], "a"), "docs"


# ---- Rankings: what must hold -------------------------------------------------------


@chapter.check(
    "rrf_worked",
    "Two lists of three: B is second and first, and comes out ahead.",
    draw=nothing,
    kind="value",
)
def _():
    # B: 1/62 + 1/61; C: 1/63 + 1/62; A: 1/61; D: 1/63.
    want = [1 / 62 + 1 / 61, 1 / 63 + 1 / 62, 1 / 61, 1 / 63]
    return np.array([score for _, score in rrf(LISTS)]), np.array(want)


@chapter.check(
    "rrf_order",
    "Their order is B, C, A, D.",
    draw=nothing,
    kind="exact",
)
def _():
    return [id for id, _ in rrf(LISTS)], ["B", "C", "A", "D"]


@chapter.check(
    "rrf_fractions",
    "Scores are sums of exact fractions over the places of each id.",
    draw=some_lists,
)
def _(lists, c):
    want = {
        id: float(
            sum(1 / (Fraction(c) + 1 + one.index(id)) for one in lists if id in one)
        )
        for id in lists[0]
    }
    got = dict(rrf(lists, c=c))
    return np.array([got[id] for id in want]), np.array(list(want.values()))


@chapter.check(
    "rrf_best_first",
    "Scores fall from place to place.",
    draw=some_lists,
    kind="exact",
)
def _(lists, c):
    scores = [score for _, score in rrf(lists, c=c)]
    return scores, sorted(scores, reverse=True)


@chapter.check(
    "rrf_duplicate",
    "An id that stands twice in one list counts by its first place.",
    draw=some_lists,
    kind="exact",
)
def _(lists, c):
    stuttered = [[x for id in one for x in (id, one[0])] for one in lists]
    return rrf(stuttered, c=c), rrf(lists, c=c)


@chapter.check(
    "rrf_lists_commute",
    "The lists may come in any order, ties included.",
    draw=some_lists,
    kind="exact",
)
def _(lists, c):
    tied = [lists[0], lists[0][::-1]]
    return (
        (rrf(lists[::-1], c=c), rrf(tied[::-1], c=c)),
        (rrf(lists, c=c), rrf(tied, c=c)),
    )


@chapter.check(
    "rrf_absent_adds_nothing",
    "A longer list without an id does not change the id's score.",
    draw=some_lists,
    kind="exact",
)
def _(lists, c):
    others = [f"x{i}" for i in range(5)]
    longer = dict(rrf([lists[0], others], c=c))
    alone = dict(rrf([lists[0], others[:1]], c=c))
    return [longer[id] for id in lists[0]], [alone[id] for id in lists[0]]


@chapter.check(
    "rrf_both_lists_meet_the_winner",
    "At place c + 2 of both lists an id ties with the first of one list.",
    draw=a_constant,
    kind="exact",
)
def _(c):
    # 2/(c + c + 2) = 1/(c + 1); one place further up it is ahead.
    def both_less_winner(place):
        ahead = [[f"{name}{i}" for i in range(place - 1)] for name in "uv"]
        scores = dict(rrf([[*one, "both"] for one in ahead], c=c))
        return int(np.sign(scores["both"] - scores["u0"]))

    return [both_less_winner(c + 1 + step) for step in range(3)], [1, 0, -1]


@chapter.check(
    "rrf_refuses_c",
    "A constant that makes the first place infinite or negative is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: rrf([["a"]], c=-1), "c must"


@chapter.check(
    "precision_recall_worked",
    "One of three retrieved is relevant, one of two relevant is retrieved.",
    draw=nothing,
    kind="value",
)
def _():
    got = precision_recall(["A", "X", "Y"], ["A", "B"])
    return np.array(got), np.array([1 / 3, 1 / 2, 2 / 5])  # F1 = 2 / (3 + 2)


@chapter.check(
    "precision_recall_counts",
    "By counts: tp/(tp + fp), tp/(tp + fn), 2 tp/(2 tp + fp + fn).",
    draw=some_relevance,
)
def _(retrieved, relevant):
    tp = sum(id in relevant for id in retrieved)
    fp, fn = len(retrieved) - tp, len(relevant) - tp
    want = [tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn)]
    return np.array(precision_recall(retrieved, relevant)), np.array(want)


@chapter.check(
    "wider_net",
    "Forty retrieved for ten: recall rises and precision falls.",
    draw=nothing,
    kind="order",
)
def _():
    relevant, others = list(range(10)), list(range(100, 130))
    old = precision_recall(relevant[:8] + others[:2], relevant)
    new = precision_recall(relevant + others, relevant)
    return (
        np.array([new.recall, old.precision]),
        np.array([old.recall, new.precision]),
    )


@chapter.check(
    "precision_at_k_divides_by_k",
    "Precision at five of a list of two divides by five.",
    draw=nothing,
    kind="value",
)
def _():
    got = precision_recall(["a", "x"], ["a", "b", "c"], k=5)
    return np.array(got), np.array([1 / 5, 1 / 3, 2 / 8])  # F1 = 2 / (5 + 3)


@chapter.check(
    "cut_at_k",
    "Only the first k places count.",
    draw=some_relevance,
)
def _(retrieved, relevant):
    got: list[Any] = []
    want: list[Any] = []
    for k in range(1, len(retrieved) + 1):  # with none, and as many as are relevant
        hits = sum(id in relevant for id in retrieved[:k])
        got.append(precision_recall(retrieved, relevant, k=k)[1:])
        want.append([hits / len(relevant), 2 * hits / (k + len(relevant))])
        got.append(
            [precision(retrieved, relevant, k=k), recall(retrieved, relevant, k=k)]
        )
        want.append([hits / k, hits / len(relevant)])
    return np.array(got), np.array(want)


@chapter.check(
    "repeated_hit_counts_once",
    "A hit that is retrieved again adds nothing.",
    draw=some_relevance,
)
def _(retrieved, relevant):
    hit = next(id for id in retrieved if id in relevant)
    again = precision_recall([*retrieved, hit, hit], [*relevant, hit])
    return np.array(again), np.array(precision_recall(retrieved, relevant))


@chapter.check(
    "reciprocal_rank_first_hit",
    "The first relevant place decides, counted from one.",
    draw=some_relevance,
)
def _(retrieved, relevant):
    hits = [id in relevant for id in retrieved]
    first = hits.index(True) + 1
    got = [reciprocal_rank(retrieved, relevant, k=k) for k in (None, first, first - 1)]
    return np.array(got), np.array([1 / first, 1 / first, 0.0])


@chapter.check(
    "equal_recall_other_first_hit",
    "Equal recall among three, and twice the reciprocal rank.",
    draw=nothing,
    kind="value",
)
def _():
    x, y = ["a", "p", "q"], ["p", "a", "q"]
    got = [recall(x, ["a"], k=3), recall(y, ["a"], k=3)]
    got += [reciprocal_rank(x, ["a"]), reciprocal_rank(y, ["a"])]
    return np.array(got), np.array([1.0, 1.0, 1.0, 0.5])


@chapter.check(
    "precision_refuses_nothing",
    "Precision of nothing retrieved is refused, not 0 and not 1.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: precision([], ["a"]), "retrieved"


@chapter.check(
    "recall_refuses_nothing",
    "Recall of nothing relevant is refused.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: recall(["a"], []), "relevant"


# ---- Vectors: what must hold --------------------------------------------------------


@chapter.check(
    "maxsim_worked",
    "Two words of a query find 0.8 and 1; one vector in between finds less.",
    draw=nothing,
    kind="value",
)
def _():
    # Rows of similarities: (.8, 0) and (.6, 1), best .8 + 1. The vector between the
    # axes has the component 1/sqrt 2 along both.
    q = [[1.0, 0.0], [0.0, 1.0]]
    between = [[np.sqrt(0.5), np.sqrt(0.5)]]
    got = [float(maxsim(q, [[0.8, 0.6], [0.0, 1.0]])), float(maxsim(q, between))]
    return np.array(got), np.array([1.8, np.sqrt(2)])


@chapter.check(
    "maxsim_padding",
    "Vectors of zeros that a mask leaves out do not win over negative similarities.",
    draw=some_vectors,
)
def _(q, d):
    padded = np.concatenate([d, np.zeros_like(d[:, :2])], axis=1)
    mask = np.arange(padded.shape[1]) < d.shape[1]
    return maxsim(q, padded, d_mask=mask), maxsim(q, d)


@chapter.check(
    "maxsim_additive",
    "A query is the sum of its vectors, each by itself.",
    draw=mixed_vectors,
)
def _(q, d, q_mask, d_mask):
    alone = [maxsim(q[:, i : i + 1], d, d_mask=d_mask) for i in range(q.shape[1] - 1)]
    return maxsim(q, d, q_mask=q_mask, d_mask=d_mask), np.sum(alone, axis=0)


@chapter.check(
    "maxsim_by_pairs",
    "The best of all pairs, one query vector at a time.",
    draw=mixed_vectors,
)
def _(q, d, q_mask, d_mask):
    want = [
        sum(max(float(x @ y) for y in b[d_mask]) for x in a[q_mask])
        for a, b in zip(q, d, strict=True)
    ]
    return maxsim(q, d, q_mask=q_mask, d_mask=d_mask), np.array(want)


@chapter.check(
    "maxsim_asymmetric",
    "Query and document do not exchange their roles.",
    draw=nothing,
    kind="differs",
)
def _():
    # Forward: the one query vector takes 1. Backward: 1, and 0.5 for the second.
    q, d = [[1.0, 0.0]], [[1.0, 0.0], [0.5, 0.0]]
    return float(maxsim(q, d)), float(maxsim(d, q))


@chapter.check(
    "maxsim_refuses_empty",
    "A document without vectors has no best one.",
    draw=nothing,
    kind="refuses",
)
def _():
    return lambda: maxsim([[1.0]], np.zeros((0, 1))), "d has no"


@chapter.check(
    "contrastive_step_away_from_both",
    "A step raises the product with the right document and goes away from it.",
    draw=nothing,
    kind="order",
)
def _():
    # q = (1, 0), documents (.8, .6) and (0, 1): the loss knows q only through the
    # difference of its products, so q moves along (.8, -.4). The product with the
    # first document gains as .8 * .8 - .6 * .4 > 0; its distance gains as
    # (q - a) (.8, -.4) = .2 * .8 + .6 * .4 > 0.
    q, a, b = [1.0, 0.0], np.array([0.8, 0.6]), np.array([0.0, 1.0])
    products = [[float(maxsim([q], [d])) for d in (a, b)]]
    [of_scores] = contrastive_gradient(products, tau=1.0)
    after = sgd_step(q, of_scores @ np.stack([a, b]), lr=0.1)
    got = [float(maxsim([after], [a])), nearest({"a": after.tolist()}, a)[0][1]]
    return np.array(got), np.array([products[0][0], math.hypot(0.2, 0.6)])


@chapter.check(
    "greedy_stops_early",
    "The greedy walk stays at A though C is nearer: the way leads over B, farther off.",
    draw=nothing,
    kind="exact",
)
def _():
    walks = [
        greedy_graph_search(LINE, LINKS, [0.0], entry="A", beam=beam)[0][0]
        for beam in (1, 2)
    ]
    return (*walks, nearest(LINE, [0.0])[0][0]), ("A", "C", "C")


@chapter.check(
    "beam_escapes_at_three",
    "A local minimum that a beam of two does not leave, and a beam of three does.",
    draw=nothing,
    kind="exact",
)
def _():
    # From E (4) to L (2), a dead end; H (5) leads to T (1). With two places E and L
    # fill the beam, and H is worse than both.
    points = {"E": [4.0, 0.0], "L": [2.0, 0.0], "H": [4.0, 3.0], "T": [0.0, 1.0]}
    edges = [("E", "L"), ("E", "H"), ("H", "T")]
    got = [
        greedy_graph_search(points, edges, [0.0, 0.0], entry="E", beam=beam)
        for beam in (1, 2, 3)
    ]
    want = [
        [("L", 2.0)],
        [("L", 2.0), ("E", 4.0)],
        [("T", 1.0), ("L", 2.0), ("E", 4.0)],
    ]
    return got, want


@chapter.check(
    "beam_nearest_candidate_first",
    "The nearest candidate is looked at first; one as far as the last in a full beam, "
    "never.",
    draw=nothing,
    kind="exact",
)
def _():
    # From e (5): a (8) has room, z (3) puts it out, and leads to t (1). Looked at by
    # name, a would come first, be farther than the beam, and end the walk.
    points = {"e": [5.0], "a": [8.0], "z": [3.0], "t": [1.0]}
    edges = [("e", "a"), ("e", "z"), ("z", "t")]
    # From A (2) the way to C (1) leads over B, which is as far as A.
    level = {"A": [2.0], "B": [-2.0], "C": [1.0]}
    return (
        greedy_graph_search(points, edges, [0.0], entry="e", beam=2),
        greedy_graph_search(level, LINKS, [0.0], entry="A"),
    ), ([("t", 1.0), ("z", 3.0)], [("A", 2.0)])


@chapter.check(
    "unreachable_stays_unfound",
    "What no edge leads to is not found, however wide the beam.",
    draw=a_graph,
    kind="exact",
)
def _(points, edges, query, entry):
    apart = {**points, "apart": query}
    got = greedy_graph_search(apart, edges, query, entry=entry, beam=99)
    return got, nearest(points, query, k=99)


@chapter.check(
    "wide_beam_is_exhaustive",
    "On a connected graph a beam as wide as the graph finds all, nearest first.",
    draw=a_graph,
    kind="exact",
)
def _(points, edges, query, entry):
    got = greedy_graph_search(points, edges, query, entry=entry, beam=len(points))
    ids = sorted(points, key=lambda id: np.hypot(*np.subtract(points[id], query)))
    return [id for id, _ in got], ids


@chapter.check(
    "beam_keeps_its_width",
    "At most as many are returned as the beam is wide, with their distances.",
    draw=a_graph,
)
def _(points, edges, query, entry):
    got = greedy_graph_search(points, edges, query, entry=entry, beam=3)
    far = [np.linalg.norm(np.subtract(points[id], query)) for id, _ in got]
    shape = np.array([float(len(got)), float(len(set(id for id, _ in got)))])
    return (np.array([x for _, x in got]), shape), (np.array(far), np.array([3.0, 3.0]))


@chapter.check(
    "nearest_by_sorting",
    "The k nearest are the first of all distances sorted.",
    draw=a_graph,
)
def _(points, edges, query, entry):
    distances = np.linalg.norm(np.subtract(list(points.values()), query), axis=1)
    got = [distance for _, distance in nearest(points, query, k=3)]
    return np.array(got), np.sort(distances)[:3]


# ---- Term weights: how it breaks ---------------------------------------------------


@chapter.fault(
    "bm25_classic_idf",
    "nothing is added inside the logarithm",
    operation="bm25_idf",
    story=(
        "The form of the first papers: negative for a term in more than half of the "
        "documents, so that a match is punished; libraries still differ in it."
    ),
    made_for="bm25_idf_positive",
    stays_green="bm25_rarer_weighs_more",
)
def _(n, df):
    return math.log((n - df + 0.5) / (df + 0.5))


@chapter.fault(
    "bm25_smooth_idf",
    "the logarithm of N over df",
    operation="bm25_idf",
    story="The idf of TF-IDF in place of BM25's; the order of rarity is the same.",
    made_for="bm25_idf_worked",
    stays_green="bm25_rarer_weighs_more",
)
def _(n, df):
    return math.log(1 + n / (df + 1))


@chapter.fault(
    "bm25_idf_ignores_df",
    "every term weighs the same",
    operation="bm25_idf",
    story="An idf computed once for the collection and cached without its term.",
    made_for="bm25_rarer_weighs_more",
    stays_green="bm25_idf_positive",
)
def _(n, df):
    return bm25_idf(n, 1)


@chapter.fault(
    "bm25_collection_frequency",
    "occurrences are counted where documents should be",
    operation="bm25_term",
    story=(
        "Collection frequency for document frequency: a word repeated in one document "
        "passes for a common one."
    ),
    made_for="bm25_idf_worked",
    stays_green="bm25_b_zero_ignores_length",
)
def _(docs, term, *, k1=1.2, b=0.75):
    found = bm25_term(docs, term, k1=k1, b=b)
    everywhere = min(len(docs), sum(found.frequency))
    idf = bm25_idf(len(docs), everywhere)
    return found._replace(idf=idf, score=[idf * factor for factor in found.tf_factor])


@chapter.fault(
    "bm25_no_length_norm",
    "the length of a document does not count",
    operation="bm25_term",
    story="b read from a configuration that has no b: long documents win.",
    made_for="bm25_worked",
    stays_green="bm25_b_zero_ignores_length",
)
def _(docs, term, *, k1=1.2, b=0.75):
    return bm25_term(docs, term, k1=k1, b=0.0)


@chapter.fault(
    "bm25_b_ignored",
    "b is 0.75, whatever was asked",
    operation="bm25_term",
    story="A default that is bound before the option is read.",
    made_for="bm25_b_zero_ignores_length",
    stays_green="bm25_worked",
)
def _(docs, term, *, k1=1.2, b=0.75):
    return bm25_term(docs, term, k1=k1)


@chapter.fault(
    "bm25_presence_only",
    "a term counts once, however often it stands there",
    operation="bm25_term",
    story="An index that keeps sets of terms has no counts to give.",
    made_for="bm25_two_matches_ahead",
    stays_green="bm25_idf_worked",
)
def _(docs, term, *, k1=1.2, b=0.75):
    once = [
        [w for i, w in enumerate(doc) if w != term or w not in doc[:i]] for doc in docs
    ]
    padded = [
        [*new, *[""] * (len(old) - len(new))]
        for new, old in zip(once, docs, strict=True)
    ]
    return bm25_term(padded, term, k1=k1, b=b)


@chapter.fault(
    "bm25_no_saturation",
    "the count itself is the factor",
    operation="bm25_term",
    story="TF-IDF under the name of BM25: fifty repetitions are worth fifty matches.",
    made_for="bm25_saturates",
    stays_green="bm25_more_matches_raise",
)
def _(docs, term, *, k1=1.2, b=0.75):
    found = bm25_term(docs, term, k1=k1, b=b)
    return found._replace(score=[found.idf * f for f in found.frequency])


@chapter.fault(
    "bm25_query_as_set",
    "a term that stands twice in the query counts once",
    operation="bm25",
    story="The query is tokenised into a set.",
    made_for="bm25_query_terms_add",
    stays_green="bm25_worked",
)
def _(docs, query, *, k1=1.2, b=0.75, saturation_factor=True):
    return bm25(
        docs,
        list(dict.fromkeys(query)),
        k1=k1,
        b=b,
        saturation_factor=saturation_factor,
    )


@chapter.fault(
    "bm25_factor_always",
    "the factor k1 + 1 is there, whatever was asked",
    operation="bm25",
    story=(
        "Scores of two libraries compared number by number: one has the factor, the "
        "other dropped it, and both are called BM25."
    ),
    made_for="bm25_without_factor",
    stays_green="bm25_worked",
)
def _(docs, query, *, k1=1.2, b=0.75, saturation_factor=True):
    return bm25(docs, query, k1=k1, b=b)


@chapter.fault(
    "bm25_takes_empty",
    "an empty collection has the average length 0",
    operation="bm25_term",
    story="A guard against dividing by zero that turns an error into silence.",
    made_for="bm25_refuses_empty",
    stays_green="bm25_worked",
    unguarded=True,
)
def _(docs, term, *, k1=1.2, b=0.75):
    return bm25_term(docs, term, k1=k1, b=b) if docs else None


# ---- Rankings: how it breaks --------------------------------------------------------


def _fuse(lists, c, places, absent=None):
    """Scores from the places of each list; absent gives a place to who has none."""
    scores: dict[Any, Fraction] = {}
    ids = dict.fromkeys(id for one in lists for id in one)
    for one in lists:
        seen = places(one)
        for id in ids:
            ranks = seen.get(id) or ([] if absent is None else [absent(one)])
            for rank in ranks:
                scores[id] = scores.get(id, Fraction(0)) + 1 / (Fraction(c) + rank)
    order = sorted(scores, key=lambda id: (-scores[id], id))
    return [(id, float(scores[id])) for id in order]


def _first_places(one, start=1):
    return {id: [rank] for rank, id in enumerate(dict.fromkeys(one), start)}


@chapter.fault(
    "rrf_ranks_from_zero",
    "places are counted from zero",
    operation="rrf",
    story="Ranks taken from enumerate: every order on one list is the same.",
    made_for="rrf_worked",
    stays_green="rrf_order",
)
def _(lists, *, c=60):
    return _fuse(lists, c, lambda one: _first_places(one, 0))


@chapter.fault(
    "rrf_counts_duplicates",
    "every occurrence counts",
    operation="rrf",
    story="Chunks of one document fused as if each were another document.",
    made_for="rrf_duplicate",
    stays_green="rrf_order",
)
def _(lists, *, c=60):
    def places(one):
        found: dict[Any, list[int]] = {}
        for rank, id in enumerate(one, 1):
            found.setdefault(id, []).append(rank)
        return found

    return _fuse(lists, c, places)


@chapter.fault(
    "rrf_absent_is_last",
    "an id that a list does not have is behind its last",
    operation="rrf",
    story="A default rank for what is missing, as outer joins suggest.",
    made_for="rrf_absent_adds_nothing",
    stays_green="rrf_lists_commute",
)
def _(lists, *, c=60):
    return _fuse(lists, c, _first_places, absent=lambda one: len(one) + 1)


@chapter.fault(
    "rrf_ties_by_arrival",
    "ties stand in the order in which they were met",
    operation="rrf",
    story="A stable sort by score alone: results change with the order of the lists.",
    made_for="rrf_lists_commute",
    stays_green="rrf_worked",
)
def _(lists, *, c=60):
    order = list(dict.fromkeys(id for one in lists for id in one))
    return sorted(rrf(lists, c=c), key=lambda found: (-found[1], order.index(found[0])))


@chapter.fault(
    "rrf_worst_first",
    "scores are sorted upwards",
    operation="rrf",
    story="A distance is best when small, a score when large.",
    made_for="rrf_order",
    stays_green="rrf_fractions",
)
def _(lists, *, c=60):
    return rrf(lists, c=c)[::-1]


@chapter.fault(
    "rrf_c_ignored",
    "the constant is 60, whatever was asked",
    operation="rrf",
    story="The number of the paper written into the loop.",
    made_for="rrf_fractions",
    stays_green="rrf_worked",
)
def _(lists, *, c=60):
    return rrf(lists)


@chapter.fault(
    "rrf_takes_any_c",
    "the constant is not looked at",
    operation="rrf",
    story="A constant of -1 divides by zero at the first place.",
    made_for="rrf_refuses_c",
    stays_green="rrf_worked",
    unguarded=True,
)
def _(lists, *, c=60):
    return _fuse(lists, max(c, 0), _first_places)


@chapter.fault(
    "precision_recall_swapped",
    "precision and recall exchange their names",
    operation="precision_recall",
    story="Retrieved and relevant in the other order, as in half of the libraries.",
    made_for="wider_net",
    stays_green="reciprocal_rank_first_hit",
)
def _(retrieved, relevant, *, k=None):
    p, r, f1 = precision_recall(retrieved, relevant, k=k)
    return type(precision_recall(retrieved, relevant, k=k))(r, p, f1)


@chapter.fault(
    "f1_arithmetic_mean",
    "F1 is the plain mean of the two",
    operation="precision_recall",
    story="Equal where precision and recall are equal.",
    made_for="precision_recall_worked",
    stays_green="wider_net",
)
def _(retrieved, relevant, *, k=None):
    found = precision_recall(retrieved, relevant, k=k)
    return found._replace(f1=(found.precision + found.recall) / 2)


@chapter.fault(
    "precision_at_k_divides_by_found",
    "precision at k divides by what was returned",
    operation="precision",
    story="Short answers look precise: a list of one hit scores 1 at any k.",
    made_for="precision_at_k_divides_by_k",
    stays_green="precision_recall_worked",
)
def _(retrieved, relevant, *, k=None):
    return precision(retrieved[:k], relevant)


@chapter.fault(
    "precision_counts_repeats",
    "a hit that is retrieved twice counts twice",
    operation="precision",
    story="Chunks of one document, each of them a hit.",
    made_for="repeated_hit_counts_once",
    stays_green="precision_recall_counts",
)
def _(retrieved, relevant, *, k=None):
    first = list(retrieved[:k])
    return sum(id in set(relevant) for id in first) / (len(first) if k is None else k)


@chapter.fault(
    "recall_ignores_k",
    "recall looks at the whole ranking",
    operation="recall",
    story="The cut is applied for precision only.",
    made_for="cut_at_k",
    stays_green="precision_recall_counts",
)
def _(retrieved, relevant, *, k=None):
    return recall(retrieved, relevant)


@chapter.fault(
    "recall_counts_repeats",
    "a hit that is retrieved twice counts twice",
    operation="recall",
    story="Recall above 1 has been reported for exactly this reason.",
    made_for="repeated_hit_counts_once",
    stays_green="precision_recall_worked",
)
def _(retrieved, relevant, *, k=None):
    return sum(id in set(relevant) for id in retrieved[:k]) / len(set(relevant))


@chapter.fault(
    "precision_of_nothing_is_zero",
    "precision of nothing is 0",
    operation="precision",
    story="The usual default, with a warning or without: silence is scored as failure.",
    made_for="precision_refuses_nothing",
    stays_green="precision_recall_worked",
    unguarded=True,
)
def _(retrieved, relevant, *, k=None):
    return precision(retrieved, relevant, k=k) if retrieved else 0.0


@chapter.fault(
    "recall_of_nothing_is_one",
    "recall of nothing is 1",
    operation="recall",
    story="Nothing was missed, says one library; another returns 0.",
    made_for="recall_refuses_nothing",
    stays_green="precision_recall_worked",
    unguarded=True,
)
def _(retrieved, relevant, *, k=None):
    return recall(retrieved, relevant, k=k) if relevant else 1.0


@chapter.fault(
    "reciprocal_rank_from_zero",
    "ranks begin at 0, and 1 is added to nothing",
    operation="reciprocal_rank",
    story="enumerate again; the guard against dividing by zero hides it at the top.",
    made_for="equal_recall_other_first_hit",
    stays_green="precision_recall_worked",
)
def _(retrieved, relevant, *, k=None):
    ranks = [rank for rank, id in enumerate(retrieved[:k]) if id in set(relevant)]
    return 1 / max(ranks[0], 1) if ranks else 0.0


@chapter.fault(
    "reciprocal_rank_last_hit",
    "the last relevant place decides",
    operation="reciprocal_rank",
    story="A dictionary from id to rank that is read after it was overwritten.",
    made_for="reciprocal_rank_first_hit",
    stays_green="equal_recall_other_first_hit",
)
def _(retrieved, relevant, *, k=None):
    ranks = [rank for rank, id in enumerate(retrieved[:k], 1) if id in set(relevant)]
    return 1 / ranks[-1] if len(ranks) == 1 else 1 / (ranks[-1] + 1) if ranks else 0.0


# ---- Vectors: how it breaks ---------------------------------------------------------


@chapter.fault(
    "maxsim_zero_padding",
    "what a mask leaves out has similarity zero",
    operation="maxsim",
    story=(
        "Scores multiplied by the mask: right while similarities are positive, as in "
        "most tests."
    ),
    made_for="maxsim_padding",
    stays_green="maxsim_worked",
)
def _(q, d, *, q_mask=None, d_mask=None):
    similarity = q @ np.swapaxes(d, -1, -2)
    if d_mask is not None:
        similarity = similarity * np.asarray(d_mask)[..., None, :]
    best = similarity.max(axis=-1)
    return best.sum(axis=-1, where=True if q_mask is None else q_mask)


@chapter.fault(
    "maxsim_mean",
    "the mean over the query's vectors",
    operation="maxsim",
    story=(
        "Reported against a vector database: the ranking for one query is the same, "
        "scores and thresholds are not."
    ),
    made_for="maxsim_additive",
    stays_green="maxsim_padding",
)
def _(q, d, *, q_mask=None, d_mask=None):
    n = q.shape[-2] if q_mask is None else np.sum(q_mask, axis=-1)
    return maxsim(q, d, q_mask=q_mask, d_mask=d_mask) / n


@chapter.fault(
    "maxsim_other_side",
    "every document vector takes its best query vector",
    operation="maxsim",
    story="The maximum along the other axis; two vectors on each side hide the shape.",
    made_for="maxsim_by_pairs",
    stays_green="maxsim_refuses_empty",
)
def _(q, d, *, q_mask=None, d_mask=None):
    return maxsim(d, q, q_mask=d_mask, d_mask=q_mask)


@chapter.fault(
    "maxsim_both_sides",
    "both directions are added",
    operation="maxsim",
    story="Made symmetric for use as a distance, as between sets of points.",
    made_for="maxsim_asymmetric",
    stays_green="maxsim_refuses_empty",
)
def _(q, d, *, q_mask=None, d_mask=None):
    forth = maxsim(q, d, q_mask=q_mask, d_mask=d_mask)
    return forth + maxsim(d, q, q_mask=d_mask, d_mask=q_mask)


@chapter.fault(
    "maxsim_query_padding_counts",
    "padding of the query is summed too",
    operation="maxsim",
    story=(
        "ColBERT pads queries on purpose and lets the padding count; other models do "
        "not."
    ),
    made_for="maxsim_by_pairs",
    stays_green="maxsim_padding",
)
def _(q, d, *, q_mask=None, d_mask=None):
    return maxsim(q, d, d_mask=d_mask)


@chapter.fault(
    "maxsim_empty_is_zero",
    "a document without vectors scores 0",
    operation="maxsim",
    story="A default that beats every document whose similarities are negative.",
    made_for="maxsim_refuses_empty",
    stays_green="maxsim_worked",
    unguarded=True,
)
def _(q, d, *, q_mask=None, d_mask=None):
    return maxsim(q, d, q_mask=q_mask, d_mask=d_mask) if d.size else np.zeros(())


@chapter.fault(
    "graph_beam_ignored",
    "the beam is one, whatever was asked",
    operation="greedy_graph_search",
    story="The search width of the index left at its default: recall cannot be bought.",
    made_for="wide_beam_is_exhaustive",
    stays_green="nearest_by_sorting",
)
def _(points, edges, query, *, entry, beam=1):
    return greedy_graph_search(points, edges, query, entry=entry)


@chapter.fault(
    "graph_edges_one_way",
    "edges lead from their first end to their second only",
    operation="greedy_graph_search",
    story="An undirected graph stored once an edge: whole regions cannot be reached.",
    made_for="wide_beam_is_exhaustive",
    stays_green="greedy_stops_early",
)
def _(points, edges, query, *, entry, beam=1):
    reached, todo = {entry}, [entry]
    while todo:
        here = todo.pop()
        for a, b in edges:
            if a == here and b not in reached:
                reached.add(b)
                todo.append(b)
    inside = [edge for edge in edges if edge[0] in reached and edge[1] in reached]
    kept = {id: point for id, point in points.items() if id in reached}
    return greedy_graph_search(kept, inside, query, entry=entry, beam=beam)


@chapter.fault(
    "graph_search_looks_everywhere",
    "every point is looked at, edges or not",
    operation="greedy_graph_search",
    story="An exact search called approximate: its recall of 1 says nothing.",
    made_for="unreachable_stays_unfound",
    stays_green="wide_beam_is_exhaustive",
)
def _(points, edges, query, *, entry, beam=1):
    return nearest(points, query, k=beam)


@chapter.fault(
    "graph_squared_distances",
    "distances come back squared",
    operation="greedy_graph_search",
    story="The root is left out for speed; the order is the same, a threshold is not.",
    made_for="beam_keeps_its_width",
    stays_green="greedy_stops_early",
)
def _(points, edges, query, *, entry, beam=1):
    found = greedy_graph_search(points, edges, query, entry=entry, beam=beam)
    return [(id, distance**2) for id, distance in found]


@chapter.fault(
    "nearest_sums_coordinates",
    "distance is the sum of the coordinates' differences",
    operation="nearest",
    story="L1 where the index was built with L2; on a line both agree.",
    made_for="nearest_by_sorting",
    stays_green="greedy_stops_early",
)
def _(points, query, *, k=1):
    far = {
        id: float(np.abs(np.subtract(point, query)).sum())
        for id, point in points.items()
    }
    return sorted(far.items(), key=lambda found: found[1])[:k]
