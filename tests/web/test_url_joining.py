"""A joiner that remembers gives what joining anew gives, whatever it was asked before."""

from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import url
from lycosa.web.url import LONGEST_REMEMBERED_HREF, Joiner

BASES = st.sampled_from(
    [
        "http://a.example/",
        "http://a.example/d/p.html",
        "http://a.example/d/q.html",
        "http://a.example/d/p.html?x=/y/",
        "http://a.example/d/p.html?z",
        "http://a.example/d//p.html",
        "http://a.example:8000/d/%C3%A9/..../f/p.html",
        "https://a.example/d/p.html",
    ]
)
# By what they depend on: the whole base, its folder, nothing of it, and not settled at the first look.
ABOUT_THE_PAGE = " |#f|?q|?q#f|\x01|\x01?q|\t?q|http:|http:?q|https:?q|HTTP:?q|h\nttp:?q"
ABOUT_THE_FOLDER = "x|x#f|x?q|/x|//b.example/x|\\x|/\\b.example|..|.|./?q|é|x\ny|http:x|https:x|%7e|/u:p@x|x:y/:"
ABSOLUTE = (
    "http://b.example/x|http:///b.example/x|http://|https://b.example:1/#f|http://u:p@b.example/|mailto:x|data:,x"
)
ODD_ENDS = "x #f| x |x\x00|x\x00#f|x\x01|x\x01#f|\ud800"
HREFS = st.sampled_from(
    [
        "",
        "x" * (LONGEST_REMEMBERED_HREF + 1),
        *"|".join((ABOUT_THE_PAGE, ABOUT_THE_FOLDER, ABSOLUTE, ODD_ENDS)).split("|"),
    ]
) | st.text(st.sampled_from("?#/\\:.ahtps\t\n \x01"), max_size=8)
PLAIN = st.lists(st.sampled_from(["..", ".", "", "a", "b.c", "-~_", "c.", "%41", "a:b"]), max_size=5).map("/".join)
PAGES = st.lists(st.tuples(BASES, st.lists(HREFS | PLAIN, max_size=8)), max_size=12)


@given(PAGES, st.sampled_from([1, 5, 1000]))
def test_joiner_page_after_page_same_as_joining_anew(pages: list[tuple[str, list[str]]], generation: int) -> None:
    joiner = Joiner(generation=generation)
    for base, hrefs in pages:
        stems = dict.fromkeys(map(url.href_stem, hrefs))
        assert joiner.join_stems(base, stems) == url.join_stems(base, stems, url.MAX_URL_BYTES)


def test_joiner_many_folders_and_one_vast_folder_memory_bounded() -> None:
    joiner = Joiner(generation=100)
    for n in range(1000):
        joiner.join_stems(f"http://a.example/{n}/", [f"x{n}", f"y{n}"])
        joiner.join_stems("http://a.example/vast/", [f"v{n}", f"w{n}"])
    held = sum(len(stems) for folders in (joiner._young, joiner._old) for stems in folders.values())
    assert held <= 3 * 100
