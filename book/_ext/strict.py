"""What Jupyter Book and Sphinx let pass in silence, and this build does not.

Before it runs: keys that no one reads, keys that stand twice, notebooks that hide a
failure, files without a place in the contents, and less than the recorded floor of
pages, cells and checks. After it ran: links, anchors, pictures without words, and
places that a result should have filled. Each function returns what is wrong, in words.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml

# Tags that change what a reader sees. Others would change what a failure does.
TAGS = {"remove-input", "break-it", "givens"}
FLOORS = "book/floors.json"
# With other values a chapter that fails, or does not run, would be published.
EXECUTE = {
    "execute_notebooks": "cache",
    "allow_errors": False,
    "stderr_output": "remove-warn",
}


# --- settings --------------------------------------------------------------------


def config_problems(root: Path) -> Iterator[str]:
    """Keys of _config.yml and _toc.yml that stand twice or that nothing reads."""
    for name in ("_config.yml", "_toc.yml"):
        for key, line in doubled(yaml.compose((root / name).read_text("utf-8"))):
            yield f"{name}, line {line}: the key {key!r} stands twice"
    config = yaml.safe_load((root / "_config.yml").read_text("utf-8"))
    yield from (f"_config.yml: nothing reads {key!r}" for key in unread(config))
    for key, value in EXECUTE.items():
        if config.get("execute", {}).get(key) != value:
            yield f"_config.yml: {key} must be {value!r}, or a failure could hide"


def doubled(node: yaml.Node | None) -> Iterator[tuple[str, int]]:
    """(key, line) of every key that a mapping has already."""
    if isinstance(node, yaml.MappingNode):
        seen = set()
        for key, value in node.value:
            if key.value in seen:
                yield key.value, key.start_mark.line + 1
            seen.add(key.value)
            yield from doubled(value)
    elif isinstance(node, yaml.SequenceNode):
        for part in node.value:
            yield from doubled(part)


def unread(config: dict) -> Iterator[str]:
    """Keys that Jupyter Book does not know; it hands those of Sphinx on."""
    import jupyter_book

    folder = Path(jupyter_book.__file__).parent
    known = yaml.safe_load((folder / "default_config.yml").read_text("utf-8"))
    known["project"] = known["bibtex_bibfiles"] = ""  # read, and missing in its list
    known["sphinx"]["config"] = known["sphinx"]["local_extensions"] = None
    for key, value in config.items():
        if key not in known:
            yield key
        elif isinstance(value, dict) and isinstance(known[key], dict):
            yield from (f"{key}.{k}" for k in value if k not in known[key])


def unread_by_sphinx(app, config) -> None:
    """Refuse settings that neither Sphinx nor an extension nor the theme knows."""
    import pydata_sphinx_theme
    import sphinx_book_theme
    from sphinx.errors import ConfigError

    settings = yaml.safe_load((Path(app.srcdir) / "_config.yml").read_text("utf-8"))
    given = settings.get("sphinx", {}).get("config") or {}
    wrong = [f"sphinx.config.{key}" for key in given if key not in config]
    options = set()
    for theme in (sphinx_book_theme, pydata_sphinx_theme):
        [conf] = Path(theme.__file__).parent.rglob("theme.conf")
        options |= set(re.findall(r"^(\w+) *=", conf.read_text("utf-8"), flags=re.M))
    for key in given.get("html_theme_options", {}):
        if key not in options:
            wrong.append(f"sphinx.config.html_theme_options.{key}")
    if wrong:
        raise ConfigError(f"_config.yml: nothing reads {', '.join(wrong)}")


# --- pages -----------------------------------------------------------------------


def listed(root: Path) -> list[str]:
    """The pages of the table of contents."""
    text = (root / "_toc.yml").read_text("utf-8")
    return re.findall(r"^[\s-]*(?:root|file): *(\S+)", text, flags=re.M)


def contents_problems(root: Path) -> Iterator[str]:
    """Entries without a file, files without an entry, entries that stand twice."""
    pages = listed(root)
    for page in sorted({page for page in pages if pages.count(page) > 1}):
        yield f"_toc.yml: {page} stands twice"
    for page in pages:
        if not any((root / f"{page}{end}").is_file() for end in (".ipynb", ".md")):
            yield f"_toc.yml: there is no file for {page}"
    for path in sorted((root / "book").rglob("*")):
        hidden = any(p.startswith((".", "_")) for p in path.relative_to(root).parts)
        vendored = "site_extra" in path.parts or "node_modules" in path.parts
        if path.suffix in {".ipynb", ".md"} and not hidden and not vendored:
            name = path.relative_to(root).with_suffix("").as_posix()
            if name not in pages:
                yield f"{path.relative_to(root).as_posix()} has no entry in _toc.yml"


def notebook_problems(root: Path) -> Iterator[str]:
    """Notebooks that would hide a failure, or that carry outputs of another run."""
    for page in listed(root):
        path = root / f"{page}.ipynb"
        if not path.is_file():
            continue
        notebook = json.loads(path.read_text("utf-8"))
        extra = set(notebook["metadata"]) - {"kernelspec", "language_info"}
        if extra:
            yield f"{page}: the metadata {sorted(extra)} change how it runs"
        for cell in notebook["cells"]:
            where = f"{page}, cell {cell.get('id', '?')}"
            tags = set(cell["metadata"].get("tags", ()))
            if tags - TAGS:
                yield f"{where}: the tags {sorted(tags - TAGS)} are not of this book"
            if set(cell["metadata"]) - {"tags"}:
                rest = sorted(set(cell["metadata"]) - {"tags"})
                yield f"{where}: the metadata {rest} are not of this book"
            if cell.get("outputs") or cell.get("execution_count"):
                yield f"{where}: an output that this build did not compute"


def floor_problems(root: Path) -> Iterator[str]:
    """Fewer pages, cells, checks or faults than were there once."""
    floors = json.loads((root / FLOORS).read_text("utf-8"))
    for what, count in counted(root).items():
        if count < floors[what]:
            yield f"{FLOORS}: {count} {what}, and there were {floors[what]}"


def counted(root: Path) -> dict[str, int]:
    """How much there is."""
    cells = pages = 0
    for page in listed(root):
        pages += 1
        path = root / f"{page}.ipynb"
        if path.is_file():
            cells += len(json.loads(path.read_text("utf-8"))["cells"])
    sys.path.insert(0, str(root / "shared"))
    from labcore.formulas import FORMULAS
    from labcore.identities import CHECKS, FAULTS

    return {
        "pages": pages,
        "cells": cells,
        "checks": len(CHECKS),
        "faults": len(FAULTS),
        "formulas": len(FORMULAS),
    }


# --- the site --------------------------------------------------------------------

ID = re.compile(r'\sid="([^"]+)"')
LINK = re.compile(r'<(?:a|link|script|img|source)\b[^>]*?\s(?:href|src)="([^"]*)"')
PICTURE = re.compile(r"<img\b[^>]*>|<svg\b[^>]*>")
UNFILLED = re.compile(
    r'<data></data>|<span class="pasted-(?:text|inline)">\s*(?:</span>|None|nan)'
    r"|<data>(?:None|nan)</data>"
    r"|<span class=\"pre\">(?:''|None|nan)</span>"  # an empty string, glued
)
# The mark of a heading's link is no picture, and the theme's own are hidden.
SILENT = re.compile(r'aria-hidden="true"|role="presentation"')


def site_problems(site: Path) -> Iterator[str]:
    """Links that lead nowhere, pictures without words, results that are missing."""
    pages = {
        path.relative_to(site).as_posix(): path.read_text("utf-8")
        for path in sorted(site.rglob("*.html"))
        if "vendor" not in path.parts and "_static" not in path.parts
    }
    ids = {name: set(ID.findall(text)) for name, text in pages.items()}
    for name, text in pages.items():
        for target in sorted(set(LINK.findall(text))):
            parts = urlsplit(target.replace("&amp;", "&"))
            if parts.scheme or parts.netloc:
                continue
            path = unquote(parts.path)
            other = (site / name).parent / path if path else site / name
            if not other.exists():
                yield f"{name}: the link {target} leads to no file"
                continue
            key = other.resolve().relative_to(site.resolve()).as_posix()
            anchor = unquote(parts.fragment)
            if anchor and key in ids and anchor not in ids[key]:
                yield f"{name}: the link {target} leads to no place on that page"
        for tag in PICTURE.findall(text):
            named = re.search(r'\s(?:alt|aria-label)="\s*[^"\s]', tag)
            if not named and not SILENT.search(tag):
                yield f"{name}: a picture without alt text: {tag[:90]}"
        for place in UNFILLED.findall(text):
            yield f"{name}: a result is missing: {place}"


def setup(app):
    app.connect("config-inited", unread_by_sphinx)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
