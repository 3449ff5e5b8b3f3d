"""Sphinx extension: switch sphinx-thebe off.

Jupyter Book always loads it. The book does not use it, and it puts a script into
each page that names another host and that is an error, because it stands there twice.
"""


def drop_style(app, pagename, templatename, context, doctree) -> None:
    context["css_files"] = [
        sheet
        for sheet in context.get("css_files", [])
        if "thebe" not in str(getattr(sheet, "filename", sheet))
    ]


def setup(app):
    for event, listeners in app.events.listeners.items():
        app.events.listeners[event] = [
            listener
            for listener in listeners
            if not getattr(listener.handler, "__module__", "").startswith(
                "sphinx_thebe"
            )
        ]
    app.connect("html-page-context", drop_style, priority=999)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
