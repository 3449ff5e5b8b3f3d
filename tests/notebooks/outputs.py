"""Compare what the same notebooks printed in two runs."""

from __future__ import annotations

import json
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


def texts(path: Path) -> dict[str, list[str]]:
    """Cell -> all text that it printed, in every form that a page may show."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return {
        cell["id"]: [text for output in cell["outputs"] for text in printed(output)]
        for cell in cells
        if cell["cell_type"] == "code"
    }


def printed(output: dict[str, Any]) -> list[str]:
    """The texts of one output; a stream may come in several pieces."""
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
