"""What the theme and docutils write into a page, put right after rendering.

* The theme's icon script (1.5 MB) goes: section 12 of lab.css draws the icons, and with
  it the icon font (0.2 MB) is never asked for.  The tag stands in a template of the
  theme's own, so it is taken out of the rendered page.
* Three attributes that accessibility checkers object to: the search button's label
  hides its visible words, the logo stands in no landmark, and references have a role
  that no list may hold.
* The theme calls its own default, no mode, an error in the console: it is named "auto".
"""

import re

REPAIRS = [
    (
        re.compile(
            r"\s*(?:<!-- So that users can add custom icons -->\s*)?"
            r'<script src="[^"]*scripts/fontawesome\.js[^"]*"></script>'
        ),
        "",
    ),
    (
        re.compile(
            r'(<button class="btn search-button-field[^>]*?) aria-label="[^"]*"'
        ),
        r"\1",
    ),
    (
        re.compile(
            r'<div class="sidebar-primary-item">(\s*<a class="navbar-brand logo)'
        ),
        r'<div class="sidebar-primary-item" role="navigation" aria-label="Home">\1',
    ),
    (re.compile(r'role="doc-biblioentry"'), 'role="listitem"'),
    (
        re.compile(r'(dataset\.mode = localStorage\.getItem\("mode"\) \|\| )""'),
        r'\1"auto"',
    ),
]


def repair(page: str) -> str:
    for wrong, right in REPAIRS:
        page = wrong.sub(right, page)
    return page


def repair_pages(app):
    templates = getattr(app.builder, "templates", None)
    if templates is None:  # a builder without pages
        return
    render = templates.render
    templates.render = lambda name, context: repair(render(name, context))


def setup(app):
    app.connect("builder-inited", repair_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
