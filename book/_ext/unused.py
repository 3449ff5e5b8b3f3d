"""Sphinx extension: files of the theme that no page asks for leave the site.

The theme brings source maps, translations, icons in three fonts, logos of services.
What a page or one of its style sheets names stays, and its licence beside it; the rest
of ``_static`` goes.  The icon fonts are named by the theme's style sheet alone: section
12 of lab.css draws the icons, so their ``@font-face`` rules go first.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

IN_PAGE = re.compile(r'\b(?:src|href)="([^"#]+)"')
IN_STYLE = re.compile(r"""(?:url\(|@import\s+)["']?([^"')]+)""")
ICON_FONT = re.compile(r"@font-face\s*\{[^{}]*fontawesome/[^{}]*\}")


def named(file: Path) -> set[Path]:
    """The files beside it that a page or a style sheet names."""
    pattern = {".html": IN_PAGE, ".css": IN_STYLE}.get(file.suffix)
    if pattern is None or not file.is_file():
        return set()
    found = set()
    for address in pattern.findall(file.read_text(encoding="utf-8")):
        parts = urlsplit(address)
        if not parts.scheme and not parts.netloc and parts.path:
            found.add((file.parent / unquote(parts.path)).resolve())
    return found


def reached(site: Path) -> set[Path]:
    """All files of the site that a reader's browser may ask for."""
    static = site / "_static"
    todo = {page for page in site.rglob("*.html") if static not in page.parents}
    seen: set[Path] = set()
    while todo:
        file = todo.pop()
        seen.add(file)
        todo |= named(file) - seen
    return seen


def leave_out(app, exception) -> None:
    if exception or app.builder.format != "html":
        return
    site = Path(app.outdir).resolve()
    static = site / "_static"
    for sheet in (static / "styles").glob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        sheet.write_text(ICON_FONT.sub("", text), encoding="utf-8", newline="")
    keep = reached(site)
    for path in sorted(static.rglob("*"), reverse=True):  # a folder after its files
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif path not in keep and path.with_name(licensed(path)) not in keep:
            path.unlink()


def licensed(path: Path) -> str:
    """The file to which a licence belongs: bootstrap.js.LICENSE.txt to bootstrap.js."""
    return path.name.removesuffix(".LICENSE.txt")


def setup(app):
    # after weight.py, which puts imported sheets into those that import them
    app.connect("build-finished", leave_out, priority=950)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
