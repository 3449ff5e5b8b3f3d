"""The look of an output in JupyterLab, where the style sheet of the book is missing.

Each HTML output brings this small style along while it is made in a live notebook. The
server names the notebook in the environment of its kernel; a build of the book does
not, so that its pages hold none of this.
"""

from __future__ import annotations

import os

# The colours are those of the book's style sheet; a test compares them. The rules name
# JupyterLab's own class twice over, to come before what it says about tables.
STYLE = """
.jp-OutputArea-output.jp-RenderedHTMLCommon {
  --paper: var(--jp-layout-color0); --ink: var(--jp-content-font-color0);
  --ink2: #5a5852; --line: #8b877c; --rule: #d9d5cb; --mark: #fff1b3;
  --query: #1d5fc2; --key: #774a04; --value: #1a7a5f; --state: #5f1a72;
  --broken: #c4313b; --holds: #565d66;
}
[data-jp-theme-light="false"] .jp-OutputArea-output.jp-RenderedHTMLCommon {
  --ink2: #b3afa6; --line: #7d7a72; --rule: #34373c; --mark: #3b3310;
  --query: #62a2f4; --key: #edc25c; --value: #7eeccb; --state: #dcbffb;
  --broken: #f4736b; --holds: #a3abb5;
}
.jp-OutputArea-output.jp-RenderedHTMLCommon {
  & .nb { white-space: nowrap; }
  & data { border-bottom: 1px dotted var(--line); }
  & mark { background: var(--mark); color: inherit; padding: 0 .2em; }
  & :is(summary, .facts, figcaption, caption, .scrub-caption, legend, .ticks) {
    color: var(--ink2);
  }
  & .facts { display: flex; flex-wrap: wrap; gap: 0 1.4em; }
  & .vh { position: absolute; clip-path: inset(50%); }
  & .holds { color: var(--holds); }
  & .broken { color: var(--broken); font-weight: 600; }
  & .holds::before { content: "\\25CF\\A0"; }
  & .broken::before { content: "\\2715\\A0"; }
  & pre.counter { white-space: pre-wrap; overflow-wrap: anywhere; }
  & table { margin: .6em 0; border-collapse: collapse; }
  & caption { text-align: left; padding-bottom: .4em; }
  & thead { border: 0; border-top: 2px solid var(--ink); }
  & tr:nth-child(n), & tr:nth-child(n):hover { background: none; }
  & tr { border-bottom: 1px solid var(--rule); }
  & :is(td, th) {
    padding: .35em 1.2em .35em 0; text-align: left; vertical-align: baseline;
    font-weight: 400;
  }
  & td > code { color: var(--ink2); background: none; padding: 0; }
  & :is(.n, .nums *) { text-align: right; white-space: nowrap; }
  & .nums :first-child { text-align: left; }
  & .n.said { white-space: normal; }
  & .faults :is(ul, li) { margin: 0; padding: 0; list-style: none; }
  & .bad td:nth-child(3) { color: var(--broken); font-weight: 600; }
  & .strip { overflow: visible; fill: none; stroke: var(--line); }
  & .strip .tol { stroke: var(--ink); stroke-width: 1.6; }
  & .strip .err { fill: var(--holds); stroke: none; }
  & .strip :is(.gap, .bad) { stroke: var(--broken); stroke-width: 1.6; }
  & .scale { display: flex; justify-content: space-between; width: 120px; }
  & .fig { --t: .84; margin: .6em 0; }
  & .plot { display: block; width: 100%; max-width: 560px; height: auto; }
  & .plot text {
    font-family: var(--jp-ui-font-family); paint-order: stroke;
    stroke: var(--paper); stroke-width: 2.5px; stroke-linejoin: round;
  }
  & figcaption { max-width: 40em; margin: .6em 0 .3em; }
  & :is(figcaption, .fig) b { color: var(--ink); }
  & .scrub {
    display: flex; flex-wrap: wrap; max-width: 560px; margin: 0; padding: 0; border: 0;
  }
  & .scrub input { flex: 1 1 1.8rem; max-width: 3.4rem; margin: .4em 0; }
  & .ticks { display: flex; order: 1; width: 100%; }
  & .ticks label { flex: 1 1 0; max-width: 3.4rem; text-align: center; }
  & .frame { order: 2; width: 100%; }
  & .scrub :not(:checked) + .frame { display: none; }
  & .read { display: flex; flex-wrap: wrap; gap: 0 1.6em; margin: .6em 0; }
}
"""


def dressed(html: str) -> str:
    """An HTML output, with the style in front where a live notebook shows it."""
    live = "JPY_SESSION_NAME" in os.environ
    return f"<style>{STYLE}</style>{html}" if live else html
