"""Change one constant of labcore, build the whole book, and read every page.

    python tests/whole_book.py        after `make book`; about two minutes

``report.DIGITS`` says how many digits a result is written with.  With four in place of
six, no result of six digits may be left on any page of the built book.  A page that
shows no number of five or six digits must stay as it is.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from bs4 import BeautifulSoup

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
from tests.tamper import BUILD, copy, edit, run  # noqa: E402

DECIMAL = re.compile(r"(?<![\w./])\d+\.\d+(?![\w./]*\d)")
HASH = re.compile(r"(?:\b[0-9a-f]{8}\b\s*){8}")  # of a file that holds labcore
# Written by hand, with the run that they record, or as addresses of papers.
NOT_RESULTS = {"reference/recorded-run", "reference/bibliography"}


def read(site: Path) -> dict[str, str]:
    """Page -> what a reader sees of it."""
    pages = {}
    for path in sorted((site / "book").rglob("*.html")):
        soup = BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")
        name = path.relative_to(site / "book").with_suffix("").as_posix()
        pages[name] = soup.find("article").get_text(" ")
    return pages


def of_digits(text: str, *counts: int) -> set[str]:
    """The numbers with so many digits that count."""
    found = DECIMAL.findall(text)
    return {n for n in found if len(n.replace(".", "").strip("0")) in counts}


def main() -> int:
    before = read(ROOT / "_build" / "html")
    if not before:
        print("there is no book: make book")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        project = copy(Path(folder))
        edit("shared/labcore/report.py", "DIGITS = 6\n", "DIGITS = 4\n")(project)
        status, said = run(project, BUILD)
        if status:
            print(said[-2000:])
            return 1
        after = read(project / "_build" / "html")
    wrong, changed = [], 0
    for name, text in before.items():
        may = of_digits(text, 5, 6) or HASH.search(text)
        if name in NOT_RESULTS or not may:
            wrong += [f"{name} changed"] if after[name] != text else []
        else:
            changed += after[name] != text
            left = sorted(of_digits(text, 6) & of_digits(after[name], 6))
            wrong += [f"{name} still shows {', '.join(left)}"] if left else []
    print(f"{changed} of {len(before)} pages changed")
    print(*wrong or ["no result of six digits is left"], sep="\n")
    return 1 if wrong or not changed else 0


if __name__ == "__main__":
    sys.exit(main())
