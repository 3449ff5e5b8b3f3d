"""Build the book: execute the chapters, write the site, fail on anything unclean.

    python book/build.py            only what changed
    python book/build.py --fresh    all pages anew (outputs may come from the cache)
    python book/build.py --check    only what can be seen before anything runs

The last line is the page to open, or what went wrong.
"""

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
SITE = BUILD / "html"

sys.path.insert(0, str(ROOT / "book" / "_ext"))
import strict  # noqa: E402
import truth  # noqa: E402

# The date of a site that is built outside git: 2026-12-01.
DATE_WITHOUT_GIT = "1796083200"


def date_of_source() -> str:
    """The time of the last commit: equal sources give equal sites."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=False)
    except OSError:
        return DATE_WITHOUT_GIT
    return found.stdout.strip() or DATE_WITHOUT_GIT


class Listener(io.TextIOBase):
    """Passes text on and remembers it."""

    def __init__(self, stream) -> None:
        self.stream = stream
        self.heard = io.StringIO()

    def write(self, text: str) -> int:
        self.heard.write(text)
        return self.stream.write(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()


def run_sphinx() -> tuple[bool, str]:
    """Build with every warning an error. Returns success, and all that was said."""
    from jupyter_book.sphinx import build_sphinx
    from sphinx.util.console import color_terminal, nocolor

    if not color_terminal():
        nocolor()
    with contextlib.redirect_stderr(Listener(sys.stderr)) as listener:
        result = build_sphinx(
            ROOT,
            SITE,
            noconfig=True,
            path_config=ROOT / "_config.yml",
            confoverrides={
                "external_toc_path": (ROOT / "_toc.yml").as_posix(),
                "latex_individualpages": False,
                "nitpicky": True,
            },
            warningiserror=True,
            keep_going=True,
        )
    said = re.sub(r"\x1b\[[0-9;]*m", "", listener.heard.getvalue()).strip()
    return result == 0, said


def before() -> list[str]:
    """What is wrong before anything runs."""
    return [
        *strict.config_problems(ROOT),
        *strict.contents_problems(ROOT),
        *strict.notebook_problems(ROOT),
        *strict.floor_problems(ROOT),
        *truth.prose_problems(ROOT),
    ]


def after() -> list[str]:
    """What is wrong with the site that was written."""
    missing = [p for p in strict.listed(ROOT) if not (SITE / f"{p}.html").is_file()]
    lacks = [f"the site lacks the page {page}" for page in missing]
    return lacks + list(strict.site_problems(SITE))


def fail(reasons: str) -> int:
    print(f"\nThe book was not built:\n\n{reasons}", file=sys.stderr)
    return 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fresh", action="store_true", help="write all pages anew")
    parser.add_argument("--check", action="store_true", help="only read, run nothing")
    options = parser.parse_args()
    if options.fresh:
        shutil.rmtree(SITE, ignore_errors=True)
        shutil.rmtree(BUILD / ".doctrees", ignore_errors=True)
    os.environ.setdefault("SOURCE_DATE_EPOCH", date_of_source())
    # Else a pipe shows the reason of a failure before the steps that led to it.
    sys.stdout.reconfigure(line_buffering=True)

    if wrong := before():
        return fail("\n".join(wrong))
    if options.check:
        print("Pages, settings and contents are clean.")
        return 0
    good, said = run_sphinx()
    if not good:
        return fail(said)
    if wrong := after():
        return fail("\n".join(wrong))
    print(f"\nThe book is built. Open this page in a browser:\n{SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
