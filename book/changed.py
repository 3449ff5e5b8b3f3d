"""List the built pages that the work since a commit touches, with their addresses.

    python book/changed.py            since the branch left main; on main: what is not
                                      committed yet, or else the last commit
    python book/changed.py COMMIT     since this commit

A page is listed once too often rather than missed: whatever cannot be traced to some
pages touches all of them.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SITE = ROOT / "_build" / "html"

sys.path[:0] = [str(ROOT / "book" / "_ext"), str(ROOT / "shared")]
import strict  # noqa: E402
from labcore import contents  # noqa: E402
from labcore.examples import EXAMPLES  # noqa: E402
from labcore.exercises import EXERCISES  # noqa: E402
from labcore.formulas import FORMULAS, UNCHECKED  # noqa: E402
from labcore.identities import CHECKS, FAULTS, recorded  # noqa: E402
from labcore.ops import _op  # noqa: E402

# The folders of labcore that have a module for each topic.
TOPICS = "ops systems identities examples formulas figures exercises".split()
INDEX = {
    "identities": ("book/index", "book/reference/checks"),
    "examples": ("book/reference/examples",),
    "formulas": ("book/reference/formulas",),
}
# In the folders that the pages depend on, and yet no page shows what they hold.
SILENT = ("book/changed.py", "book/record.py", "book/weigh.py", "book/floors.json")
DEPENDED_ON = ("book/", "shared/", "_config.yml", "_toc.yml", "requirements.txt")


# --- what has changed ------------------------------------------------------------


def git(root: Path, *words: str) -> list[str]:
    run = subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, encoding="utf-8"
    )
    if run.returncode:
        raise SystemExit(f"git {words[0]}: {run.stderr.strip()}")
    return run.stdout.splitlines()


def changed_files(root: Path, since: str) -> list[str]:
    """The files that differ from a commit, new ones too."""
    new = git(root, "ls-files", "--others", "--exclude-standard")
    return sorted({*git(root, "diff", "--name-only", "--no-renames", since), *new})


def start(root: Path) -> str:
    """The commit where the work began."""
    branch = git(root, "rev-parse", "--abbrev-ref", "HEAD")
    if branch != ["main"] and git(root, "branch", "--list", "main"):
        [fork] = git(root, "merge-base", "main", "HEAD")
        return fork
    return "HEAD" if changed_files(root, "HEAD") else "HEAD~1"


# --- which pages it touches ------------------------------------------------------


def touched(file: str) -> set[str]:
    """The pages, as _toc.yml names them, that a change of this file touches."""
    pages = set(strict.listed(ROOT))
    page, _, suffix = file.rpartition(".")
    if page in pages and suffix in ("ipynb", "md"):
        return {page}
    if file in SILENT or not file.startswith(DEPENDED_ON):
        return set()
    if file.startswith("shared/labcore/recorded/"):
        return {"book/reference/recorded-run"}
    if file == "book/references.bib":
        return {p for p in pages if "{cite" in text(p) or "{bibliography" in text(p)}
    module = re.fullmatch(
        rf"shared/(labcore/(?:{'|'.join(TOPICS)})/[a-z]\w*)\.py", file
    )
    found = by_module(module[1].replace("/", ".")) if module else set()
    return found & pages or pages


def by_module(name: str) -> set[str]:
    """The pages that a module shows in, directly or through one that imports it."""
    modules, waiting = set(), [name]
    while waiting:
        module = waiting.pop()
        if module not in modules:
            modules.add(module)
            waiting += importers(module)
    pages = set(INDEX.get(name.split(".")[1], ()))
    for module in modules:
        for slug in chapters(module):
            with contextlib.suppress(ValueError):  # a chapter that has no page yet
                pages.add(f"book/{contents.page(slug)}")
        pages |= {p for p in strict.listed(ROOT) if module in used_by(p)}
    of_part_1 = any(page.startswith("book/part-1/") for page in pages)
    if of_part_1 and name.split(".")[1] in ("ops", "identities"):
        pages.add("book/part-1/break-everything")  # it runs the checks of the part
    return pages


def chapters(module: str) -> Iterator[str]:
    """The chapters of what a module registers, and of the checks that reach it."""
    for check in CHECKS.values():
        if module in (check.sides.__module__, check.draw.__module__):
            yield check.chapter
    for fault in FAULTS.values():
        if fault.by.__module__ == module:
            yield fault.chapter
    for example in EXAMPLES.values():
        if example.compute.__module__ == module:
            yield example.chapter
    source = path_of(module).read_text("utf-8") if path_of(module).is_file() else ""
    for formula in (*FORMULAS.values(), *UNCHECKED.values()):
        if ".formulas." in module and f'"{formula.id}"' in source:
            yield formula.chapter
    for operation, function in _op.OPS.items():
        if function.__module__ == module:
            for id in recorded()["reach"].get(operation, ()):
                if id in CHECKS:
                    yield CHECKS[id].chapter


def importers(name: str) -> list[str]:
    """The modules above ops and systems that import this one."""
    return [module for module, names in imports().items() if name in names - {module}]


@cache
def imports() -> dict[str, set[str]]:
    """Module above ops and systems -> what it imports."""
    return {
        (module := f"labcore.{topic}.{path.stem}"): imported(path.read_text(), module)
        for topic in TOPICS[2:]
        for path in sorted((ROOT / "shared/labcore" / topic).glob("[a-z]*.py"))
    }


def imported(source: str, module: str = "") -> set[str]:
    """The modules that a source imports, and what it imports from them."""
    package = module.split(".")[:-1]
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module or "").split(".")]
            origin = ".".join(part for part in base if part)
            names |= {origin, *(f"{origin}.{alias.name}" for alias in node.names)}
    return names


@cache
def used_by(page: str) -> set[str]:
    """The modules that a page imports, or whose operations and exercises it names."""
    code = "\n\n".join(code_cells(page))
    words = set(re.findall(r"\w+", code))
    modules = imported(code)
    modules |= {f.__module__ for name, f in _op.OPS.items() if name in words}
    for example in EXAMPLES.values():
        if f'"{example.id}"' in code:
            modules.add(example.compute.__module__)
    for exercise in EXERCISES.values():
        if f'"{exercise.id}"' in code:
            modules.add(exercise.compute.__module__)
    return modules


def code_cells(page: str) -> list[str]:
    path = ROOT / f"{page}.ipynb"
    if not path.is_file():
        return []
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]


def text(page: str) -> str:
    [path] = [p for p in ROOT.glob(f"{page}.*") if p.suffix in (".ipynb", ".md")]
    return path.read_text("utf-8")


def path_of(module: str) -> Path:
    return ROOT / "shared" / f"{module.replace('.', '/')}.py"


# --- the list --------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("since", nargs="?", metavar="COMMIT", help="where work began")
    since = parser.parse_args(arguments).since or start(ROOT)
    because: dict[str, list[str]] = {}
    for file in changed_files(ROOT, since):
        for page in touched(file):
            because.setdefault(page, []).append(file)
    for page in strict.listed(ROOT):
        if page in because:
            first, *more = because[page]
            built = SITE / f"{page}.html"
            address = built.as_uri() if built.is_file() else f"{page} (not built)"
            print(f"{address}  {first}" + (f" and {len(more)} more" if more else ""))
    print(f"{len(because)} of {len(strict.listed(ROOT))} pages, since {since}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
