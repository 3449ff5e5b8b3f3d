"""The index pages of the book: formulas, checks and worked examples, as HTML.

All three come from the registries, so that nothing can be left out; addresses are
relative to a page one folder below the root of the site.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any

from . import contents
from .examples import EXAMPLES, NAMED_CHECKS
from .formulas import FORMULAS, UNCHECKED
from .identities import CHECKS, recorded
from .report import fault_of

RECORDED = files("labcore") / "recorded"


def formulas() -> str:
    """Every displayed formula: what it computes, which checks hold it, where it is."""
    seen: set[str] = set()
    rows = [
        _row(
            f"formula-{f.id}",
            _tex(f.tex),
            ("function", _list(f.operations, lambda name: _function(name, seen))),
            ("rule of", _list(f.tools, lambda name: f"<code>labcore.{name}</code>")),
            ("checks", _list(f.checks, _check)),
            ("chapter", _chapter(f.chapter, f"formula-{f.id}")),
        )
        for f in _by_chapter(FORMULAS.values())
    ]
    return _table("formula", rows)


def unchecked() -> str:
    """The displayed formulas that no expression computes, with the reason."""
    rows = [
        _row(
            f"formula-{f.id}",
            _tex(f.tex),
            ("why", html.escape(f.why)),
            ("chapter", _chapter(f.chapter, f"formula-{f.id}")),
        )
        for f in _by_chapter(UNCHECKED.values())
    ]
    return _table("formula", rows)


def checks(chapter: str) -> str:
    """Every check of a chapter: the formulas it holds, a fault that breaks it."""
    rows = []
    for check in CHECKS.values():
        if check.chapter != chapter:
            continue
        told = [f.id for f in FORMULAS.values() if check.id in f.checks]
        breaking = [
            id for id, row in recorded()["faults"].items() if check.id in row["red"]
        ]
        rest = len(breaking) - 1
        more = f" and <data>{rest}</data> more" if rest else ""
        rows.append(
            _row(
                f"check-{check.id}",
                f"{html.escape(check.claim)}<code>{check.id}</code>",
                ("formula", _list(told, _formula)),
                ("broken by", f"<code>{fault_of(check.id)}</code>{more}"),
            )
        )
    return _table("check", rows)


def examples() -> str:
    """Every worked example with its chapter, and the one whose result it repeats."""
    rows = []
    for e in sorted(EXAMPLES.values(), key=lambda e: e.id):
        title = f"<code>{e.id}</code> {html.escape(e.title)}"
        if e.title_zh:
            title += f' <span lang="zh">{html.escape(e.title_zh)}</span>'
        rows.append(
            _row(
                f"example-{e.id}",
                title,
                ("chapter", _chapter(e.chapter, f"example-{e.id}")),
                ("same result as", f"<code>{e.same_as}</code>" if e.same_as else ""),
            )
        )
    return _table("example", rows)


def named(suite: str) -> str:
    """The named checks that the examples came with: where each stands now."""
    rows = []
    for (program, test), ids in NAMED_CHECKS.items():
        if program == suite:
            faults = list(dict.fromkeys(fault_of(id) for id in ids))
            home = CHECKS[ids[0]].chapter
            rows.append(
                _row(
                    test,
                    f"<code>{test}</code>",
                    ("check", _list(ids, _check)),
                    ("broken by", _list(faults, lambda id: f"<code>{id}</code>")),
                    ("chapter", _chapter(home)),
                )
            )
    return _table("name", rows)


def environment() -> str:
    """Where the recorded run was made."""
    run = recorded_run()
    when = datetime.fromtimestamp(run["commit_time"], UTC)
    told = {"date of the commit": f"{when:%Y-%m-%d}", **run["environment"]}
    rows = "".join(
        f"<tr><th>{name.replace('_', ' ')}</th><td>{_said(value)}</td></tr>"
        for name, value in told.items()
    )
    return f'<table class="record"><tbody>{rows}</tbody></table>'


def documents() -> str:
    """The recorded documents, each with its hash; they open."""
    parts = []
    for name, about in recorded_run()["documents"].items():
        text = (RECORDED / f"{name}.json").read_text(encoding="utf-8")
        parts.append(
            f'<details class="example"><summary><code>{name}.py</code> '
            f"<data>{about['bytes']}</data> bytes, "
            f"sha256 <code>{about['sha256']}</code>"
            f"</summary><pre>{html.escape(text)}</pre></details>"
        )
    return "".join(parts)


def verdicts(suite: str) -> str:
    """Every name of a suite, with the verdict of the recorded run."""
    run = recorded_run()
    told = [
        (r["name"], r["verdict"]) for r in run["named_checks"] if r["suite"] == suite
    ]
    told = told or list(run["identities"].items())
    rows = "".join(
        f'<tr><td><code>{name}</code></td><td><span class="holds">{verdict}</span></td>'
        "</tr>"
        for name, verdict in told
    )
    passed = sum(verdict == "passed" for _, verdict in told)
    return (
        f'<p class="say"><data>{passed}</data> of <data>{len(told)}</data> passed.</p>'
        f'<table class="record"><tbody>{rows}</tbody></table>'
    )


@cache
def recorded_run() -> dict[str, Any]:
    """The run that was recorded last."""
    run: dict[str, Any] = json.loads((RECORDED / "run.json").read_text("utf-8"))
    return run


def _said(value: Any) -> str:
    text = ", ".join(value) if isinstance(value, list) else str(value)
    return f"<data>{html.escape(text)}</data>"


def _by_chapter(formulas: Any) -> list[Any]:
    """In the order of the book."""
    order = [chapter.slug for chapter in contents.chapters()]
    places = {slug: place for place, slug in enumerate(order)}
    return sorted(formulas, key=lambda f: places.get(f.chapter, len(places)))


def _table(column: str, rows: Sequence[str]) -> str:
    return (
        '<table class="index" role="table"><thead role="rowgroup"><tr role="row">'
        f'<th role="columnheader">{column}</th>'
        '<th role="columnheader">where and what</th></tr></thead>'
        f'<tbody role="rowgroup">{"".join(rows)}</tbody></table>'
    )


def _row(id: str, first: str, *about: tuple[str, str]) -> str:
    told = "".join(
        f"<div><dt>{label}</dt><dd>{text}</dd></div>" for label, text in about if text
    )
    return (
        f'<tr role="row" id="{id}"><td role="cell">{first}</td>'
        f'<td role="cell"><dl>{told}</dl></td></tr>'
    )


def _list(names: Sequence[str], written: Callable[[str], str]) -> str:
    return ", ".join(written(name) for name in names)


def _tex(tex: str) -> str:
    return (
        '<span class="math notranslate nohighlight">'
        rf"\({html.escape(tex)}\)</span>"
    )


def _function(name: str, seen: set[str]) -> str:
    """The function; the place where it is named first can be linked to."""
    anchor = "" if name in seen else f' id="function-{name}"'
    seen.add(name)
    return f"<code{anchor}>labcore.{name}</code>"


def _check(id: str) -> str:
    return f'<a href="checks.html#check-{id}"><code>{id}</code></a>'


def _formula(id: str) -> str:
    return f'<a href="formulas.html#formula-{id}"><code>{id}</code></a>'


def _chapter(slug: str, anchor: str = "") -> str:
    title = html.escape(contents.title(slug))
    place = f"#{anchor}" if anchor else ""
    return f'<a href="../{contents.page(slug)}.html{place}">{title}</a>'
