"""Sphinx extension: find words of two characters in Chinese titles, and words in HTML.

Chinese puts no space between words. The stock index takes a whole run of characters as
one word and finds nothing inside it. Here a run is indexed as its overlapping pairs, in
the index and in what a reader types. English goes its usual way, with its stemmer.

What cells print as HTML is indexed by Sphinx with its tags cut out, so that the words
on both sides of a tag become one: the name of a check and its claim, an example and its
title. Here a tag parts words, except where it only says that a line may break.
"""

import html
import re

import sphinx.search
from docutils import nodes
from sphinx.search import IndexBuilder
from sphinx.search.en import SearchEnglish

HAN = r"\u3400-\u4dbf\u4e00-\u9fff"
PIECES = re.compile(rf"[{HAN}]+|[^\W{HAN}]+")


def split(text: str) -> list[str]:
    """Words, and pairs of Chinese characters.

    >>> split("KV缓存 and rope_layouts")
    ['KV', '缓存', 'and', 'rope_layouts']
    >>> split("查表变成向量")
    ['查表', '表变', '变成', '成向', '向量']
    """
    found = []
    for piece in PIECES.findall(text):
        if re.match(f"[{HAN}]", piece) and len(piece) > 1:
            found += [piece[i : i + 2] for i in range(len(piece) - 1)]
        else:
            found.append(piece)
    return found


def words(source: str) -> str:
    """The text of a piece of HTML, parted where its tags part it.

    >>> words("<td><code>F05</code>Two<wbr>fold</td><script>let x</script>").split()
    ['F05', 'Twofold']
    """
    seen = re.sub(r"(?s)<(style|script)\b.*?</\1>", " ", source)
    return html.unescape(re.sub(r"<[^<]+?>", " ", seen.replace("<wbr>", "")))


class Index(IndexBuilder):
    """The index of Sphinx, fed with texts instead of HTML."""

    def feed(self, docname, filename, title, doctree) -> None:
        doctree = doctree.deepcopy()  # the page itself is still to be written
        for raw in list(doctree.findall(nodes.raw)):
            if "html" in raw.get("format", "").split():
                raw.parent.replace(raw, nodes.Text(words(raw.astext())))
        super().feed(docname, filename, title, doctree)


class SearchEnglishAndHan(SearchEnglish):
    """English, and Chinese by pairs."""

    lang = "en-han"
    language_name = "English with Chinese in pairs"
    # The same rule for what a reader types.
    js_splitter_code = r"""
function splitQuery(query) {
  const han = /^[\u3400-\u4dbf\u4e00-\u9fff]/;
  const pieces = /[\u3400-\u4dbf\u4e00-\u9fff]+|[a-z0-9_\u00c0-\u024f\u0370-\u03ff]+/gi;
  return (query.match(pieces) || []).flatMap((piece) =>
    han.test(piece) && piece.length > 1
      ? Array.from(piece.slice(1), (character, i) => piece[i] + character)
      : [piece],
  );
}
"""

    def split(self, text: str) -> list[str]:
        return split(text)


def setup(app):
    app.add_search_language(SearchEnglishAndHan)
    sphinx.search.IndexBuilder = Index
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
