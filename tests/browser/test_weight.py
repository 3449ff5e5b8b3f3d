"""What a page weighs on a first visit, when it paints, and whether it moves.

The weights of stock pages were recorded by `python book/weigh.py --record`, whose way
of measuring these tests share. They need the built site: `make book`.
"""

import importlib.util
import json
import random
import time
from pathlib import Path

import pytest

from tests.browser.looks import PHONE

ROOT = Path(__file__).parents[2]
SPEC = importlib.util.spec_from_file_location("weigh", ROOT / "book" / "weigh.py")
weigh = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(weigh)

RECORD = json.loads(weigh.RECORD.read_text(encoding="utf-8"))
AT_A_TIME = 2  # windows; a browser slows a processor down by keeping it busy
STILL = 0.3  # seconds after the load
LATEST_PAINT = 10_000  # ms; about 1000 where nothing else runs


def visits(browser, places: list[tuple[str, int]], slower: float) -> list[dict]:
    """Load (address, width) after (address, width), some side by side."""
    found = []
    for start in range(0, len(places), AT_A_TIME):
        places_now = places[start : start + AT_A_TIME]
        batch = [weigh.Visit(browser, *place, slower) for place in places_now]
        for visit in batch:
            visit.start()
        found += [visit.finish(STILL) for visit in batch]
    return found


@pytest.fixture(scope="module", autouse=True)
def site() -> Path:
    assert (weigh.SITE / "index.html").is_file(), "no site: run `make book`"
    return weigh.SITE


@pytest.fixture(scope="module")
def address(site):
    with weigh.serve(site) as address:
        yield address


def test_every_page_has_a_stock_page_beside_it():
    assert list(RECORD) == weigh.strict.listed(ROOT), "python book/weigh.py --record"


def loads(
    browser, base: str, page: str, slower: float, *widths: int
) -> dict[int, dict]:
    places = [(f"{base}/{page}.html", width) for width in widths]
    return dict(zip(widths, visits(browser, places, slower), strict=True))


@pytest.mark.parametrize("page", RECORD)
def test_a_page_is_light_and_stands_still(chromium, address, page):
    """At the speed of this machine; `make weigh` slows it down, at both widths."""
    ours = loads(chromium, address, page, 1, PHONE["width"])
    assert list(weigh.faults(page, ours, RECORD[page]["stock"])) == []
    assert [load["failed"] for load in ours.values()] == [[]]


# A page of each part, read with a slow processor, and without a server.
ONE_OF_EACH = list({page.split("/")[-2]: page for page in RECORD}.values())


@pytest.mark.parametrize("page", ONE_OF_EACH)
def test_it_paints_early_and_stands_still_on_a_slow_processor(chromium, address, page):
    ours = loads(chromium, address, page, weigh.SLOWER, *weigh.WIDTHS)
    assert list(weigh.faults(page, ours, RECORD[page]["stock"])) == []
    assert all(load["first_content"] < LATEST_PAINT for load in ours.values())


@pytest.mark.parametrize("page", ONE_OF_EACH)
def test_it_stands_still_from_the_disk(chromium, site, page):
    for load in loads(chromium, site.as_uri(), page, 1, *weigh.WIDTHS).values():
        assert load["shift"] < weigh.SHIFT


# --- and it would be noticed -----------------------------------------------------

PAGE = next(page for page in RECORD if "/part-" in page)


class Late(weigh.Compressing):
    """A server whose pictures come when the text is long there."""

    def send_head(self):
        if "late" in self.path:
            time.sleep(1.5)
        return super().send_head()


def noticed(browser, site: Path, stock: float = 1e9) -> list[str]:
    with weigh.serve(site, Late) as address:
        [load] = visits(browser, [(f"{address}/page.html", PHONE["width"])], 1)
    return list(weigh.faults("page", {375: load}, stock))


@pytest.mark.parametrize(
    "size, moves", [("", True), ('width="300" height="200"', False)]
)
def test_a_late_picture_needs_a_size(chromium, tmp_path, size, moves):
    picture = '<svg xmlns="http://www.w3.org/2000/svg" width="300" height="200"/>'
    (tmp_path / "late.svg").write_text(picture, encoding="utf-8")
    text = "<p>Some words that stand under the picture.</p>" * 9
    (tmp_path / "page.html").write_text(
        f'<!doctype html><meta name="viewport" content="width=device-width">'
        f'<h1>A page</h1><img src="late.svg" alt="" {size}>{text}',
        encoding="utf-8",
    )
    found = noticed(chromium, tmp_path)
    assert len(found) == moves and all("shifts" in fault for fault in found)


@pytest.mark.parametrize("extra", [False, True])
def test_a_heavy_script_is_noticed(chromium, tmp_path, extra):
    """A page of the site, and the same page with a script of 800 kB."""
    page = (weigh.SITE / f"{PAGE}.html").read_text(encoding="utf-8")
    page = page.replace("../../", "")
    for name in ("_static", "vendor"):
        (tmp_path / name).symlink_to(weigh.SITE / name, target_is_directory=True)
    if extra:
        noise = random.Random(184).randbytes(400_000).hex()
        (tmp_path / "heavy.js").write_text(f'"{noise}"', encoding="utf-8")
        page = page.replace("</head>", '<script src="heavy.js" defer></script></head>')
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    found = noticed(chromium, tmp_path, RECORD[PAGE]["stock"])
    assert ["weighs" in fault for fault in found] == [True] * extra
