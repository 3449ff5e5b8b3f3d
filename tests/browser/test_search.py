"""The search of the built site, from the disk: what a reader types finds its page."""

import re
from urllib.parse import quote

import pytest
from labcore.examples import EXAMPLES
from labcore.identities import CHECKS

from tests.browser.looks import PAGES, SITE, listen

HOME = {name.rpartition("/")[2].removesuffix(".html"): name for name in PAGES}
EXAMPLE = "book/reference/examples.html"
CHECK = "book/reference/checks.html"

# What is typed, and the name of a page that has to be in the list.
TYPED = {
    "softmax": "softmax-summaries",
    "rotary": "rope",
    "delta_attention": "writes-and-decay",
    "attention": "attention-and-caching",
    "rope": "rope",
    "speculative decoding": "speculative-decoding",
    "Laplacian temperature": "sigma-and-entropy",
}
IDS = ["F05", "Q012", "X01", "R13-07", "S31"]
CHECK_IDS = ["causal_prefix_reads", *sorted(CHECKS)[::80]]
# Words and compounds of the Chinese titles, as a reader of Chinese would type them.
CHINESE = [
    "查表",
    "向量",
    "缓存",
    "概率",
    "梯度",
    "掩码",
    "温度",
    "量化",
    "倒数排名融合",
    "注意力的梯度",
    "因果掩码",
    "两种归一化",
    "平移不改变softmax",
    "草稿被拒",
    "训练状态",
    "查询头",
    "DPO比较",
]


@pytest.fixture(scope="module")
def find(chromium):
    """find(query): the pages that the search lists."""
    context = chromium.new_context()
    page = context.new_page()
    complaints: list[str] = []
    listen(page, complaints)

    def pages(query: str) -> set[str]:
        page.goto(f"{(SITE / 'search.html').as_uri()}?q={quote(query)}")
        page.get_by_text(re.compile("^(Search finished|Your search did)")).wait_for()
        links = page.locator("#search-results ul.search > li > a")
        targets = links.evaluate_all("all => all.map(a => a.getAttribute('href'))")
        return {re.split("[?#]", target)[0] for target in targets}

    yield pages
    context.close()
    assert complaints == []


@pytest.mark.parametrize("query", TYPED)
def test_words_and_functions(find, query):
    assert HOME[TYPED[query]] in find(query)


@pytest.mark.parametrize("id", IDS)
def test_an_example_by_its_number(find, id):
    assert id in EXAMPLES
    assert EXAMPLE in find(id)


@pytest.mark.parametrize("id", CHECK_IDS)
def test_a_check_by_its_name(find, id):
    assert {CHECK, HOME[CHECKS[id].chapter]} <= find(id)


@pytest.mark.parametrize("query", CHINESE)
def test_words_and_compounds_of_a_chinese_title(find, query):
    assert EXAMPLE in find(query)


def test_a_chinese_title_as_a_whole(find):
    titles = [example.title_zh for example in EXAMPLES.values() if example.title_zh]
    assert len(titles) >= 30
    assert [title for title in titles[::5] if EXAMPLE not in find(title)] == []


@pytest.mark.parametrize("query", ["xqzvkw", "囍龘", "向量龘龘", "softmax xqzvkw"])
def test_what_is_nowhere_is_not_found(find, query):
    assert find(query) == set()
