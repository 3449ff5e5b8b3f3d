"""Worked examples of retrieval: term weights, fused lists, vectors, graphs."""

from __future__ import annotations

from typing import Any

from ..ops.gradients import contrastive_gradient
from ..ops.losses import contrastive_loss
from ..ops.optim import sgd_step
from ..ops.retrieval import (
    bm25_term,
    greedy_graph_search,
    maxsim,
    nearest,
    precision_recall,
    recall,
    reciprocal_rank,
    rrf,
)
from ..ops.softmax import softmax
from ._plain import whole
from ._registry import example

CHAPTER = "retrieval"

DOCS = {
    "docs": (
        ("exclude", "path"),
        ("exclude", "exclude", "path", "cache"),
        ("log", "output"),
    ),
    "term": "exclude",
    "k1": 1.2,
    "b": 0.75,
}
LISTS = {"lists": (("A", "B", "C"), ("B", "C", "D")), "c": 60}


@example(
    "F28",
    "Three documents and one term: what an index keeps, and what a match is worth",
    chapter=CHAPTER,
    givens=DOCS,
    units="terms; scores in nats",
    title_zh="给三份短文档建索引，再为一个词打分",
)
def one_term(docs: Any, term: str, k1: float, b: float) -> dict[str, Any]:
    """Counts, lengths and the BM25 score of each document."""
    found = bm25_term(docs, term, k1=k1, b=b)
    rows = [
        {
            "doc": chr(ord("A") + i),
            "length": found.length[i],
            "frequency": found.frequency[i],
            "denominator": found.denominator[i],
            "tf_factor": found.tf_factor[i],
            "score": found.score[i],
        }
        for i in range(found.n)
    ]
    return {
        "N": found.n,
        "df": found.df,
        "avgdl": found.avgdl,
        "idf": found.idf,
        "rows": rows,
    }


example(
    "Q058",
    "Two matches in a longer document: why BM25 does more than count",
    chapter=CHAPTER,
    givens=DOCS,
    units="terms; scores in nats",
    title_zh="同一个词出现两次，BM25的得分并不翻倍",
    same_as="F28",
)(one_term)


@example(
    "F29",
    "Two rankings become one, by the reciprocals of their ranks",
    chapter=CHAPTER,
    givens=LISTS,
    units="1 / rank",
    title_zh="两份榜单按名次倒数合成一份",
)
def fused(lists: Any, c: float) -> list[list[Any]]:
    """The fused list, best first."""
    return [[id, score] for id, score in rrf(lists, c=c)]


example(
    "Q061",
    "The same fusion, place by place",
    chapter=CHAPTER,
    givens=LISTS,
    units="1 / rank",
    title_zh="逐个名次核对倒数排名融合",
    same_as="F29",
)(fused)


@example(
    "Q059",
    "One positive, one negative: the contrastive loss and what it asks of the scores",
    chapter=CHAPTER,
    givens={"scores": (0.8, 0), "tau": 1.0},
    units="loss in nats",
)
def contrast(scores: Any, tau: float) -> dict[str, Any]:
    """Softmax of two similarities, the loss of the first, its gradient."""
    row = [list(scores)]
    return {
        "scores": list(scores),
        "probabilities": softmax(list(scores)).tolist(),
        "loss": float(contrastive_loss(row, tau=tau)),
        "score_gradient": contrastive_gradient(row, tau=tau)[0].tolist(),
    }


@example(
    "Q062",
    "Late interaction: each word of the query takes its best match",
    chapter=CHAPTER,
    givens={
        "query": ((1, 0), (0, 1)),
        "document": ((0.8, 0.6), (0, 1)),
        "pooled": (1, 1),
    },
    units="cosine similarity",
)
def late_interaction(query: Any, document: Any, pooled: Any) -> dict[str, Any]:
    """A document of two vectors against one whose single vector lies between."""
    length = float(maxsim([pooled], [pooled])) ** 0.5
    unit = [[x / length for x in pooled]]
    return {
        "query": [list(q) for q in query],
        "document": [list(d) for d in document],
        "max_per_query": [whole(maxsim([q], document)) for q in query],
        "MaxSim_A": float(maxsim(query, document)),
        "MaxSim_B": float(maxsim(query, unit)),
    }


@example(
    "R08-16",
    "Equal recall, another first hit: what reciprocal rank sees",
    chapter=CHAPTER,
    givens={
        "rankings": {"X": ("a", "p", "q"), "Y": ("p", "a", "q")},
        "relevant": ("a",),
        "k": 3,
    },
    units="shares",
)
def first_hit(rankings: Any, relevant: Any, k: int) -> dict[str, Any]:
    """Recall among the first k, and the reciprocal rank, of each ranking."""
    recalls = {
        f"recall_at{k}_{name}": whole(recall(ranking, relevant, k=k))
        for name, ranking in rankings.items()
    }
    ranks = {
        f"reciprocal_rank_{name}": whole(reciprocal_rank(ranking, relevant))
        for name, ranking in rankings.items()
    }
    return recalls | ranks


@example(
    "S16",
    "A wider net: recall rises, precision falls",
    chapter=CHAPTER,
    givens={
        "relevant": 10,
        "old": {"right": 8, "wrong": 2},
        "new": {"right": 10, "wrong": 30},
    },
    units="shares",
)
def wider_net(relevant: int, old: Any, new: Any) -> dict[str, float]:
    """Precision and recall of two routers on the same ten relevant cases."""
    wanted = [f"relevant {i}" for i in range(relevant)]

    def measured(router: Any) -> Any:
        others = [f"other {i}" for i in range(router["wrong"])]
        return precision_recall(wanted[: router["right"]] + others, wanted)

    before, after = measured(old), measured(new)
    return {
        "old_recall": before.recall,
        "new_recall": after.recall,
        "old_precision": before.precision,
        "new_precision": after.precision,
    }


@example(
    "X08",
    "One step for a query vector: what it raises is a product, not a nearness",
    chapter=CHAPTER,
    givens={"q": (1.0, 0.0), "a": (0.8, 0.6), "b": (0.0, 1.0), "lr": 0.1, "tau": 1.0},
    units="none; loss in nats",
    title_zh="对比损失的一步：升高的是点积，不是距离",
)
def query_step(q: Any, a: Any, b: Any, lr: float, tau: float) -> dict[str, Any]:
    """The gradient of the contrastive loss at the query, and one step against it."""
    similarity = [[float(maxsim([q], [document])) for document in (a, b)]]
    [by_score] = contrastive_gradient(similarity, tau=tau)
    gradient = [float(by_score @ column) for column in zip(a, b, strict=True)]
    return {
        "q": list(q),
        "a": list(a),
        "b": list(b),
        "p": softmax(similarity[0]).tolist(),
        "q_gradient": gradient,
        "q_after_lr01": sgd_step(list(q), gradient, lr=lr).tolist(),
    }


@example(
    "X09",
    "A greedy walk over a graph stops short of the nearest point",
    chapter=CHAPTER,
    givens={
        "q": 0,
        "positions": {"A": 4, "B": 5, "C": 1},
        "undirected_edges": (("A", "B"), ("B", "C")),
        "entry": "A",
    },
    units="distance on a line",
    title_zh="贪心走图停在局部，最近的点没有被看到",
)
def greedy_stop(
    q: float, positions: Any, undirected_edges: Any, entry: str
) -> dict[str, Any]:
    """Where a beam of one stops, and what a beam of two finds behind the worse B."""
    points = {name: [x] for name, x in positions.items()}

    def walk(beam: int) -> str:
        found = greedy_graph_search(
            points, undirected_edges, [q], entry=entry, beam=beam
        )
        return found[0][0]

    [(best, _)] = nearest(points, [q])
    wider = walk(2)
    if wider != best:
        raise ValueError(f"a beam of two was to find {best}, found {wider}")
    return {
        "q": q,
        "positions": dict(positions),
        "undirected_edges": [list(edge) for edge in undirected_edges],
        "greedy_stop": walk(1),
        "best_after_explore_B": wider,
    }


# The source's tests by program and name, each with the checks that stand for it.
NAMED_CHECKS: dict[tuple[str, str], tuple[str, ...]] = {
    ("engine", "test_bm25_ranking"): ("bm25_two_matches_ahead",),
    ("engine", "test_precision_recall"): ("precision_recall_worked",),
    ("engine", "test_rrf"): ("rrf_order", "rrf_worked"),
    ("engine", "test_rrf_duplicate"): ("rrf_duplicate",),
    ("additional_checks", "test_bm25_exact_visible_numbers"): ("bm25_worked",),
    ("additional_checks", "test_maxsim_sum"): ("maxsim_worked", "maxsim_by_pairs"),
    ("additional_checks", "test_routing_precision_recall_tradeoff"): ("wider_net",),
    ("chain_and_operators", "test_greedy_graph_can_stop_local"): (
        "greedy_stops_early",
        "beam_escapes_at_three",
    ),
}
