"""The quiz of the published page, tried as a reader tries it."""

from pathlib import Path

import pytest
from labcore import quiz
from labcore.identities import CHAPTERS, CHECKS, FAULTS, recorded

from tests.browser.looks import SITE

STATIC = SITE / "_static"
ASKED = [slug for slug in CHAPTERS if quiz.faults(slug)]
CHAPTER = "writes-and-decay"
FAULT = quiz.faults(CHAPTER)[0].id
NARROW = {"width": 375, "height": 800}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """One page a chapter and a page with the map, as small as they can be."""
    folder = tmp_path_factory.mktemp("site")
    pages = {slug: f"{slug}.html" for slug in ASKED}
    write(folder / "index.html", quiz.map_html(pages))
    for slug, name in pages.items():
        write(folder / name, quiz.quiz_html(slug))
    return folder


def write(path: Path, body: str) -> None:
    """The script stands in the head, as in the book."""
    path.write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>A page</title>'
        f'<link rel="stylesheet" href="{(STATIC / "lab.css").as_uri()}">'
        f'<script src="{(STATIC / "quiz.js").as_uri()}"></script></head>'
        f'<body><article class="bd-article"><section>{body}</section></article></body>',
        encoding="utf-8",
    )


def verdicts(page) -> dict[str, str]:
    """check -> holds or broken, as the rows say."""
    return {
        row.locator("input").get_attribute("value"): row.locator(
            "output span"
        ).first.inner_text()
        for row in page.locator(".picks li").all()
    }


@pytest.mark.parametrize("slug", ASKED)
def test_what_it_says_is_what_was_recorded(site, open_page, slug):
    page = open_page(site / f"{slug}.html")
    asked = page.locator("input[type=radio]").all()
    assert [box.get_attribute("value") for box in asked] == [
        fault.id for fault in quiz.faults(slug)
    ]
    for box in asked:
        box.check()
        page.get_by_role("button", name="Run the fault").click()
        fault = box.get_attribute("value")
        red = recorded()["faults"][fault]["red"]
        found = verdicts(page)
        assert found == {id: "broken" if id in red else "holds" for id in found}
        assert len(found) <= 8 and set(found.values()) == {"broken", "holds"}
        assert {CHECKS[id].chapter for id in found} == {slug}
        why = page.locator(".why").inner_text()
        assert FAULTS[fault].story in why
        assert CHECKS[FAULTS[fault].stays_green].claim in why


def test_every_chapter_is_asked_about_several_operations():
    for slug in ASKED:
        operations = {
            fault.operation
            for fault in FAULTS.values()
            if fault.chapter == slug
            and any(
                CHECKS[id].chapter == slug
                for id in recorded()["faults"].get(fault.id, {"red": ()})["red"]
            )
        }
        asked = quiz.faults(slug)
        assert len({fault.operation for fault in asked}) == min(8, len(operations))
        assert len(asked) <= 8


def test_a_prediction_is_scored(site, open_page):
    page = open_page(site / f"{CHAPTER}.html")
    shown = quiz.checks(FAULTS[FAULT])
    red = [id for id in shown if id in recorded()["faults"][FAULT]["red"]]
    green = [id for id in shown if id not in red]
    page.locator(f"input[value={red[0]}]").check()
    page.locator(f"input[value={green[0]}]").check()
    page.get_by_role("button", name="Run the fault").click()
    words = {
        row.locator("input").get_attribute("value"): row.locator(
            "output span"
        ).last.inner_text()
        for row in page.locator(".picks li").all()
    }
    assert words[red[0]] == "caught"
    assert words[green[0]] == "false alarm"
    assert {words[id] for id in red[1:]} == {"missed"}
    assert {words[id] for id in green[1:]} == {""}
    score = page.locator("output.score").inner_text()
    assert score.startswith(f"1 caught, {len(red) - 1} missed, 1 false alarm.")
    assert "exactly right" not in score


def predict_exactly(page, fault: str) -> None:
    page.locator(f"input[type=radio][value={fault}]").check()
    for id in quiz.checks(FAULTS[fault]):
        if id in recorded()["faults"][fault]["red"]:
            page.locator(f"input[type=checkbox][value={id}]").check()
    page.get_by_role("button", name="Run the fault").click()


def test_the_map_shows_what_was_predicted_right(site, open_page):
    page = open_page(site / f"{CHAPTER}.html")
    predict_exactly(page, FAULT)
    assert "exactly right" in page.locator("output.score").inner_text()
    other = quiz.faults(CHAPTER)[1].id
    page.locator(f"input[type=radio][value={other}]").check()
    page.get_by_role("button", name="Run the fault").click()
    page.goto((site / "index.html").as_uri())
    row = page.locator(".quiz-map li").nth(ASKED.index(CHAPTER))
    asked = len(quiz.faults(CHAPTER))
    assert f"1 of {asked} predicted right" in row.inner_text()
    states = [dot.get_attribute("class") for dot in row.locator("i").all()]
    assert states == ["right", "tried"] + ["open"] * (asked - 2)
    row.get_by_role("link").click()
    assert page.url.endswith(f"{CHAPTER}.html")


def test_it_works_by_keyboard_alone(site, open_page):
    page = open_page(site / f"{CHAPTER}.html")
    second = quiz.faults(CHAPTER)[1]
    page.keyboard.press("Tab")  # the group of faults
    page.keyboard.press("ArrowDown")
    assert page.locator("input[type=radio]:checked").get_attribute("value") == second.id
    for _ in quiz.checks(second):
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    red = len(set(quiz.checks(second)) & set(recorded()["faults"][second.id]["red"]))
    assert (
        page.locator("output.score").inner_text().startswith(f"{red} caught, 0 missed")
    )
    assert page.evaluate("document.activeElement.textContent") == "Run the fault"


def test_it_is_named_for_readers_who_hear_it(site, open_page):
    page = open_page(site / f"{CHAPTER}.html")
    faults = page.get_by_role("group", name="Pick a fault")
    assert faults.get_by_role("radio").count() == len(quiz.faults(CHAPTER))
    checks = page.get_by_role("group", name="Tick the checks you expect to fail")
    claim = CHECKS[quiz.checks(FAULTS[FAULT])[0]].claim
    assert checks.get_by_role("checkbox", name=claim).count() == 1
    # role=status: what it says is read out when it changes
    assert page.get_by_role("status").count() >= 1
    quiet = page.locator(".picks output").first.get_attribute("aria-live")
    assert quiet == "off"  # else eight rows would be read out at once


def test_choosing_another_fault_starts_anew(site, open_page):
    page = open_page(site / f"{CHAPTER}.html")
    predict_exactly(page, FAULT)
    page.locator("input[type=radio]").nth(1).check()
    assert page.locator(".picks :checked").count() == 0
    assert page.locator("output.score").inner_text() == ""
    assert page.locator(".why").inner_text() == ""


def test_without_storage_it_still_answers(site, open_page):
    page = open_page(site / "index.html")
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', "
        "{get() { throw new Error('forbidden'); }})"
    )
    page.goto((site / f"{CHAPTER}.html").as_uri())
    predict_exactly(page, FAULT)
    assert "exactly right" in page.locator("output.score").inner_text()
    page.goto((site / "index.html").as_uri())
    assert "0 of" in page.locator(".quiz-map li").first.inner_text()


def test_without_javascript_the_table_stands_there(site, open_page):
    page = open_page(site / f"{CHAPTER}.html", java_script_enabled=False)
    assert page.locator("form").count() == 0
    page.locator("summary").click()
    rows = page.locator("table.faults tbody tr")
    assert rows.count() == sum(f.chapter == CHAPTER for f in FAULTS.values())
    assert rows.first.is_visible()
    page.goto((site / "index.html").as_uri())
    told = page.locator(".quiz-map").inner_text()
    assert "JavaScript" in told and CHAPTERS[CHAPTER].title in told


@pytest.mark.parametrize("slug", [*ASKED, "index"])
def test_nothing_runs_over_the_edge_of_a_phone(site, open_page, slug):
    page = open_page(site / f"{slug}.html", viewport=NARROW)
    for button in page.get_by_role("button", name="Run the fault").all():
        button.click()
    wide, screen = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= screen
