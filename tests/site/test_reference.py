"""The glossary, the page for teachers, the limits and the errata name what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import labcore
import pytest
import strict
from labcore import lab
from labcore.contents import OTHERS, chapters, page
from labcore.exercises import EXERCISES
from labcore.identities import CHECKS, FAULTS, recorded

from tests.site.small_book import ROOT

REFERENCE = ROOT / "book" / "reference"
LINK = re.compile(r"\[([^\]]+)\]\(([\w./-]+)\)")


def read(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text(encoding="utf-8")


def target(link: str) -> str:
    """The page that a link of a reference page leads to, as _toc.yml names it."""
    return (REFERENCE / link).resolve().relative_to(ROOT).as_posix()


def cells(name: str) -> list[dict]:
    """The cells of a page; a page in Markdown is one."""
    path = ROOT / f"{name}.ipynb"
    if not path.is_file():
        text = path.with_suffix(".md").read_text(encoding="utf-8")
        return [{"cell_type": "markdown", "source": text, "id": "page"}]
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def source(name: str) -> str:
    return "\n\n".join("".join(cell["source"]) for cell in cells(name))


# --- glossary --------------------------------------------------------------------

ENTRIES = [
    (terms.strip().splitlines(), *told)
    for terms, *told in re.findall(
        r"((?:^[^\s:#].*\n)+)^  (.*) \[(.*)\]\((.*)\)$",
        read("glossary").partition(":::{glossary}\n")[2],
        flags=re.MULTILINE,
    )
]


def test_the_glossary_is_read_whole():
    lines = read("glossary").partition(":::{glossary}\n")[2].splitlines()
    assert len(ENTRIES) == sum(line.startswith("  ") for line in lines) >= 50
    terms = [terms[0].casefold() for terms, *_ in ENTRIES]
    assert terms == sorted(terms)


def test_each_chapter_gives_the_glossary_a_term():
    assert every_chapter() <= linked_from("glossary")


@pytest.mark.parametrize(
    ("terms", "sentence", "title", "link"), ENTRIES, ids=[e[0][0] for e in ENTRIES]
)
def test_a_term_has_one_sentence_and_the_page_that_uses_it(
    terms: list[str], sentence: str, title: str, link: str
):
    assert re.fullmatch(r"[A-Z$].*[^.]\.", sentence)
    assert not re.search(r"[.!?] [A-Z]", sentence), "one sentence"
    text = source(target(link))
    assert re.search(rf"(?m)^# {re.escape(title)}$", text)
    words = set(re.findall(r"[a-z]\w+", text.casefold().replace("_", " ")))
    stems = [w[:4] for term in terms for w in re.findall(r"\w{2,}", term.casefold())]
    assert any(word.startswith(tuple(stems)) for word in words)


# --- plans for teachers ----------------------------------------------------------

PLANS = {
    heading: [
        [part.strip() for part in line.strip("|").split("|")]
        for line in body.splitlines()
        if re.match(r"\|.*\d\smin \|", line)
    ]
    for heading, body in re.findall(
        r"^## (Two hours|One week)$(.*?)(?=^## )", read("teachers"), flags=re.M | re.S
    )
}


def minutes(row: list[str]) -> int:
    [found] = [int(m[1]) for part in row if (m := re.fullmatch(r"(\d+)\smin", part))]
    return found


def test_a_plan_lasts_as_long_as_it_says():
    assert sum(map(minutes, PLANS["Two hours"])) == 120
    days: dict[str, int] = {}
    for row in PLANS["One week"]:
        days[row[0]] = days.get(row[0], 0) + minutes(row)
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
    assert days == dict.fromkeys(names, 180)


@pytest.mark.parametrize("row", [r for plan in PLANS.values() for r in plan], ids=str)
def test_a_plan_gives_a_chapter_its_time_its_fault_and_its_exercises(row: list[str]):
    named = re.findall(r"`([\w/]+)`", " ".join(row))
    for name in named:
        assert name in FAULTS or name in EXERCISES
    linked = [target(link) for _, link in LINK.findall(" ".join(row))]
    for name in linked:
        text = source(name)
        if planned := re.search(r"minutes=(\d+)", text):
            assert minutes(row) >= int(planned[1])
            [predict] = [c for c in cells(name) if c["id"] == "predict-run"]
            faults = [n for n in named if n in FAULTS]
            assert faults and all(f in "".join(predict["source"]) for f in faults)
            assert all(f'"{n}"' in text for n in named if n in EXERCISES)


def test_the_operations_of_the_assignment_have_faults():
    [words] = re.findall(r"These carry an assignment well\.(.*)", read("teachers"))
    operations = re.findall(r"`(\w+)`", words)
    assert len(operations) > 5
    for name in operations:
        assert name in labcore.__all__
        assert sum(fault.operation == name for fault in FAULTS.values()) > 2


def defined_by(name: str) -> dict:
    """What the block of the page defines that defines this function."""
    blocks = re.findall(r"```python\n(.*?)```", read("teachers"), flags=re.S)
    [code] = [block for block in blocks if f"def {name}(" in block]
    names: dict = {}
    exec(code, names)
    return names


def test_a_row_of_the_matrix_as_shown_is_the_recorded_one():
    fault = FAULTS["rope_other_layout"]
    recorded_row = recorded()["faults"][fault.id]
    row = defined_by("row")["row"](fault.id)
    here = [id for id, check in CHECKS.items() if check.chapter == fault.chapter]
    assert [id for id in row if row[id]] == [
        i for i in here if i in recorded_row["red"]
    ]
    assert {id for id in row if not row[id]} == {*here} & {*recorded_row["green"]}


def test_grading_as_shown_runs():
    names = defined_by("graded")
    fault = next(f for f in FAULTS.values() if f.operation == "rrf")
    marks = names["graded"](fault.id, [fault.made_for, fault.stays_green])
    assert marks["named rightly"] == marks["named wrongly"] == 1
    assert marks["noticed by"] >= marks["not named"] + 1
    assert names["graded"](lab.mine(labcore.rrf), []) is None


# --- limits and errata -----------------------------------------------------------


def every_chapter() -> set[str]:
    slugs = [*OTHERS, *(chapter.slug for chapter in chapters())]
    return {f"book/{page(slug)}" for slug in slugs}


def linked_from(name: str) -> set[str]:
    return {target(link) for _, link in LINK.findall(read(name))}


def test_the_limits_lead_to_every_chapter():
    assert every_chapter() <= linked_from("limits")


CORRECTIONS = re.findall(r"\]\(([\w./-]+)\), \"(.+)\" \|$", read("errata"), flags=re.M)


@pytest.mark.parametrize(("link", "heading"), CORRECTIONS)
def test_a_correction_names_a_section_that_is_there(link: str, heading: str):
    assert re.search(rf"(?m)^## {re.escape(heading)}(:|$)", source(target(link)))


@pytest.mark.parametrize("name", ["glossary", "teachers", "limits", "errata"])
def test_links_lead_to_pages_of_the_book(name: str):
    pages = strict.listed(Path(ROOT))
    for _, link in LINK.findall(read(name)):
        assert target(link) in pages, link


def test_each_work_of_the_bibliography_is_cited():
    works = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    keys = set(re.findall(r"^@\w+\{([^,]+),", works, flags=re.M))
    texts = [source(name) for name in strict.listed(Path(ROOT))]
    cited = re.findall(r"\{cite(?::\w+)?\}`([^`]+)`", "\n".join(texts))
    assert {key.strip() for keys in cited for key in keys.split(",")} == keys


# --- libraries -------------------------------------------------------------------

FIXED = re.compile(
    r"/blob/([0-9a-f]{40}|v\d+\.\d+\.\d+)/"  # a commit or a tag
    r"|/docs?/\d+\.\d+/"  # the pages of a version
    r"|/issues/\d+$|/neps/nep-\d+"
)


def test_each_source_on_libraries_is_one_that_does_not_move():
    links = re.findall(r"\]\((https?://[^)]+)\)", read("libraries"))
    assert len(links) > 15
    assert [link for link in links if not FIXED.search(link)] == []
