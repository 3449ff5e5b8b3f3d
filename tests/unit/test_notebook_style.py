"""What outputs bring along in JupyterLab: the colours of the book, and only there."""

from __future__ import annotations

import re
from pathlib import Path

import kernels
import pytest
from labcore import lab, notebook
from labcore.figures._draw import TOKEN

SHEET = Path(__file__).resolve().parents[2] / "book" / "_static" / "lab.css"


def tokens(css: str) -> list[tuple[str, str]]:
    """(name, colour) of every custom property that is a colour, in order."""
    return re.findall(r"--(\w+): (#[0-9a-f]{6})\b", css)


def test_the_colours_are_those_of_the_book():
    of_the_book = tokens(SHEET.read_text(encoding="utf-8"))
    here = tokens(notebook.STYLE)
    assert here and set(here) <= set(of_the_book)
    light, dark = here[: len(here) // 2], here[len(here) // 2 :]
    assert [name for name, _ in light] == [name for name, _ in dark]
    drawn = {(name, colour) for colour, name in TOKEN.items()}
    assert set(light) <= drawn and not set(dark) & drawn


@pytest.mark.parametrize("live", [True, False])
def test_only_a_live_notebook_gets_the_style(
    live: bool, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    if live:
        monkeypatch.setenv("JPY_SESSION_NAME", "some.ipynb")
    assert ("<style>" in lab.try_it("merge_averages")._repr_html_()) == live


def test_a_build_that_a_notebook_starts_is_no_notebook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(kernels, "ROOT", tmp_path)
    monkeypatch.setattr(kernels.subprocess, "run", lambda *_, **__: None)
    for name in ("MPLCONFIGDIR", "IPYTHONDIR", "JPY_SESSION_NAME"):
        monkeypatch.setenv(name, "some.ipynb")
    kernels.use_own_settings()
    assert notebook.dressed("<p>") == "<p>"
