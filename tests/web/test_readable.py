"""What is for reading in a document: main text without navigation, whatever the bytes, by kernel and twin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.document import MAIN_TEXT_VERSION, Document, Readable
from lycosa.web.kernel import native
from lycosa.web.media import identify_media
from lycosa.web.page import read_natively
from lycosa.web.readable import extract_readable, main_text

FILLER = "words that make a text long enough to stand for itself " * 6


def document(html: str, content_type: str = "text/html") -> Document:
    body = html.encode()
    return Document(body, "https://a.example/", identify_media(content_type, body), "UTF-8", wants_main=True)


def by_twin(html: str, content_type: str = "text/html", **wanted: bool) -> Readable:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lycosa.web.readable.native", lambda: None)
        return main_text(document(html, content_type), **wanted)


def read(html: str, content_type: str = "text/html; charset=utf-8") -> Readable:
    """What both find, which has to be the same."""
    found = extract_readable(html.encode(), url="https://a.example/", content_type=content_type)
    assert "html" not in content_type or found == by_twin(html)
    return found


def words(html: str, content_type: str = "text/html; charset=utf-8") -> str:
    return " ".join(read(html, content_type).text.split())


def test_main_element_is_the_text() -> None:
    found = read("<title> T </title><p>around</p><main><h1>Head <b>line</b></h1>inside</main><p>after")
    assert found == Readable.of("T", ("Head line",), "Head line\ninside")


def test_each_block_is_a_line() -> None:
    found = read("<main>a <i>b</i>.<p>c (<b>d</b>)<br>e</p>f<ul><li>g<li>h</ul><table><tr><td>i<td>j<tr><td>k</table>")
    assert found.text.split("\n") == ["a b.", "c (d)", "e", "f", "g", "h", "i\tj", "k"]


def test_headings_in_navigation_are_no_headings_of_the_text() -> None:
    assert read(f"<nav><h2>Menu</h2></nav><h1>Title</h1><p>{FILLER}").headings == ("Title",)


def test_main_element_in_navigation_counts_nevertheless() -> None:
    assert words("<nav>menu<main>text<nav>more</nav></main></nav>") == "text"


def test_two_mains_are_none() -> None:
    assert words("<main>a</main><main>b</main>") == "a b"


PARTS = (
    "<nav>x</nav>,<footer>x</footer>,<div role=navigation>x</div>,<div class='top navbar'>x</div>,<script>x</script>,"
    "<style>x</style>,<noscript>x</noscript>,<div id=nav><nav>x</nav></div>"
)


@pytest.mark.parametrize("part", PARTS.split(","))
def test_what_is_not_for_reading_is_left_out(part: str) -> None:
    assert "x" not in words(f"<body>{part}<p>{FILLER}").replace("text", "")


def test_page_that_is_all_navigation_is_read_as_a_whole() -> None:
    assert words("<nav>home and garden</nav><script>no()</script>") == "home and garden"


def test_other_kinds_have_their_text_or_none() -> None:
    assert words("plain words", "text/plain") == "plain words"
    assert read("\x89PNG\r\n\x1a\n", "image/png") == Readable()


def test_code_keeps_its_lines_and_spaces() -> None:
    assert read("<main><p>a</p><pre>\n  if x:\n\n    y \n</pre>z").text == "a\n  if x:\n\n    y\nz"


def test_role_of_the_main_element_counts_as_one() -> None:
    assert words(f"<p>{FILLER}</p><div role=main>text</div>") == "text"


@pytest.mark.parametrize("name", ["hidden", "style='color: red; display:none'", "class='cookie-consent'", "id=sidebar"])
def test_block_that_is_not_shown_or_named_so_is_left_out(name: str) -> None:
    assert "gone" not in words(f"<p>{FILLER}</p><div {name}>gone</div>")


@pytest.mark.parametrize("name", ["class=section id=menu", "id=sharing-with-a-single-developer", "class=canavan"])
def test_section_whose_id_is_its_heading_stays(name: str) -> None:
    assert "stays" in words(f"<p>{FILLER}</p><div {name}><h2>Menu</h2>stays</div>")


def test_long_list_of_links_beside_a_text_is_left_out_and_on_a_page_of_links_is_not() -> None:
    links = "".join(f"<li><a href=/{n}>another story of today, number {n}</a>" for n in range(20))
    assert "another" not in words(f"<p>{FILLER * 8}</p><ul>{links}</ul>")
    assert "another" in words(f"<p>Stories</p><ul>{links}</ul>")


def test_code_that_is_full_of_links_stays() -> None:
    code = "<pre>class <a href=a>Optional</a> extends <a href=b>Object</a></pre>"
    cell = "<div><code><a href=s>Stream</a>&lt;<a href=t>T</a>&gt;</code></div>"
    found = words(f"<p>{FILLER}</p><div class=synopsis>{code}</div>{cell}")
    assert "class Optional extends Object" in found
    assert "Stream<T>" in found


def test_links_whose_words_are_code_are_navigation_as_others() -> None:
    assert "one" not in words(
        f"<p>{FILLER}</p><div><a href=1><code>one</code></a> <a href=2><code>two</code></a></div>"
    )


def test_table_with_a_row_of_headings_keeps_its_cells_however_long_they_are() -> None:
    long = "word " * 300
    rows = f"<tr><td>a<td>{long}<tr><td>b<td>c"
    assert "b\tc" in read(f"<main><table><tr><th>Name<th>Meaning{rows}</table>").text
    assert "b\tc" not in read(f"<main><table>{rows}</table>").text


def test_block_that_is_hidden_takes_the_main_element_in_it_along() -> None:
    assert words(f"<p>{FILLER}</p><template><main>gone</main></template>") == " ".join(FILLER.split())


MARKUP = [
    "<nav>", "</nav>", "<main>", "</main>", "<h1>", "</h1>", "<h2 class=nav>", "</h2>", "<p>", "</p>", "x", " y ", "(",
    ".", "<script>", "</script>", "<!-- c -->", "<div class='a nav'>", "</div>", "<span class=sidebar>", "</span>",
    "<br>", "<li>", "<ul>", "</ul>", "<a href='n&#97;v'>", "</a>", "<footer role=x>", "</footer>", "<noscript>",
    "</noscript>", "<section role=contentinfo>", "</section>", "<form>", "</form>", "<select><option>", "</select>",
    "<pre>", "</pre>", "<table>", "</table>", "<tr>", "<td>", "<th colspan=2>", "<td rowspan=2>", "<ol start=3>",
    "</ol>", "<blockquote>", "</blockquote>", "<code class='language-c'>", "</code>", "<b>", "</b>", "<hr>", "\n",
    "<title>t</title>", "<title>", "</t\u0130tle>", "<iframe>", "</\u0130frame>", "<bloc\u212aquote>",
    "<article>", "</article>", "<div role=main>", "<div hidden>", "<div data-nosnippet>", "<svg/>",
    "<b data-nosnippet>",
    "<template>", "</template>", "# 1. [_x_](y) `z` &amp;lt; | ```\n", "&#13;&nbsp;", "\r\n", "<", "</", "¶", FILLER,
]  # fmt: skip


@given(
    st.lists(st.sampled_from(MARKUP), max_size=60),
    st.booleans(),
    st.sampled_from(("text/html", "application/xhtml+xml")),
)
def test_kernel_and_twin_find_the_same(parts: list[str], unshown: bool, content_type: str) -> None:
    html = "".join(parts)
    found = main_text(document(html, content_type), unshown=unshown, wants_markdown=True)
    assert found == by_twin(html, content_type, unshown=unshown, wants_markdown=True)


def test_page_comes_with_the_main_text_that_is_found_without_it() -> None:
    html = f"<title>t</title><nav>n</nav><h1>H</h1><p>{FILLER}"
    page = read_natively(document(html))
    assert page is None or page.readable == main_text(document(html))


def test_kernel_and_twin_have_the_same_version() -> None:
    kernel = native()
    assert kernel is None or kernel.MAIN_TEXT_VERSION == MAIN_TEXT_VERSION


def test_words_of_two_elements_are_two_words_and_punctuation_clings() -> None:
    assert (
        read("<main><b>one</b><i>two</i> <b>copy.</b><b>deepcopy</b><b>(</b><i>x</i>)").text
        == "one two copy.deepcopy(x)"
    )


def test_white_space_behind_a_block_counts_where_no_block_follows() -> None:
    assert read("<main>a<b><form></form>\n</b>b.").text == "a b."
    assert read("<main>a<form></form>\n</dd>b.").text == "a b."


def test_ends_of_code_that_close_nothing_leave_the_code_around_them_as_it_is() -> None:
    assert read("<main><pre></code></pre><pre><pre>word</code><b>more").text == "wordmore"


def test_of_the_blocks_that_a_word_speaks_against_those_with_a_heading_of_the_page_stay() -> None:
    named = "".join(f"<div class=nav><{tag}>{tag}{n}</{tag}></div>" for n in range(3) for tag in ("h1", "p", "h2"))

    assert words(f"<p>{FILLER}{FILLER}</p><h1>a</h1>{named}<h1>z</h1>").endswith("a h10 h11 h12 z")


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<p>x</p><title>a</t\u0130tle><p>b</p>", "x"),  # the title does not end
        ("<p>y</p><iframe>x</\u0130frame>", "y"),
        ("<t\u0131tle>a</title>b", "ab"),
        ("<noframe\u017f>a</noframes>b", "ab"),
        ("<bloc\u212aquote>x", "x"),
        ("<p>x<a \u212a=1 k=2 href=/b>y</a>", "x[y](https://a.example/b)"),
    ],
)
def test_names_that_differ_from_those_of_html_by_a_letter_of_unicode_are_other_names(html: str, markdown: str) -> None:
    found = main_text(document(html), wants_markdown=True)

    assert found == by_twin(html, wants_markdown=True)
    assert found.markdown == markdown


def test_headers_and_footers_of_docbook_are_navigation() -> None:
    bar = "<table><tr><td><a href=p>Prev</a><td>Chapter<tr><td>x<td>y</table>"
    assert words(f"<div class=navheader>{bar}</div><p>{FILLER}</p><div class=navfooter>{bar}</div>") == FILLER.strip()
