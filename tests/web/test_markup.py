"""HTML is split into texts and tags as browsers see them, whatever looks like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.markup import OddMarkup, attributes_of, split_markup, split_odd_markup, split_tag
from lycosa.web.readable import extract_readable

ODD = {
    "a < b > c": (["a < b > c"], []),
    "a > b": (["a > b"], []),
    "<>x</>y": (["<>x", "y"], [""]),
    '<a title="x>y" b>z': (["", "z"], ["a"]),
    "<a title='<p>'>z": (["", "z"], ["a"]),
    "<!-- <p> > -->z": (["", "z"], [""]),
    "<!-->z": (["", "z"], [""]),
    "<script>a<b && c>d</script>z": (["", "a<b && c>d", "z"], ["script", "/script"]),
    "<title><b></title >z": (["", "<b>", "z"], ["title", "/title"]),
    "<title>a</t\u0130tle>b": (["", "a</t\u0130tle>b"], ["title"]),
    "<p>x</p><iframe>x</\u0130frame>": (["", "x", "", "x</\u0130frame>"], ["p", "/p", "iframe"]),
    "<title>a</titles>": (["", "a</titles>"], ["title"]),
    'x<a title="y>z': (["x"], []),
    "x<!-- y>z": (["x", ""], [""]),
    "x<": (["x<"], []),
}


@pytest.mark.parametrize("html", ODD)
def test_what_looks_like_a_tag_and_is_none_is_told_apart(html: str) -> None:
    texts, tags = split_odd_markup(html)

    assert (texts, [split_tag(tag)[0] for tag in tags]) == ODD[html]


def test_attributes_of_an_odd_tag_are_as_they_are_written() -> None:
    _, tags = split_odd_markup('<a title="x>y" href=a<b>z')

    assert split_tag(tags[0])[1] == ' title="x>y" href=a<b'


def test_attributes_stand_between_spaces_and_slashes_however_many() -> None:
    attributes = "/ " * 50_000 + "a=b/ / =c //d\n=\n'e'/f"

    assert attributes_of(attributes) == {"a": "b/", "=c": "", "d": "e", "f": ""}


@given(st.lists(st.sampled_from(["<p>", "</p>", "<br/>", '<a href="x">', "<!-- c -->", "<?x?>", "text", " & ", '"'])))
def test_plain_markup_is_split_in_both_ways_alike(parts: list[str]) -> None:
    html = "".join(parts)
    texts, tags = split_markup(html)
    odd_texts, odd_tags = split_odd_markup(html)

    assert texts == odd_texts
    assert [*map(split_tag, tags)] == [*map(split_tag, odd_tags)]


@pytest.mark.parametrize("html", ["a < b", "a > b", "<>", '<a title="x>y">'])
def test_brackets_that_are_no_tags_are_noticed(html: str) -> None:
    def tags_of(html: str) -> list[tuple[str, str]]:
        return [*map(split_tag, split_markup(html)[1])]

    with pytest.raises(OddMarkup):
        tags_of(html)


@pytest.mark.usefixtures("each_kernel")
def test_a_script_that_writes_markup_says_nothing() -> None:
    page = b"<title>a <b> c</title><script>document.write('<p>x</p>')</script><style>a>b{}</style><p>y"

    found = extract_readable(page, url="http://h.example/", content_type="text/html")

    assert (found.title, found.text) == ("a <b> c", "y")
