"""Markdown of what is for reading in a document: no block is lost, and nothing in a text becomes markup."""

import pytest

from lycosa.web import extract_readable, identify_media
from lycosa.web.document import Document
from lycosa.web.kernel import native
from lycosa.web.readable import read_by_twin


def markdown(html: str, url: str = "https://a.example/folder/page") -> str:
    body = f"<main>{html}</main>".encode()
    return extract_readable(body, url=url, content_type="text/html; charset=utf-8", wants_markdown=True).markdown


CASES = {
    "heading": ("<h2>Head <b>line</b><a href='#x'>¶</a></h2>", "## Head **line**"),
    "paragraphs": ("<p>one<p>two", "one\n\ntwo"),
    "line break": ("one<br>two", "one  \ntwo"),
    "emphasis": ("a <b> bold <i>both</i></b> z", "a **bold *both*** z"),
    "part of a word": ("un<em>like</em>ly", "un*like*ly"),
    "struck": ("<del>old</del> new", "~~old~~ new"),
    "code": ("use <code>a*b</code> or <kbd>x`y</kbd>", "use `a*b` or `` x`y ``"),
    "link": ("<a href='../b?c#d'>words</a>", "[words](https://a.example/b?c#d)"),
    "link to the page itself": ("<a href='#d'>words</a>", "words"),
    "link in code": (
        "<code>List&lt;<a href=T>T</a>&gt;</code>",
        "`List<`[`T`](https://a.example/folder/T)`>`",
    ),
    "link around blocks": (
        "<a href=x><h3>Head</h3><p>text</p></a>",
        "### [Head](https://a.example/folder/x)\n\n[text](https://a.example/folder/x)",
    ),
    "badly nested": ("<b>a<a href=x>b</b>c</a>", "**a[b](https://a.example/folder/x)**[c](https://a.example/folder/x)"),
    "list": ("<ul><li>one<li><p>two</p><ul><li>sub</ul><li>three</ul>", "- one\n- two\n  - sub\n- three"),
    "numbers": ("<ol start=9><li>a<li>b<p>c</ol>", "9. a\n10. b\n\n    c"),
    "quote": ("<blockquote><p>a<p>b</blockquote>c", "> a\n>\n> b\n\nc"),
    "fence": (
        "<div class='highlight-python3'><pre>def <b>f</b>():\n\n    pass\n</pre></div>",
        "```python3\ndef f():\n\n    pass\n```",
    ),
    "language of the code": ("<pre><code class='x language-Rust'>fn</code></pre>", "```rust\nfn\n```"),
    "fence in a fence": ("<pre>```\nx</pre>", "````\n```\nx\n````"),
    "code in a list": ("<ul><li>a<pre>x\ny</pre></ul>", "- a\n\n  ```\n  x\n  y\n  ```"),
    "table": (
        "<table><thead><tr><th>A<th>B</thead><tr><td>1|2<td><p>x<p>y</table>",
        "| A | B |\n| --- | --- |\n| 1\\|2 | x<br>y |",
    ),
    "table without headings": ("<table><tr><td>1<td>2<tr><td>3</table>", "|  |  |\n| --- | --- |\n| 1 | 2 |\n| 3 |  |"),
    "spans": (
        "<table><tr><th colspan=2>A<th>B<tr><td rowspan=2>1<td>2<td>3<tr><td>4<td>5</table>",
        "| A |  | B |\n| --- | --- | --- |\n| 1 | 2 | 3 |\n|  | 4 | 5 |",
    ),
    "table for the layout": ("<table><tr><td><h2>a</h2>b<td>c<tr><td>d<td>e</table>", "## a\n\nb\n\nc\n\nd\n\ne"),
    "rule": ("a<hr>b", "a\n\n---\n\nb"),
    "definitions": ("<dl><dt>term<dd>meaning</dl>", "term\n\nmeaning"),
    "marks in a text": (r"1. * _x_ a_b \ [a](b) &lt;b> &amp;amp;", r"1\. \* \_x\_ a_b \\ [a\](b) \<b> \&amp;"),
    "a line that would be a block": ("<p># a<p>- b<p>> c<p>---", "\\# a\n\n\\- b\n\n\\> c\n\n\\---"),
    "elements that touch": ("<span>a</span><span>b</span><sub>2</sub>", "a b2"),
}


@pytest.mark.parametrize("name", CASES)
def test_block_is_written_as(name: str) -> None:
    html, expected = CASES[name]
    assert markdown(html) == expected


def test_navigation_is_left_out() -> None:
    words = "<p>" + "words that make a text " * 20
    found = extract_readable(
        f"<nav><a href=x>Menu</a></nav><div class=cookie-bar>We care</div>{words}<footer>Imprint</footer>".encode(),
        url="https://a.example/",
        content_type="text/html",
        wants_markdown=True,
    )
    assert found.markdown == " ".join(words[3:].split())


LONG = "x" * 5_000
REPEATED = {
    "nested quotes in lists": "<ul><li><blockquote>x" * 2_000,
    "nested lists with high numbers": "<ol start=99999999><li>x" * 2_000,
    "lines in nested quotes": "<blockquote>" * 500 + "x<br>" * 5_000,
    "lines of code in nested quotes": "<blockquote>" * 500 + "<pre>" + "x\n" * 5_000,
    "lines of a link": f"<a href={LONG}>" + "x<br>" * 2_000,
    "blocks of a link": f"<a href={LONG}>" + "<p>x" * 2_000,
    "bold words in a link": f"<b><a href={LONG}>" + "x</b>y<b>" * 2_000,
}


@pytest.mark.parametrize("name", REPEATED)
def test_markdown_is_no_longer_than_some_times_the_document(name: str) -> None:
    html = REPEATED[name]
    found = read_alike(html)

    assert found.count("x") >= html.count("x") - LONG.count("x")
    assert len(found) < 10 * len(html) + 65_536


def test_lines_that_follow_too_many_that_are_nested_deeply_are_nested_again() -> None:
    found = read_alike("<blockquote>" * 500 + "x<br>" * 2_000 + "</blockquote>" * 500 + "<ul><li>one<li>two")

    assert found.startswith("x  \nx")
    assert found.endswith("x\n\n- one\n- two")


def test_link_that_is_interrupted_too_often_ends() -> None:
    found = read_alike("<a href=/b>" + "x<br>" * 30 + "</a><a href=/c>y</a>").split("  \n")

    assert found[:20] == ["[x](/b)".replace("/b", "\1/b\1")] * 20
    assert found[20:30] == ["x"] * 10
    assert found[30:] == ["[y](\1/c\1)"]


@pytest.mark.parametrize("ticks", [2, 3, 400])
def test_fence_is_longer_than_any_in_the_code(ticks: int) -> None:
    fence = "`" * max(3, ticks + 1)
    assert read_alike(f"<pre>a ````\n {'`' * ticks}\n``") == f"{fence}\na ````\n {'`' * ticks}\n``\n{fence}"


def read_alike(html: str) -> str:
    """The Markdown that the kernel and its twin write, which has to be the same; targets are as they are written."""
    document = Document(html.encode(), "https://a.example/", identify_media("text/html", b""), "UTF-8")
    found = read_by_twin(document, unshown=False, wants_markdown=True)[-1]
    if kernel := native():
        assert kernel.read_readable(document.body, "UTF-8", False, False, True)[-1] == found
    return found


def test_targets_that_are_no_http_urls_stay() -> None:
    assert markdown("<a href='mailto:a@b.example'>a</a> <a href='javascript:x()'>b</a>") == "[a](mailto:a@b.example) b"


def test_markdown_is_made_only_when_it_is_asked_for() -> None:
    assert not extract_readable(b"<p>text", url="https://a.example/", content_type="text/html").markdown


def test_plain_text_is_its_own_markdown() -> None:
    found = extract_readable(b"plain", url="https://a.example/", content_type="text/plain", wants_markdown=True)
    assert found.markdown == "plain"
