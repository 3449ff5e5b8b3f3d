"""The dial over computed frames, tried as a reader tries it, without a script too."""

from pathlib import Path

import numpy as np
import pytest
from labcore import present
from labcore.figures import laplacian as figures

from tests.browser.looks import SITE

STYLE = SITE / "_static" / "lab.css"
DIAL = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)
SIZES = [{"width": width, "height": 800} for width in (320, 375, 1280)]


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    caught = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(present, "display", lambda html: caught.append(html.data))
        keys = np.array([[1.0, 0.0], [2.0, 1.0], [0.0, -4.0]])
        frames = figures.sigma_frames(("a", "b", "c"), np.zeros(2), keys, DIAL)
        present.scrubber("sigma", frames, caption="Weights.", start=2)
    path = tmp_path_factory.mktemp("page") / "dial.html"
    path.write_text(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<title>A page</title><meta name="viewport" content="width=device-width">'
        f'<link rel="stylesheet" href="{STYLE.as_uri()}"></head><body>'
        f'<article class="bd-article">{caught[0]}</article></body></html>',
        encoding="utf-8",
    )
    return path


def shown(page) -> list[int]:
    frames = page.locator(".frame").all()
    return [i for i, frame in enumerate(frames) if frame.is_visible()]


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_arrow_keys_and_clicks_move_it(file, open_page, script, size):
    page = open_page(file, java_script_enabled=script, viewport=size)
    assert shown(page) == [2]
    page.locator("input:checked").focus()
    for key, frame in (("Right", 3), ("Down", 4), ("Left", 3), ("Up", 2)):
        page.keyboard.press(f"Arrow{key}")
        assert shown(page) == [frame]
        words = page.locator(".frame").nth(frame).locator(".read").inner_text()
        assert f"{DIAL[frame]:g}" in words
    page.locator("input").nth(7).click()
    assert shown(page) == [7]
    page.locator(".ticks label").first.click()
    assert shown(page) == [0]


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size["width"]))
def test_the_track_is_one_line_and_large_enough_to_touch(file, open_page, size):
    page = open_page(file, viewport=size)
    boxes = [button.bounding_box() for button in page.locator("input").all()]
    assert len({round(box["y"]) for box in boxes}) == 1
    assert min(box["width"] for box in boxes) >= 24
    assert min(box["height"] for box in boxes) >= 24
    ticks = [tick.bounding_box() for tick in page.locator(".ticks label").all()]
    for box, tick in zip(boxes, ticks, strict=True):
        centres = box["x"] + box["width"] / 2, tick["x"] + tick["width"] / 2
        assert abs(centres[0] - centres[1]) < 2
    width = "document.documentElement.scrollWidth"
    assert page.evaluate(width) <= size["width"]


def test_on_paper_every_frame_shows_and_no_button(file, open_page):
    page = open_page(file)
    page.emulate_media(media="print")
    assert shown(page) == list(range(len(DIAL)))
    assert not page.locator("input").first.is_visible()


def test_in_forced_colours_there_are_plain_buttons(file, open_page):
    page = open_page(file, forced_colors="active")
    style = "e => getComputedStyle(e).appearance"
    assert page.locator("input").first.evaluate(style) == "auto"
    assert shown(page) == [2]
