"""Sphinx extension: a page loads what it uses, and waits for little of it.

* A script or stylesheet that serves one kind of content, as copy buttons or tabs, goes
  from the pages without that content.
* The other scripts are deferred: a page is shown before they run.
* The text fonts are asked for at once: text that is first set in another face moves.
  From the disk a browser refuses that, and asks later.
* After all pages are written, each stylesheet of the theme loses the rules that can
  apply to no page. A rule is kept unless each of its selectors names a class or an id
  that stands in no page and in no script that a page asks for.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import unused

# Part of a file's name -> what a page holds if the file serves it.
SERVES = {
    "togglebutton": r'class="(?:[^"]* )?(?:toggle|dropdown|tag_hide-\w+)[ "]',
    "design-tabs": r'class="(?:[^"]* )?sd-tab',
    "sphinx-design": r'class="(?:[^"]* )?sd-',
    "clipboard": r"<pre",
    "copybutton": r"<pre",
    "mystnb": r'class="(?:[^"]* )?(?:cell|output)[ "]',
    "math.css": r"<mjx-",
    "quiz.js": r'class="(?:[^"]* )?quiz',
}
# The toggle buttons are set by lines of script in the page itself.
INLINE = {"toggle": "togglebutton"}
AT_ONCE = "documentation_options.js"  # a line of script in the page needs it
OURS = {"lab.css"}
ASK_FOR_FONTS = """
if (location.protocol !== "file:")
  for (const name of ["latin-wght-normal", "latin-wght-italic"]) {
    const href = `vendor/stix-two-text/${name}.woff2`;
    document.head.append(
      Object.assign(document.createElement("link"), {
        rel: "preload",
        as: "font",
        type: "font/woff2",
        crossOrigin: "anonymous",
        href: document.documentElement.dataset.content_root + href,
      }),
    );
  }
"""


# --- what one page loads ---------------------------------------------------------


def serves(name: str, body: str) -> bool:
    """Whether a file, or a line of script, serves something in this page."""
    return all(
        re.search(pattern, body) for part, pattern in SERVES.items() if part in name
    )


def told(asset) -> str:
    """The name of a file; of a line of script, the name of the file that reads it."""
    if asset.filename:
        return str(asset.filename).rpartition("/")[2]
    line = asset.attributes.get("body") or ""
    return next((file for part, file in INLINE.items() if part in line), "")


def deferred(script):
    if not script.filename or told(script) == AT_ONCE:
        return script
    attributes = script.attributes | {"defer": "defer"}
    return type(script)(script.filename, priority=script.priority, **attributes)


def lighten(app, pagename, templatename, context, doctree) -> None:
    if doctree is None:  # the theme's own pages, as that of the search
        return
    body = context["body"]
    context["metatags"] += f"\n<script>{ASK_FOR_FONTS}</script>"
    for key in ("css_files", "script_files"):
        kept = [file for file in context[key] if serves(told(file), body)]
        context[key] = kept if key == "css_files" else [deferred(s) for s in kept]


# --- the rules of a stylesheet ---------------------------------------------------

COMMENT = re.compile(r"/\*.*?\*/", re.S)
LICENCE = re.compile(r"/\*!|copyright|licen[cs]e", re.I)
# What may hold a brace, a semicolon or a comma without meaning it, or one of them.
PIECE = re.compile(
    r"""/\*.*?\*/|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|url\([^"')]*\)|[{};]""", re.S
)
GROUPS = ("@media", "@supports", "@layer", "@container")
NAME = re.compile(r"[.#]((?:\\.|[\w-])+)")
INNERMOST = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")


def rules(css: str) -> Iterator[tuple[str, str | None]]:
    """(what stands before the braces, what stands in them), or (a statement, None)."""
    start = opened = depth = 0
    for piece in PIECE.finditer(css):
        if piece[0] == "{":
            depth += 1
            if depth == 1:
                opened = piece.end()
        elif piece[0] == "}":
            depth -= 1
            if depth == 0:
                yield css[start : opened - 1].strip(), css[opened : piece.start()]
                start = piece.end()
        elif piece[0] == ";" and depth == 0:
            yield css[start : piece.end()].strip(), None
            start = piece.end()


def pruned(css: str, known: "Known") -> str:
    """The rules of a stylesheet that can apply; licences stay, other comments go."""
    licences = [text for text in COMMENT.findall(css) if LICENCE.search(text)]
    kept = []
    for head, body in rules(COMMENT.sub("", css)):
        if body is None:
            kept.append(head)
        elif head.startswith(GROUPS):
            inside = pruned(body, known)
            kept += [f"{head}{{{inside}}}"] if inside else []
        elif head.startswith("@"):
            kept.append(f"{head}{{{body}}}")
        elif usable := [one for one in selectors(head) if known.all_of(one)]:
            kept.append(f"{','.join(usable)}{{{body}}}")
    return "\n".join([*licences, *kept])


def selectors(head: str) -> list[str]:
    """A list of selectors, split at its commas but not at those in brackets."""
    masked = head
    while (shorter := INNERMOST.sub(lambda m: "_" * len(m[0]), masked)) != masked:
        masked = shorter
    ends = [comma.start() for comma in re.finditer(",", masked)] + [len(head)]
    starts = [0, *(end + 1 for end in ends)]
    return [head[a:b].strip() for a, b in zip(starts, ends, strict=False)]


class Known:
    """The names that pages and scripts use, of classes, ids and other things."""

    def __init__(self, pages: Iterable[str], scripts: Iterable[str]) -> None:
        self.names: set[str] = set()
        for page in pages:
            for value in re.findall(r'\s(?:class|id)="([^"]*)"', page):
                self.names.update(value.split())
            for script in re.findall(r"<script\b[^>]*>([^<]+)", page):
                self.names.update(words(script))
        for script in scripts:
            self.names.update(words(script))
        # a script may put a name together: "bs-" + "tooltip-" + where
        self.beginnings = tuple(n for n in self.names if re.fullmatch(r"\w.+-", n))

    def all_of(self, selector: str) -> bool:
        """Whether every class and id is known; what stands in brackets may be not."""
        while (bare := INNERMOST.sub("", selector)) != selector:
            selector = bare
        names = (re.sub(r"\\(.)", r"\1", name) for name in NAME.findall(selector))
        return all(n in self.names or n.startswith(self.beginnings) for n in names)


def words(script: str) -> list[str]:
    return re.findall(r"[A-Za-z_][\w-]*", script)


# --- the stylesheets of the site -------------------------------------------------


IMPORT = re.compile(r'@import (?:url\()?"([^":]+)"\)?;')
ADDRESS = re.compile(r"""url\((["']?)(?!["']?(?:[a-z]+:|/|#))""")


def with_imports(sheet: Path) -> str:
    """The text of a stylesheet, with those that it imports in their places."""

    def imported(found: re.Match[str]) -> str:
        folder = found[1].rpartition("/")[0]
        text = with_imports(sheet.parent / found[1])
        return ADDRESS.sub(rf"url(\1{folder}/", text) if folder else text

    return IMPORT.sub(imported, sheet.read_text(encoding="utf-8"))


def prune_site(app, exception) -> None:
    """Prune the stylesheets, and name the new ones in the pages by their contents."""
    if exception is not None or app.builder.name != "html":
        return
    site, static = Path(app.outdir).resolve(), Path(app.outdir, "_static").resolve()
    texts = {page: page.read_text("utf-8") for page in pages(site)}
    scripts = [file for file in unused.reached(site) if file.suffix == ".js"]
    known = Known(texts.values(), (script.read_text("utf-8") for script in scripts))
    versions = {}
    for sheet in sorted(static.rglob("*.css")):
        if sheet.name not in OURS:
            css = pruned(with_imports(sheet), known)
            sheet.write_text(css, encoding="utf-8")
            digest = hashlib.sha256(css.encode()).hexdigest()[:8]
            versions[sheet.relative_to(static).as_posix()] = digest
    names = "|".join(map(re.escape, versions))
    link = re.compile(rf'(href="[^"]*_static/({names}))(?:\?[^"]*)?"')
    for page, text in texts.items():
        new = link.sub(lambda found: f'{found[1]}?v={versions[found[2]]}"', text)
        if new != text:
            page.write_text(new, encoding="utf-8")


def pages(site: Path) -> list[Path]:
    """The pages that the builder wrote, not those that came from elsewhere."""
    left_out = {"_static", "_sources", "vendor"}
    found = site.rglob("*.html")
    return sorted(p for p in found if p.relative_to(site).parts[0] not in left_out)


def setup(app):
    app.connect("html-page-context", lighten, priority=999)
    app.connect("build-finished", prune_site, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
