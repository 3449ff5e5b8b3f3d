"""The built pages carry the quiz: its questions, its script once, and its table."""

import json
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from labcore import quiz
from labcore.identities import CHAPTERS

SITE = Path(__file__).parents[2] / "_build" / "html" / "book"
PAGES = {slug: next(SITE.rglob(f"{slug}.html"), None) for slug in CHAPTERS}
BUILT = {slug: page for slug, page in PAGES.items() if page is not None}


def test_chapters_are_built():
    assert len(BUILT) >= 7


@pytest.mark.parametrize("slug", BUILT)
def test_a_chapter_asks_about_its_faults(slug):
    page = BeautifulSoup(BUILT[slug].read_text(encoding="utf-8"), "html.parser")
    [place] = page.select(".quiz-place")
    asked = json.loads(place.find("script", type="application/json").string)
    assert asked == quiz.questions(slug)
    [table] = page.select("details.quiz-table table.faults")
    assert len(table.select("tbody tr")) >= len(asked["faults"]) > 0
    scripts = [tag.get("src", "") for tag in page.find_all("script")]
    assert sum("/quiz.js" in source for source in scripts) == 1


def test_the_opening_page_asks_about_some_faults_of_one_chapter():
    page = BeautifulSoup((SITE / "index.html").read_text("utf-8"), "html.parser")
    [place] = page.select(".quiz-place")
    asked = json.loads(place.find("script", type="application/json").string)
    every = quiz.questions(asked["chapter"])["faults"]
    some = [fault for fault in every if fault in asked["faults"]]
    assert 0 < len(some) == len(asked["faults"]) < len(every)


def test_a_fault_that_is_not_asked_is_refused():
    with pytest.raises(
        ValueError, match="rope does not ask about delta_additive_write"
    ):
        quiz.questions("rope", "delta_additive_write")
