"""How well the text of pages is found, by kind of page: our extractor, `article`, and trafilatura as it comes.

F1 of the words of a page (each as often as it stands there) against those that are for reading in it, the mean over the
pages of a kind. Two sets: 63 pages written after the layouts of common systems, of seven kinds, and the real pages that
Mozilla tests its reader view with (`proof.ground.text_pages`). Then whether the Markdown of real documentation lacks a
heading, a table or a block of code: of those that the extractor has chosen (`lost_blocks`), and, so that it does not
judge its own choice, of those that stand in the HTML outside of navigation and footers (`missing_blocks`).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable

import trafilatura
from selectolax.lexbor import LexborHTMLParser, LexborNode

from lycosa.web import extract_article, extract_readable
from lycosa.web.markup import clean
from lycosa.web.outline import HEADINGS, Node, Outline
from proof import Bar, Experiment, Run
from proof.ground.peers import package
from proof.ground.text_pages import GoldPage, mozilla_pages, written_pages

URL, TYPE = "https://host.example/", "text/html; charset=utf-8"
OURS, ARTICLE, OTHER = "main", "article", "trafilatura"
NEAR = 0.03  # how much less than trafilatura is near enough
COMPARED = ("documentation", "shop", "forum", "listing")
PACKAGES = ("postgresql-doc-15", "python3.11-doc", "openjdk-17-doc", "git-doc", "apache2-doc", "libboost1.81-doc")
PAGES_EACH, QUICK_PAGES_EACH = 100, 30
LOST = "headings, tables and blocks of code lost in Markdown"
MISSING = "headings, tables and blocks of code of the HTML that Markdown lacks"
_AROUND = "nav, footer, header, aside, script, style, [class^=nav], [class*=sidebar], [role=navigation]"
_LEAST_ROWS = 3  # of a table that is more than layout
_WORD = re.compile(r"\w+")
_ROW = re.compile(r"^[-> \t0-9.]*\|.*", re.M)
_LINK_END = re.compile(r"\]\([^()]*(?:\([^()]*\)[^()]*)*\)")


def _trafilatura(page: GoldPage) -> str:
    return trafilatura.extract(page.body.decode("utf-8", "replace"), include_comments=False) or ""


EXTRACTORS: dict[str, Callable[[GoldPage], str]] = {
    OURS: lambda page: extract_readable(page.body, url=URL, content_type=TYPE).text,
    ARTICLE: lambda page: extract_article(page.body, url=URL, content_type=TYPE).text,
    OTHER: _trafilatura,
}


def f1(found: str, gold: str) -> float:
    """The harmonic mean of how many of the words found are right, and how many of the right ones are found."""
    one, other = (Counter(_WORD.findall(text.lower())) for text in (found, gold))
    return 2 * (one & other).total() / max(1, one.total() + other.total())


def lost_blocks(body: bytes) -> Counter[str]:
    """Blocks of the main part that the Markdown of a page lacks, by kind."""
    outline = Outline(clean(body))
    blocks: Counter[str] = Counter()
    nodes: list[Node] = []
    words: dict[int, str] = {}
    for run in outline.selection():
        for item in run:
            if type(item) is Node:
                nodes.append(item)
                words[id(item)] = ""
            elif item is None and nodes:
                node = nodes.pop()
                text = words.pop(id(node)).strip()
                if nodes:
                    words[id(nodes[-1])] += text
                is_nested = any(each.tag in HEADINGS or each.tag in ("pre", "td", "th") for each in nodes)
                if text and not is_nested:
                    blocks["headings"] += node.tag in HEADINGS
                    blocks["code"] += node.tag == "pre"
                    blocks["tables"] += node.tag == "table" and not node.is_layout
            elif type(item) is str and nodes:
                words[id(nodes[-1])] += item
    markdown = extract_readable(body, url=URL, content_type=TYPE, wants_markdown=True).markdown
    written = Counter(
        headings=len(
            re.findall(
                r"^[> \-0-9.]*#{1,6} ",
                re.sub(r"^[-> \t0-9.]*(```+).*?^[> \t]*\1$", "", markdown, flags=re.M | re.S),
                re.M,
            )
        ),
        code=len(re.findall(r"^[-> \t0-9.]*```", markdown, re.M)) // 2,
        tables=len(re.findall(r"^[-> \t0-9.]*\|(?: --- \|)+$", markdown, re.M)),
    )
    return blocks - written


def missing_blocks(body: bytes) -> Counter[str]:
    """Blocks that stand in the main part of the HTML and whose words do not stand in the Markdown in this order."""
    tree = LexborHTMLParser(body)
    for part in tree.css(_AROUND):
        is_head = part.tag == "header" and part.css_first("h1, h2, h3") is not None
        if not is_head and part.tag not in ("html", "body"):
            part.decompose()
    main = tree.css_first("main, [role=main]") or tree.body
    markdown = extract_readable(body, url=URL, content_type=TYPE, wants_markdown=True).markdown
    there = _words_alone(_LINK_END.sub("", markdown))
    missing: Counter[str] = Counter()
    for kind, selector in (("headings", "h1, h2, h3, h4, h5, h6"), ("code", "pre")):
        missing[kind] = sum(_words_alone(each.text()) not in there for each in main.css(selector)) if main else 0
    rows = "\n".join(_words_alone(_LINK_END.sub("", line)) for line in _ROW.findall(markdown))
    for table in main.css("table") if main else ():
        missing["tables"] += (head := _head_words(table)) != "" and head not in rows
    return +missing


def _head_words(table: LexborNode) -> str:
    """The words in the row of headings of a table of data; nothing for one that is there for the layout."""
    rows = table.css("tr")
    is_layout = len(rows) < _LEAST_ROWS or table.css_first("table table, h1, h2, h3, h4, h5, h6") is not None
    cells = [] if is_layout else [cell for cell in rows[0].iter() if cell.tag in ("td", "th")]
    is_head = len(cells) > 1 and all(cell.tag == "th" for cell in cells)
    return _words_alone("".join(cell.text() for cell in cells)) if is_head else ""


def _words_alone(text: str) -> str:
    return "".join(_WORD.findall(text.replace("_", " ").lower()))


def measure(run: Run) -> None:
    scores: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    pages = [*written_pages(1 if run.quick else 3), *mozilla_pages()][:: 3 if run.quick else 1]
    run.setting("pages", len(pages))
    with run.progress(len(pages), "pages") as step:
        for page in pages:
            for name, extract in EXTRACTORS.items():
                scores[page.kind][name].append(f1(extract(page), page.text))
            step.advance()
    means = {kind: {name: sum(each) / len(each) for name, each in by.items()} for kind, by in scores.items()}
    rows: list[tuple[str | int | float, ...]] = []
    for kind, by in means.items():
        rows.append((kind, len(scores[kind][OURS]), *(round(by[name], 3) for name in EXTRACTORS)))
    run.table(["kind", "pages", *EXTRACTORS], rows)
    for kind in COMPARED:
        if kind in means:
            run.figure(f"F1 over trafilatura: {kind}", means[kind][OURS] - means[kind][OTHER])
    for kind, by in means.items():
        run.figure(f"F1: {kind}", by[OURS])
        if "article" in kind:
            run.figure(f"F1 with the extra: {kind}", by[ARTICLE])
    _check_markdown(run)


def _check_markdown(run: Run) -> None:
    lost, missing = Counter[str](), Counter[str]()
    count = 0
    for name in PACKAGES:
        paths = sorted(path for path in package(name).rglob("*.html") if path.is_file())
        most = QUICK_PAGES_EACH if run.quick else PAGES_EACH
        for path in paths[:: max(1, len(paths) // most)][:most]:
            count += 1
            body = path.read_bytes()
            for total, found in ((lost, lost_blocks(body)), (missing, missing_blocks(body))):
                if found:
                    total.update(found)
                    run.say(f"{path}: {dict(found)}")
    run.setting("pages of documentation", count)
    run.figure(LOST, lost.total())
    run.figure(MISSING, missing.total())


EXPERIMENT = Experiment(
    name="text",
    summary="the text that is found in pages of seven kinds, against what is for reading in them",
    run=measure,
    bars=(
        *(Bar(f"near trafilatura: {kind}", f"F1 over trafilatura: {kind}", ">=", -NEAR) for kind in COMPARED),
        Bar("articles with the extra", "F1 with the extra: article", ">=", 0.93),
        Bar("real articles with the extra", "F1 with the extra: Mozilla's articles", ">=", 0.93),
        Bar("nothing lost in Markdown", LOST, "<=", 0),
        Bar("nothing of the HTML missing", MISSING, "<=", 0),
    ),
)
