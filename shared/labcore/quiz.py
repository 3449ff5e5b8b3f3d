"""The quiz of a published page, made from the fault matrix.

The page carries the questions and their answers as JSON; ``book/_static/quiz.js`` turns
them into a form. Without a script the table of faults below it says the same.
"""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any

from . import report
from .identities import CHAPTERS, CHECKS, FAULTS, Fault, recorded

MOST_FAULTS = 8  # of a chapter that are asked
MOST_CHECKS = 8  # that are shown for one fault
MOST_RED = 5  # of those; the others hold


def faults(chapter: str) -> list[Fault]:
    """The faults that are asked: of many operations one each, of few several."""
    by_operation: dict[str, list[Fault]] = {}
    for fault in FAULTS.values():
        if fault.chapter == chapter and _red(fault):
            by_operation.setdefault(fault.operation, []).append(fault)
    turns = max(map(len, by_operation.values()), default=0)
    dealt = [f[i] for i in range(turns) for f in by_operation.values() if i < len(f)]
    among = max(len(by_operation), MOST_FAULTS)  # spread over all operations
    places = {i * among // MOST_FAULTS for i in range(MOST_FAULTS)}
    asked = [fault for i, fault in enumerate(dealt) if i in places]
    return [fault for fault in FAULTS.values() if fault in asked]


def checks(fault: Fault) -> list[str]:
    """The checks that are shown for a fault, in the order of the chapter.

    First the one made for it and others that break, then the obvious one that stays
    green, others that the fault could have reached, and others of the chapter.
    """
    here = [id for id, check in CHECKS.items() if check.chapter == fault.chapter]
    red = _first(fault.made_for, _red(fault))[:MOST_RED]
    green = [id for id in recorded()["faults"][fault.id]["green"] if id in here]
    rest = [id for id in here if id not in _red(fault) and id not in green]
    near = sorted(rest, key=lambda id: CHECKS[id].kind == "refuses")
    held = _first(fault.stays_green, [*green, *near])[: MOST_CHECKS - len(red)]
    return [id for id in here if id in red or id in held]


def questions(chapter: str, *only: str) -> dict[str, Any]:
    """What the script is given: claims, faults, and what each breaks.

    only: ids of some of the chapter's faults; without them all are asked.
    """
    asked = faults(chapter)
    if unknown := set(only) - {fault.id for fault in asked}:
        raise ValueError(f"{chapter} does not ask about {', '.join(sorted(unknown))}")
    asked = [fault for fault in asked if not only or fault.id in only]
    shown = {fault.id: checks(fault) for fault in asked}
    named = {id for ids in shown.values() for id in ids}
    named |= {fault.stays_green for fault in asked}
    return {
        "chapter": chapter,
        "claims": {id: check.claim for id, check in CHECKS.items() if id in named},
        "faults": [
            {
                "id": fault.id,
                "title": fault.title,
                "operation": fault.operation,
                "story": fault.story,
                "green": fault.stays_green,
                "checks": shown[fault.id],
                "red": [id for id in shown[fault.id] if id in _red(fault)],
                "more": len(set(_red(fault)) - set(shown[fault.id])),
            }
            for fault in asked
        ],
    }


def quiz_html(chapter: str, *only: str) -> str:
    """The questions for the script, and the answers as a table behind a disclosure."""
    return (
        f'<div class="quiz-place">{_data(questions(chapter, *only))}</div>'
        '<details class="quiz-table"><summary>What each fault breaks, and an '
        "obvious check that stays green</summary>"
        f"{report.faults_html(chapter)}</details>"
    )


def map_html(pages: Mapping[str, str]) -> str:
    """Which faults have been predicted right; pages: chapter -> address of its page."""
    chapters: list[dict[str, Any]] = [
        {
            "chapter": slug,
            "title": CHAPTERS[slug].title,
            "page": page,
            "faults": [fault.id for fault in faults(slug)],
        }
        for slug, page in pages.items()
    ]
    rows = "".join(
        f'<li><a href="{html.escape(row["page"])}">{html.escape(row["title"])}</a>'
        f"<span>{len(row['faults'])} faults to predict</span></li>"
        for row in chapters
    )
    return (
        f'<div class="quiz-map">{_data(chapters)}<ul>{rows}</ul>'
        '<p class="quiet">With JavaScript switched on, each chapter asks you to '
        "predict what its faults break, and this list shows what you got right. "
        "It is kept in your browser and nowhere else.</p></div>"
    )


def _red(fault: Fault) -> list[str]:
    """The checks of its own chapter that a fault breaks."""
    row = recorded()["faults"].get(fault.id, {"red": ()})
    return [id for id in row["red"] if CHECKS[id].chapter == fault.chapter]


def _first(id: str, ids: list[str]) -> list[str]:
    return [id, *(other for other in ids if other != id)] if id in ids else ids


def _data(document: Any) -> str:
    text = json.dumps(document, separators=(",", ":")).replace("<", "\\u003c")
    return f'<script type="application/json">{text}</script>'
