"""The difference of two versions for the eye."""

from lycosa.recrawl.change.diff import MOST, diff_versions, lines_of
from lycosa.recrawl.change.verdict import Version
from lycosa.web.page import analyse_page
from tests.effort import bounded


def version(main: str) -> Version:
    body = f"<title>T</title><main>{main}</main>".encode()
    return Version(analyse_page(body, url="http://h.example/", content_type="text/html; charset=utf-8"), body)


def test_diff_marks_words_links_and_images() -> None:
    old = version("<p>The old house stands</p><a href=/a>x</a><img src=/1.png>")
    new = version("<p>The new house stands</p><a href=/b>x</a><img src=/2.png>")
    assert diff_versions(old, new).lines == (
        "  T",
        "~ The [-old-]{+new+} house stands",
        "  x",
        "- link /a",
        "+ link /b",
        "- image /1.png",
        "+ image /2.png",
    )


def test_diff_of_structure_says_where_and_on_which_levels() -> None:
    found = diff_versions(version("<p>a</p>"), version("<p>a</p><ul><li>b</li></ul>"))
    assert [line.strip() for line in found.structure.lines if line.startswith("+")] == ["+       ul", "+         li"]
    assert found.structure.where == "html > body > main: +ul"
    assert found.structure.levels == ((4, 1, 2), (5, 0, 1))
    assert "+ b" in found.lines


def test_diff_of_equal_versions_is_empty() -> None:
    found = diff_versions(version("<p>a</p>"), version("<p>a</p>"))
    assert (found.lines, found.structure.where, found.structure.levels) == ((), "", ())


def test_lines_far_apart_leave_out_what_is_the_same_between_them() -> None:
    old = ["first", *map(str, range(20)), "last"]
    new = ["FIRST", *map(str, range(20)), "LAST"]
    assert list(lines_of(old, new)) == ["- first", "+ FIRST", "  0", "@ 18 unchanged", "  19", "- last", "+ LAST"]


def test_lines_of_large_rewrites_are_bounded_in_time() -> None:
    old, new = [f"a{n} b" for n in range(50_000)], [f"c{n} b" for n in range(50_000)]
    lines = bounded(lambda: list(lines_of(old, new)), units=100)
    assert lines == ["@ 50,000 pieces became 50,000: too many to compare one by one"]
    assert bounded(lambda: list(lines_of(old[:MOST], new[:MOST])), units=500)


def test_diff_of_documents_that_are_not_read_tells_of_bytes_and_shows_no_digest() -> None:
    old, new = (
        Version(analyse_page(body, url="http://h.example/a.pdf", content_type="application/pdf"), body)
        for body in (b"%PDF-1.4 one", b"%PDF-1.4 twenty")
    )
    assert diff_versions(old, new).lines == ("@ other bytes: 12 bytes became 15",)
    assert diff_versions(old, old).lines == ()
