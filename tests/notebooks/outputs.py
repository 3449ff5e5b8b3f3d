"""Compare what the same notebooks printed: two runs, or a run and the recorded one.

python tests/notebooks/outputs.py book/part-1/rope.ipynb ...   run these, and compare
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any


def differences(one: Path, other: Path) -> list[str]:
    """A line for each cell whose text differs between two folders of run notebooks."""
    found = []
    for path in sorted(other.rglob("*.ipynb")):
        name = path.relative_to(other).as_posix()
        if not (one / name).is_file():
            found.append(f"{name}: was not run the first time")
            continue
        first, second = texts(one / name), texts(path)
        if first.keys() != second.keys():
            found.append(f"{name}: not the same cells")
        found += [
            f"{name}, cell {cell}: {where(first[cell], second[cell])}"
            for cell in first.keys() & second.keys()
            if first[cell] != second[cell]
        ]
    return sorted(found)


def digests(folder: Path) -> dict[str, dict[str, str]]:
    """Page -> cell -> digest of all that it printed."""
    return {
        path.relative_to(folder).as_posix(): {
            cell: hashlib.sha256("\0".join(text).encode()).hexdigest()[:16]
            for cell, text in texts(path).items()
        }
        for path in sorted(folder.rglob("*.ipynb"))
    }


def changes(recorded: dict[str, dict[str, str]], folder: Path) -> list[str]:
    """A line for each cell of a folder that prints something else than was recorded."""
    found = []
    now = digests(folder)
    for page in sorted(recorded.keys() | now.keys()):
        first, second = recorded.get(page, {}), now.get(page, {})
        for cell in sorted(first.keys() | second.keys()):
            if first.get(cell) != second.get(cell):
                found.append(f"{page}, cell {cell}: not what was recorded")
    return found


def not_green(workbooks: Path) -> list[str]:
    """Cells of workbooks that were run unedited and do not say that all checks hold."""
    found = []
    for path in sorted(workbooks.glob("*.ipynb")):
        said = texts(path)
        tries = [cell for cell in said if cell.startswith("try-")]
        if not tries:
            found.append(f"{path.name}: nothing was tried")
        found += [
            f"{path.name}, cell {cell}: not every check holds: {text[-400:]}"
            for cell in tries
            if "Every check holds." not in (text := "".join(said[cell]))
        ]
    return found


def texts(path: Path) -> dict[str, list[str]]:
    """Cell -> all text that it printed, in every form that a page may show."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: [
            text for output in whole(cell["outputs"]) for text in printed(output)
        ]
        for cell in cells
        if cell["cell_type"] == "code"
    }


def whole(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A stream may come in several pieces, cut by the clock: put them together."""
    found: list[dict[str, Any]] = []
    for output in outputs:
        is_stream = output["output_type"] == "stream"
        if is_stream and found and found[-1].get("name") == output["name"]:
            text = joined(found[-1]["text"]) + joined(output["text"])
            found[-1] = {**output, "text": text}
        else:
            found.append(output)
    return found


def printed(output: dict[str, Any]) -> list[str]:
    """The texts of one output."""
    if output["output_type"] == "stream":
        return [output["name"] + ": " + joined(output["text"])]
    if output["output_type"] == "error":
        return [f"{output['ename']}: {output['evalue']}"]
    data = output["data"]
    return [f"{kind}: {joined(data[kind])}" for kind in sorted(data)]


def joined(text: Any) -> str:
    return "".join(text) if isinstance(text, list) else str(text)


def where(first: list[str], second: list[str]) -> str:
    """The first place where two lists of texts part."""
    if len(first) != len(second):
        return f"{len(first)} outputs, then {len(second)}"
    a, b = next((a, b) for a, b in zip(first, second, strict=True) if a != b)
    at = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y),
        min(len(a), len(b)),
    )
    start = max(0, at - 30)
    return f"...{a[start : at + 30]!r}, then ...{b[start : at + 30]!r}"


def main(pages: list[str]) -> int:
    """Run pages, and name the cells that do not print what was recorded."""
    import nbformat
    from nbclient import NotebookClient

    root = Path(__file__).resolve().parents[2]
    sys.path.insert(0, str(root / "book" / "_ext"))
    import kernels

    kernels.prepare()
    recorded = json.loads((root / "tests/data/outputs.json").read_text("utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        for page in pages:
            notebook = nbformat.read(root / page, as_version=4)
            where = {"metadata": {"path": str((root / page).parent)}}
            NotebookClient(notebook, timeout=120, resources=where).execute()
            path = Path(folder, *Path(page).parts[1:])  # digests count from book/
            path.parent.mkdir(parents=True, exist_ok=True)
            nbformat.write(notebook, path)
        names = ["/".join(Path(page).parts[1:]) for page in pages]
        found = changes({name: recorded[name] for name in names}, Path(folder))
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
