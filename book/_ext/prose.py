"""Numbers that somebody typed into a sentence, where a run should have printed them.

A result in prose comes from ``say`` or ``glue``, a given from the role ``given``. What
is left must not hold a number: no decimal, percentage or integer, no number word beside
a word that names a result, and no ratio in words. Only these patterns pass.
"""

import re

ALLOWED = [
    r"\b(?:19\d|20[0-3])\d\b",  # years; 2048 is none
    r"\b(?:section|chapter|part|figure|table|step|version|appendix) [\dIVX.]+",
    r"\b(?:Python|NumPy|Debian|Jupyter Book|JupyterLab|MathJax|KaTeX) \d[\d.x]*",
    r"\b(?:UTF|ISO|RFC|IEEE|CC BY|ECMA|Unicode|JSON|HTTP|BM|MIT)[ -]?\d[\d.]*",
    r"\b(?:float|int|complex|bfloat|uint|fp|bf|e\dm)\d+\b",  # names of types
    r"\b\d+[- ]bits?\b",  # bit widths
    r"\b(?:top|top-p|pass|hit|recall|precision)[-@]\d+\b",
    r"\bL[12]\b|\b[123]-?D\b",
    r"^\s*\d+\smin\s*$",  # a cell of a plan, and nothing else in it
]
WORDS = (
    "zero|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|third|"
    "quarter|twice|double|triple|dozen|thirteen|fourteen|fifteen|sixteen|seventeen|"
    "eighteen|nineteen|(?:twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)"
    r"(?:-\w+)?|hundred|thousand|million"
)
# Words that name a result. A number word beside one tells what a run should tell.
RESULTS = (
    "accuracy|bits?|bytes?|checks|cost|decimals|delay|differences?|digits|entropy|"
    "errors?|factor|faults|faster|fewer|gap|higher|kB|larger|latency|length|less|lower|loss|"
    "margin|mass|MB|memory|milliseconds|minutes|misses|more|percent|points|"
    "probability|rate|ratio|recall|scores?|seconds|share|slower|smaller|speedup|steps|"
    "throughput|times|tokens|tolerance|total|weights?"
)
BESIDE = re.compile(
    rf"\b({WORDS}) (?:(?:the|of|of the|its|a|as|that|this|all) )?(?:{RESULTS})\b"
    rf"|\b(?:{RESULTS}) (?:is|are|was|were|of|by|to|at|about|exactly|only|falls to|"
    rf"rises to|is about|is exactly|of about|of exactly) (?:one )?({WORDS}|one)\b",
    flags=re.IGNORECASE,
)
COMPARED = re.compile(
    r"\b((?:half|twice|thrice) as) \w+"
    r"|\b((?:by|to) (?:a |an |one )?(?:half|third|quarter|tenth|hundredth))\b"
    r"(?! (?:a|the)\b)"  # half a step is no result
    r"|\b(orders? of magnitude)\b",
    flags=re.IGNORECASE,
)

COUNTS = (
    "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|"
    "(?:a |one )?(?:dozen|hundred|thousand|million)"
)
ORDINALS = "second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|hundredth"
# What happens to some of many: with "every third" in one sentence it makes a rate.
OUTCOMES = (
    r"accept\w*|br(?:eaks?|oken?)|caught|catch\w*|correct|fail\w*|fall\w*|found|green|"
    r"h[eo]lds?|hits?|keeps?|kept|los[et]s?|miss\w*|notice\w*|pass\w*|red|reject\w*|"
    r"right|solve\w*|surviv\w*|wrong"
)
RATIO = re.compile(
    rf"\b((?:{COUNTS}|once|twice|half) (?:in|out of)(?: every)? (?:{COUNTS}))\b"
    rf"|\b((?:{COUNTS})[- ](?:{ORDINALS}|quarter)s)\b",  # two thirds
    flags=re.IGNORECASE,
)
EVERY = re.compile(rf"\b(every (?:{ORDINALS}))\b", flags=re.IGNORECASE)
OUTCOME = re.compile(rf"\b(?:{RESULTS}|{OUTCOMES})\b", flags=re.IGNORECASE)

STRUCTURE = {"0", "1", "2"}  # of a formula: limits, exponents
NUMBER = re.compile(
    r"(?<![\w.\\-])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![ijnd]\b)\s?%?"
    r"|[\u00bc-\u00be\u2150-\u215e]"  # a fraction as one character
)


def typed_numbers(text: str, formulas: bool = False) -> list[tuple[str, str]]:
    """(number, sentence) for each number typed into a markdown text.

    In a text with formulas in plain letters, a hint for one, 0, 1 and 2 are structure.
    """
    found = []
    for sentence in sentences(plain(text)):
        for number in in_sentence(sentence):
            if not (formulas and number.strip("-+,") in STRUCTURE):
                found.append((number, " ".join(sentence.split())))
    return found


def in_sentence(sentence: str) -> list[str]:
    """The typed numbers of one sentence."""
    formulas = re.findall(r"\$([^$]+)\$", sentence)
    rest = re.sub(r"\$[^$]+\$", " x ", sentence)
    for pattern in ALLOWED:
        rest = re.sub(pattern, " ", rest)
    found = [match.strip() for match in NUMBER.findall(rest)]
    for formula in formulas:
        found += in_formula(formula)
    return found + in_words(rest)


def in_formula(formula: str) -> list[str]:
    """Numbers in inline mathematics, without those that are structure."""
    bare = re.sub(r"\\\w+", " ", formula)
    numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", bare.replace("{", " "))
    return [number for number in numbers if number not in STRUCTURE]


def in_words(sentence: str) -> list[str]:
    """Number words with a result word beside them, and ratios in words."""
    text = " ".join(sentence.replace("*", "").split())
    text = re.sub(r"\bhalf[- ]precision", " - ", text)
    patterns = (BESIDE, RATIO, COMPARED)
    found = [m[m.lastindex or 0] for p in patterns for m in p.finditer(text)]
    if OUTCOME.search(EVERY.sub(" ", text)):
        found += [m[1] for m in EVERY.finditer(text)]
    return [words.casefold() for words in found]


def plain(text: str) -> str:
    """The text that is read: without code, roles, displays, targets and markup."""
    text = re.sub(r"^(```+|~~~+).*?^\1\s*$", "", text, flags=re.S | re.M)
    text = re.sub(r"<!--.*?-->|\$\$.*?\$\$|<[^<>\n]+>", " ", text, flags=re.S)
    text = re.sub(r"\{math\}`([^`]*)`", r"$\1$", text)
    text = re.sub(r"(?:\{[\w:+-]+\})?(`+).*?\1", " x ", text, flags=re.S)
    text = re.sub(r"^\s*(?:\*\*)?\d+\.(?:\*\*)? ", "", text, flags=re.M)  # 1. 2. 3.
    text = re.sub(r"^\$\\def.*$|^:[\w-]+:.*$|^%.*$", "", text, flags=re.M)
    return re.sub(r"\]\([^)\s]*\)|\]\[[^\]]*\]|\]\{[^}]*\}", " ", text)


def sentences(text: str) -> list[str]:
    """Split at the ends of sentences, cells of tables and paragraphs."""
    parts = re.split(r"(?<=[.!?:;])\s+|\n\s*\n|\n(?=\s*[-*|:#] ?)|\|", text)
    return [part for part in parts if part.strip()]
