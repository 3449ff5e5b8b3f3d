"""Sphinx extension: a formula, its function and its checks lead to one another.

A displayed formula that ``labcore.formulas`` prints gets an anchor with its name, and
in its box the names of functions and checks lead to the indexes, which lead back.
"""

import re

from docutils import nodes

CHECKS = "reference/checks"
FORMULAS = "reference/formulas"


def link(app, doctree) -> None:
    from labcore.formulas import FORMULAS as KNOWN
    from labcore.formulas import UNCHECKED

    names = {f.tex: f.id for f in (*KNOWN.values(), *UNCHECKED.values())}
    for display in list(doctree.findall(nodes.math_block)):
        name = names.get(" ".join(display.astext().split()))
        if name:
            anchor = nodes.target("", "", ids=[f"formula-{name}"])
            display.parent.insert(display.parent.index(display), anchor)
    up = "../" * (app.env.docname.count("/") - 1)
    for box in doctree.findall(nodes.admonition):
        if "identity" in box["classes"]:
            for literal in list(box.findall(nodes.literal)):
                literal.replace_self(linked(literal, up))


def linked(literal: nodes.literal, up: str) -> nodes.Node:
    """The name, as a link to the index that holds it."""
    from labcore.identities import CHECKS as KNOWN

    text = literal.astext()
    function = re.fullmatch(r"labcore\.(\w+)", text)
    if function:
        address = f"{up}{FORMULAS}.html#function-{function[1]}"
    elif text in KNOWN:
        address = f"{up}{CHECKS}.html#check-{text}"
    else:
        return literal
    reference = nodes.reference("", "", literal.deepcopy(), refuri=address)
    reference["internal"] = True
    return reference


def setup(app):
    app.connect("doctree-read", link)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
