"""Take the traces of a run out of notebooks, so that a diff shows what was written.

    python tests/notebooks/strip.py             all notebooks of book/ and labs/
    python tests/notebooks/strip.py FILE ...    only these

It empties outputs and counters, sets the kernel, and gives each cell whose id an
editor made up a readable one. Ids that are readable already stay as they are.
"""

import re
import sys
from pathlib import Path

import nbformat
from nbformat import v4

ROOT = Path(__file__).resolve().parents[2]
METADATA = {
    "kernelspec": {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    },
    "language_info": {"name": "python"},
}
SLUG = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# An editor's own id: eight hexadecimal digits, with or without the rest of a UUID.
MADE_UP = re.compile(r"(?=[a-f-]*[0-9])[0-9a-f]{8}(-[0-9a-f-]*)?")
LONGEST_ID = 40


def all_notebooks() -> list[Path]:
    found = [*ROOT.glob("book/**/*.ipynb"), *ROOT.glob("labs/**/*.ipynb")]
    hidden = (".", "_", "node_modules")
    return sorted(
        path
        for path in found
        if not any(part.startswith(hidden) for part in path.relative_to(ROOT).parts)
    )


def is_readable(cell_id: str) -> bool:
    return bool(SLUG.fullmatch(cell_id)) and not MADE_UP.fullmatch(cell_id)


def slug_for(cell) -> str:
    """A name from the first line that says something, such as its heading."""
    kind = "text" if cell.cell_type == "markdown" else "code"
    for line in cell.source.splitlines():
        words = re.findall(r"[a-z][a-z0-9]*", line.lower())
        if words and words[0] not in {"import", "from"}:
            return "-".join(words)[:LONGEST_ID].rstrip("-")
    return kind


def strip(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Change the notebook in place, and return it."""
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    used: set[str] = set()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        for trace in ("execution", "collapsed", "scrolled", "ExecuteTime"):
            cell.metadata.pop(trace, None)
        old = cell.get("id", "")
        name = old if is_readable(old) else slug_for(cell)
        number = 2
        cell.id = name
        while cell.id in used:
            cell.id, number = f"{name}-{number}", number + 1
        used.add(cell.id)
    return notebook


def as_text(notebook: nbformat.NotebookNode) -> str:
    return v4.writes(notebook).rstrip("\n") + "\n"


def stripped(text: str) -> str:
    # nbformat.reads would make up ids where they are missing or twice the same
    return as_text(strip(v4.reads(text)))


def main(arguments: list[str]) -> int:
    for path in [Path(name) for name in arguments] or all_notebooks():
        before = path.read_text(encoding="utf-8")
        after = stripped(before)
        if after != before:
            path.write_text(after, encoding="utf-8", newline="\n")
            print(f"stripped {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
