r"""Mathematics rendered ahead of time.

Every formula of the book stands, already rendered, in ``math_store.json`` beside this
file.  The page gets finished HTML and a hidden MathML copy; no script sets formulas in
the browser, and a build needs Python only.  ``make math`` renders what is missing.

* ``$...$``, ``$$...$$``, the math directive, amsmath environments and ``text/latex``
  outputs reach this module as math nodes.
* HTML printed by code carries inline formulas as
  ``<span class="math notranslate nohighlight">\(...\)</span>``, which JupyterLab sets
  with its own MathJax and this module replaces in the built page.
* A formula of definitions only (``\def``, ``\newcommand``) is there for JupyterLab and
  renders to nothing: the book's macros are those of ``mathrender.mjs``.

A formula that is not in the store fails the build, which names it; so does, in a build
of all pages, a store entry that no page uses.  With ``MATH_COLLECT=file`` set, the
build writes the list of all formulas to that file instead of failing.
"""

import hashlib
import html
import json
import os
import re
from pathlib import Path

from docutils import nodes
from sphinx.errors import SphinxError
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

STORE = Path(__file__).with_name("math_store.json")
IN_HTML = re.compile(
    r'<(span|div) class="math notranslate nohighlight">\s*\\[(\[](.*?)\\[)\]]\s*</\1>'
    r"([,.;:!?)\]’”…]*)",
    re.S,
)
TAIL = re.compile(r"(?:[-–]\w+)?[,.;:!?)\]’”…]*")
DEFINITION = re.compile(
    r"\s*\\(?:def\s*\\[A-Za-z]+(?:#\d)*"
    r"|(?:new|renew|provide)command\*?\s*\{?\\[A-Za-z]+\}?(?:\[\d\])?"
    r"|DeclareMathOperator\*?\s*\{?\\[A-Za-z]+\}?)\s*(?=\{)"
)
log = logging.getLogger(__name__)


# ---- formulas and their keys -------------------------------------------------


def key(tex, display):
    """The name of a formula in the store."""
    return hashlib.sha256(
        f"{'display' if display else 'inline'}\n{tex}".encode()
    ).hexdigest()[:16]


def digest(file):
    """A hash of a file, empty where there is none."""
    return hashlib.sha256(file.read_bytes()).hexdigest()[:16] if file.exists() else ""


def source_of(node):
    """(tex, display) of a math node, as it is rendered and stored."""
    tex = node.astext().strip()
    if not isinstance(node, nodes.math_block):
        return tex, False
    if not node.get("nowrap"):
        rows, aligned = rows_of(tex)
        if len(rows) > 1 or aligned:
            mark = "" if aligned else "&"
            tex = r" \\ ".join(mark + row for row in rows)
            tex = rf"\begin{{aligned}} {tex} \end{{aligned}}"
    return tex, True


def rows_of(tex):
    """The lines of a display outside any environment, and whether they are aligned.

    A blank line separates like ``\\\\``: Sphinx writes several equations that way.
    """
    rows, depth, aligned = [""], 0, False
    for piece in re.split(r"(\\begin\b|\\end\b|\\\\|\\[{}&]|[{}&]|\n\s*\n)", tex):
        depth += {r"\begin": 1, "{": 1, r"\end": -1, "}": -1}.get(piece, 0)
        if depth == 0 and (piece == r"\\" or piece.isspace() and "\n" in piece):
            rows.append("")
        else:
            aligned |= depth == 0 and piece == "&"
            rows[-1] += piece
    return [row.strip() for row in rows if row.strip()], aligned


def only_definitions(tex):
    """Whether ``tex`` defines macros and shows nothing."""
    rest = tex.strip()
    while found := DEFINITION.match(rest):
        depth = 0
        for end in range(found.end(), len(rest)):
            depth += {"{": 1, "}": -1}.get(rest[end], 0) * (rest[end - 1] != "\\")
            if depth == 0:
                break
        rest = rest[end + 1 :].strip()
    return not rest


class Formulas:
    """The store, and what this build has seen of it."""

    def __init__(self):
        self.store = {}
        if STORE.exists():
            self.store = json.loads(STORE.read_text(encoding="utf-8"))["formulas"]
        self.seen = {}  # key -> (tex, display, first page)
        self.missing = []  # (page, tex)
        self.pages = set()

    def use(self, tex, display, page):
        name = key(tex, display)
        self.seen.setdefault(name, (tex, display, page))
        if name not in self.store and (page, tex) not in self.missing:
            self.missing.append((page, tex))

    def show(self, tex, display, tail=""):
        """The HTML of a formula; plain TeX where a build that fails anyway lacks it."""
        entry = self.store.get(key(tex, display))
        body = entry["html"] if entry else f"<code>{html.escape(tex)}</code>"
        if display:
            wide = ' tabindex="0"' if entry and entry.get("wide") else ""
            return body.replace("<mjx-container", f"<mjx-container{wide}", 1)
        body = f'<span class="math">{body}</span>'
        # an inline formula and the punctuation after it stay on one line
        return f'<span class="nb">{body}{tail}</span>' if tail else body


formulas = Formulas()


# ---- hooks -------------------------------------------------------------------


def every_page(app, env, added, changed, removed):
    """A collecting build looks at all pages, changed or not."""
    return env.found_docs if os.environ.get("MATH_COLLECT") else ()


def prepare_page(app, doctree, docname):
    """Look up every formula of a resolved page; put those of HTML outputs in place."""
    if app.builder.format != "html":
        return
    formulas.pages.add(docname)
    for node in list(
        doctree.findall(lambda n: isinstance(n, (nodes.math, nodes.math_block)))
    ):
        tex, display = source_of(node)
        if only_definitions(tex):
            parent = node.parent
            parent.remove(node)
            if isinstance(parent, nodes.paragraph) and not parent.astext().strip():
                parent.parent.remove(parent)
            continue
        if isinstance(node.parent, nodes.title):
            log.warning(
                "mathematics in a heading (%s): write it in words",
                tex,
                location=node,
            )
        formulas.use(tex, display, docname)
        if not display:
            keep_tail(node)
    for node in doctree.findall(nodes.raw):
        if (
            "html" in node.get("format", "").split()
            and 'class="math notranslate' in node.astext()
        ):
            text = IN_HTML.sub(lambda m: from_html(m, docname), node.astext())
            node.children = [nodes.Text(text)]
            node.rawsource = text


def keep_tail(node):
    """Move the punctuation after an inline formula into the formula's own box."""
    following = node.next_node(nodes.Text, descend=False, siblings=True)
    at = node.parent.index(node)
    if following is None or node.parent.index(following) != at + 1:
        return
    text = following.astext()
    tail = TAIL.match(text).group()
    if tail:
        node["tail"] = tail
        node.parent.replace(following, nodes.Text(text[len(tail) :]))


def from_html(match, docname):
    tag, tex, tail = match.groups()
    tex, display = html.unescape(tex).strip(), tag == "div"
    formulas.use(tex, display, docname)
    shown = formulas.show(tex, display, html.escape(tail, quote=False))
    return f'<div class="math">{shown}</div>{tail}' if display else shown


def finish(app, exception):
    """Fail on formulas without a rendering; warn of renderings without a formula."""
    if exception is not None or app.builder.format != "html":
        return
    target = os.environ.get("MATH_COLLECT")
    if target:
        rows = sorted(formulas.seen.values())
        Path(target).write_text(
            json.dumps(rows, ensure_ascii=False, indent=0), encoding="utf-8"
        )
        log.info("mathhtml: %d formulas written to %s", len(rows), target)
        return
    if formulas.missing:
        rows = "\n".join(
            f"  {app.env.doc2path(page, base=False)}: {tex}"
            for page, tex in formulas.missing
        )
        raise SphinxError(f"formulas without a rendering; run `make math`:\n{rows}")
    if formulas.pages >= app.env.found_docs and app.builder.name == "html":
        for name in sorted(formulas.store.keys() - formulas.seen.keys()):
            log.warning(
                "rendered formula that no page uses; run `make math`: %s",
                formulas.store[name]["tex"],
            )


# ---- the renderer ------------------------------------------------------------


def visit_inline(self, node):
    self.body.append(formulas.show(*source_of(node), self.encode(node.get("tail", ""))))
    raise nodes.SkipNode


def visit_block(self, node):
    numbered = bool(node.get("number")) and not node.get("nowrap")
    self.body.append(
        self.starttag(node, "div", CLASS="math numbered" if numbered else "math")
    )
    self.body.append(formulas.show(*source_of(node)))
    if numbered:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, "Link to this equation")
        self.body.append("</span>")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def setup(app):
    # a new store rewrites the pages, and so does the build after a collecting one
    state = "collecting" if os.environ.get("MATH_COLLECT") else digest(STORE)
    app.add_config_value("mathhtml_store", state, "html")
    app.add_html_math_renderer("mathhtml", (visit_inline, None), (visit_block, None))
    app.connect(
        "config-inited",
        lambda app, config: setattr(config, "html_math_renderer", "mathhtml"),
    )
    app.connect("env-get-outdated", every_page)
    app.connect("doctree-resolved", prepare_page, priority=900)
    app.connect("build-finished", finish)
    app.add_css_file("../vendor/math/math.css")
    return {
        "version": "1",
        "parallel_read_safe": True,
        "parallel_write_safe": True,
    }
