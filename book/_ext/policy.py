"""Sphinx extension: each page says what it may load, and from where.

A Content-Security-Policy stands first in the head of each page.  It allows the files of
this site, pictures that are written in the page, and the inline scripts and handlers
that the theme wrote, each by its hash.  It allows no other host, nothing that is
fetched, no frame and no plugin.  Styles may stand in the page: a plot places its marks
by ``style`` attributes.

``file:`` is named beside ``'self'``, since a page that is opened from a folder has no
origin.  On a server it allows nothing: no browser lets such a page load local files.
"""

from __future__ import annotations

import base64
import hashlib
from html.parser import HTMLParser

FIRST = '<meta charset="utf-8" />'
RUNS = {"", "text/javascript", "application/javascript", "module"}


class Inline(HTMLParser):
    """Collects the scripts and handlers that stand in a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self._inside = False
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.handlers += [v or "" for name, v in attrs if name.startswith("on")]
        kind = (names.get("type") or "").lower()
        if tag == "script" and "src" not in names and kind in RUNS:
            self.scripts.append("")
            self._inside = True

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


def source(script: str) -> str:
    """The source expression that allows this script and no other."""
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def policy(page: str) -> str:
    """The policy of one page."""
    inline = Inline(page)
    scripts = sorted({source(text) for text in inline.scripts + inline.handlers})
    if inline.handlers:
        scripts.insert(0, "'unsafe-hashes'")
    here = "'self' file:"
    return "; ".join(
        [
            "default-src 'none'",
            " ".join(["script-src", here, *scripts]),
            f"style-src {here} 'unsafe-inline'",
            f"img-src {here} data:",
            f"font-src {here}",
            "connect-src 'self'",
            f"form-action {here}",
            "base-uri 'none'",
        ]
    )


def guard(page: str) -> str:
    """Write the policy into a page, before anything that it rules."""
    if FIRST not in page:  # not a whole page
        return page
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(page)}" />'
    return page.replace(FIRST, f"{FIRST}\n    {meta}", 1)


def guard_pages(app) -> None:
    templates = getattr(app.builder, "templates", None)
    if templates is None:  # a builder without pages
        return
    render = templates.render
    templates.render = lambda name, context: guard(render(name, context))


def setup(app):
    # last: the hash is of what the reader gets
    app.connect("builder-inited", guard_pages, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
