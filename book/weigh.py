"""Weigh the pages, and time them, beside those of a stock Jupyter Book.

    python book/weigh.py               all pages; about half an hour
    python book/weigh.py PAGE...       only these, as they stand in _toc.yml
    python book/weigh.py --loads 1     times from one load instead of three
    python book/weigh.py --record      keep the stock weights for the tests

What is measured
    Each page is opened in headless Chromium, from a server on this machine that
    compresses text with gzip, at 375 and at 1280 pixels, each time with nothing in the
    cache and with the processor slowed down four times. A weight is the sum of all
    bytes that come over the network, headers included, up to one second after the page
    has loaded and its formulas are set. Times are medians of the loads, from the start
    of the navigation: the first paint, the first paint of content, and the largest one.
    A shift is the sum of all layout shifts, and the greatest sum of the loads counts.

The stock book
    The pages of the last build, with the outputs that it computed, built again by
    `jupyter-book build` with the default settings: same theme, no extension of ours, no
    stylesheet or script of ours, the theme's icons, MathJax from npm. Where it differs
    from what anybody would get:

    * MathJax comes from the same server, not from a content delivery network. What it
      weighs is also told apart, for there is no network here.
    * Three settings that the content needs are kept: the Markdown extensions, the
      bibliography, and the list of pages.
    * The role ``given`` shows its text; the directives ``takeaway`` and ``hub-link``,
      of one page each, show nothing. A table that the build adds is missing there.
    * Nothing links formulas, functions and checks with one another.

    The stock page lacks our stylesheet and quiz, so it is if anything lighter than a
    stock page that can do the same.

It prints a table, writes _build/weights.json, and ends with 1 if a page weighs more
than a quarter of the stock page, or shifts by 0.05 or more.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import http.server
import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import nbformat
import yaml
from jupyter_cache import get_cache
from jupyter_cache.base import JupyterCacheAbstract

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
SITE = BUILD / "html"
STOCK = BUILD / "stock"
RESULTS = BUILD / "weights.json"
RECORD = ROOT / "tests" / "data" / "weights.json"
MATHJAX = "mathjax@3.2.2"

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import bookbuild  # noqa: E402
import strict  # noqa: E402

WIDTHS = {375: 812, 1280: 900}  # and heights, of windows
SLOWER = 4  # times
SHARE = 0.25  # of the stock page
SHIFT = 0.05
CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]

Load = dict[str, Any]


# --- the stock book --------------------------------------------------------------


def build_stock(folder: Path) -> Path:
    """Build a stock book from the pages of the last build; returns its site."""
    shutil.rmtree(folder, ignore_errors=True)
    cache = get_cache(BUILD / ".jupyter_cache" / bookbuild.fingerprint(ROOT))
    for page in strict.listed(ROOT):
        copy_page(page, folder, cache)
    for name in ("_toc.yml", "book/references.bib"):
        shutil.copy(ROOT / name, folder / name)
    fetch_mathjax(folder / "extra" / "mathjax")
    ours = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    settings = {
        "title": ours["title"],
        "only_build_toc_files": True,
        "execute": {"execute_notebooks": "off"},
        "parse": ours["parse"],
        "bibtex_bibfiles": ours["bibtex_bibfiles"],
        "sphinx": {
            "local_extensions": {"weigh": str(ROOT / "book")},
            "config": {
                "html_extra_path": ["extra"],
                "mathjax_path": "../mathjax/tex-mml-chtml.js",
            },
        },
    }
    (folder / "_config.yml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    program = "from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", program, "build", "--quiet", str(folder)]
    run = subprocess.run(command, capture_output=True, text=True)
    site = folder / "_build" / "html"
    missing = [p for p in strict.listed(ROOT) if not (site / f"{p}.html").is_file()]
    if run.returncode or missing or "Unknown" in run.stderr:
        raise SystemExit(f"The stock book was not built: {missing}\n{run.stderr}")
    return site


def copy_page(page: str, folder: Path, cache: JupyterCacheAbstract) -> None:
    """The page with the outputs of the last build, which left them in its cache."""
    source = ROOT / f"{page}.md"
    target = folder / f"{page}.md"
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_file():
        shutil.copy(source, target)
        return
    notebook = nbformat.read(source.with_suffix(".ipynb"), as_version=4)
    try:
        _, notebook = cache.merge_match_into_notebook(notebook)
    except KeyError:
        raise SystemExit(f"{page} changed since the last build: make book") from None
    nbformat.write(notebook, target.with_suffix(".ipynb"))


def fetch_mathjax(folder: Path) -> None:
    """What the stock theme loads from a content delivery network, from npm."""
    store = BUILD / "npm"
    store.mkdir(parents=True, exist_ok=True)
    archive = store / f"{MATHJAX.replace('@', '-')}.tgz"
    if not archive.is_file():
        npm = shutil.which("npm")
        if npm is None:
            raise SystemExit("The stock book needs MathJax, and so npm once.")
        subprocess.run([npm, "pack", MATHJAX, "--silent"], cwd=store, check=True)
    with tarfile.open(archive) as packed:
        inside = [m for m in packed if m.name.startswith("package/es5/")]
        for member in inside:
            member.name = member.name.removeprefix("package/es5/")
        packed.extractall(folder, inside, filter="data")


def setup(app) -> dict[str, bool]:
    """For the stock book: what Jupyter Book does not know, as little as possible."""
    from docutils import nodes
    from sphinx.util.docutils import SphinxDirective

    class Nothing(SphinxDirective):
        optional_arguments = 1

        def run(self) -> list[nodes.Node]:
            return []

    def given(name, rawtext, text, lineno, inliner, options=None, content=()):
        return [nodes.Text(text)], []

    app.add_role("given", given)
    app.add_directive("takeaway", Nothing)
    app.add_directive("hub-link", Nothing)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


# --- a server that compresses ----------------------------------------------------

TEXT = ("text/", "application/javascript", "application/json", "image/svg+xml")


@functools.cache
def compressed(path: Path, date: float) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=6, mtime=0)


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Files of a folder; text goes out compressed, as from any ordinary server."""

    protocol_version = "HTTP/1.1"

    def send_head(self) -> io.BytesIO | None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(HTTPStatus.NOT_FOUND)
            return None
        kind = self.guess_type(path)
        text = kind.startswith(TEXT)
        body = compressed(path, path.stat().st_mtime) if text else path.read_bytes()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if text:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        return io.BytesIO(body)

    def log_message(self, *_) -> None:
        pass


@contextlib.contextmanager
def serve(site: Path, handler: type = Compressing) -> Iterator[str]:
    """Serve a folder on a free port of this machine; gives the address."""
    handle = functools.partial(handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handle) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


# --- one load of one page --------------------------------------------------------

# What the browser has noted by itself since the navigation began.
NOTED = """() => new Promise((done) => {
  const seen = { paint: [], "largest-contentful-paint": [], "layout-shift": [] };
  for (const type in seen)
    new PerformanceObserver((list) => seen[type].push(...list.getEntries()))
      .observe({ type, buffered: true });
  setTimeout(() => {
    const at = Object.fromEntries(seen.paint.map((e) => [e.name, e.startTime]));
    const shifts = seen["layout-shift"].filter((e) => !e.hadRecentInput);
    const last = seen["largest-contentful-paint"].at(-1);
    const name = (node) =>
      node ? `${node.nodeName.toLowerCase()}.${node.className}` : "(gone)";
    done({
      first_paint: at["first-paint"] ?? null,
      first_content: at["first-contentful-paint"] ?? null,
      largest: last ? last.startTime : null,
      shift: shifts.reduce((sum, e) => sum + e.value, 0),
      moved: shifts.map((e) => [
        e.value, Math.round(e.startTime), e.sources.map((s) => name(s.node)),
      ]),
    });
  }, 100);
})"""


class Visit:
    """One page in a window of its own, with an empty cache, on a slow processor."""

    def __init__(
        self, browser, address: str, width: int, slower: float = SLOWER
    ) -> None:
        window = {"width": width, "height": WIDTHS[width]}
        self.context = browser.new_context(viewport=window)
        self.page = self.context.new_page()
        self.address = address
        self.urls: dict[str, str] = {}
        self.bytes: dict[str, float] = {}
        self.failed: list[str] = []
        devtools = self.context.new_cdp_session(self.page)
        devtools.send("Network.enable")
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": slower})
        devtools.on("Network.requestWillBeSent", self.asked)
        devtools.on("Network.loadingFinished", self.loaded)
        devtools.on("Network.loadingFailed", self.not_loaded)

    def asked(self, event) -> None:
        # the browser asks once for an icon of the site, and no page names one
        if event["request"]["url"].endswith("/favicon.ico"):
            return
        self.urls[event["requestId"]] = event["request"]["url"]

    def loaded(self, event) -> None:
        self.bytes[event["requestId"]] = event["encodedDataLength"]

    def not_loaded(self, event) -> None:
        self.failed.append(self.urls.get(event["requestId"], event["errorText"]))

    def start(self) -> None:
        """Begin to load; several visits may be under way at a time."""
        self.page.goto(self.address, wait_until="commit")

    def finish(self, wait: float = 1.0) -> Load:
        """Wait until the page stands still, and tell what it took."""
        self.page.wait_for_load_state("load")
        self.page.evaluate("window.MathJax?.startup?.promise.then(() => 0)")
        self.page.wait_for_timeout(1000 * wait)
        noted = self.page.evaluate(NOTED)
        self.context.close()
        sizes = {
            url: self.bytes[key]
            for key, url in self.urls.items()
            if self.bytes.get(key)
        }
        mathjax = sum(size for url, size in sizes.items() if "/mathjax/" in url)
        return noted | {
            "bytes": sum(sizes.values()),
            "mathjax": mathjax,
            "requests": len(sizes),
            "sizes": sizes,
            "failed": self.failed,
        }


@contextlib.contextmanager
def chromium() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if program is None:
        raise SystemExit("Chromium is not here.")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


def measured(browser, address: str, loads: int) -> dict[int, Load]:
    """What several loads took, at each width: weights, medians, the worst shift."""
    found = {}
    for width in WIDTHS:
        all_loads = []
        for _ in range(loads):
            visit = Visit(browser, address, width)
            visit.start()
            all_loads.append(visit.finish())
        worst = max(all_loads, key=lambda load: load["shift"])
        heaviest = max(all_loads, key=lambda load: load["bytes"])
        if heaviest["failed"]:
            raise SystemExit(f"{address} asked in vain for {heaviest['failed']}")
        found[width] = heaviest | {k: worst[k] for k in ("shift", "moved")}
        for key in ("first_paint", "first_content", "largest"):
            times = [load[key] for load in all_loads if load[key] is not None]
            found[width][key] = round(statistics.median(times)) if times else None
        del found[width]["sizes"], found[width]["failed"]
    return found


# --- all pages -------------------------------------------------------------------

HEAD = f"{'':38}{'kB':>12}{'':>7}{'':>13}{'first paint, ms':>22}{'shift':>16}"
COLUMNS = (
    f"{'page':38}{'ours':>6}{'stock':>6}{'ratio':>7}{'no MathJax':>13}"
    f"{'375':>11}{'1280':>11}{'375':>8}{'1280':>8}"
)


def weight(found: dict[int, Load]) -> float:
    return max(load["bytes"] for load in found.values())


def stock_weight(found: dict[int, Load]) -> float:
    return min(load["bytes"] for load in found.values())


def without_mathjax(found: dict[int, Load]) -> float:
    return min(load["bytes"] - load["mathjax"] for load in found.values())


def row(page: str, ours: dict[int, Load], stock: dict[int, Load]) -> str:
    """One line of the table."""
    heavy, full, bare = weight(ours), stock_weight(stock), without_mathjax(stock)
    paints = "".join(
        f"{ours[w]['first_content']:>5}/{stock[w]['first_content']:<5}" for w in WIDTHS
    )
    shifts = "".join(f"{ours[w]['shift']:>8.3f}" for w in WIDTHS)
    return (
        f"{page.removeprefix('book/'):38}{heavy / 1e3:>6.0f}{full / 1e3:>6.0f}"
        f"{heavy / full:>7.3f}{heavy / bare:>13.3f}{paints}{shifts}"
    )


def faults(page: str, ours: dict[int, Load], stock: float) -> Iterator[str]:
    """What is too heavy beside a stock page, and what moves while it loads."""
    if weight(ours) > SHARE * stock:
        times = weight(ours) / stock
        yield f"{page} weighs {times:.3f} of a stock page, more than {SHARE}"
    for width, load in ours.items():
        if load["shift"] >= SHIFT:
            yield f"{page} shifts by {load['shift']:.3f} at {width} pixels"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="as in _toc.yml")
    parser.add_argument("--loads", type=int, default=3, help="for each time (3)")
    parser.add_argument("--record", action="store_true", help="for the tests")
    options = parser.parse_args()
    listed = strict.listed(ROOT)
    if unknown := set(options.pages) - set(listed):
        parser.error(f"not in _toc.yml: {', '.join(sorted(unknown))}")
    if options.record and options.pages:
        parser.error("--record weighs all pages")
    if not (SITE / "index.html").is_file():
        raise SystemExit("There is no site to weigh: run `make book`.")

    print("Building a stock book from the same pages ...", flush=True)
    stock_site = build_stock(STOCK)
    pages, wrong = {}, []
    print(f"\n{HEAD}\n{COLUMNS}")
    with serve(SITE) as ours_at, serve(stock_site) as stock_at, chromium() as browser:
        for page in options.pages or listed:
            ours = measured(browser, f"{ours_at}/{page}.html", options.loads)
            stock = measured(browser, f"{stock_at}/{page}.html", options.loads)
            pages[page] = {"ours": ours, "stock": stock}
            wrong += faults(page, ours, stock_weight(stock))
            print(row(page, ours, stock), flush=True)
        version = browser.version
    how = {
        "chromium": version,
        "cores": os.cpu_count(),
        "load of the machine": os.getloadavg(),
        "loads": options.loads,
    }
    result = {"measured with": how, "pages": pages}
    RESULTS.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.record:
        kept = {
            page: {
                "stock": round(stock_weight(found["stock"])),
                "without MathJax": round(without_mathjax(found["stock"])),
            }
            for page, found in pages.items()
        }
        RECORD.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(
        "\nTimes are ours/stock, at 375 and 1280 pixels, with the processor slowed "
        f"down {SLOWER} times;\n{os.cpu_count()} cores, perhaps shared. 'no MathJax' "
        "is the ratio to a stock page without it."
    )
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
