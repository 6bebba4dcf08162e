"""Tables: what is written is read back, whatever else comes is refused with a reason, and a patch is exact."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.tables.formats import (
    MAX_LINE_BYTES,
    MAX_ROWS,
    TABLE_MAX_BYTES,
    TableRefusal,
    Tol,
    Tvi,
    is_table_of,
    parse_tol,
    parse_tvi,
    patch_document,
    table_url,
    tvi_of,
    write_tol,
    write_tvi,
)
from lycosa.web import volatile
from lycosa.web.links import LinkKind, Links

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
kinds = st.sampled_from([kind for kind in LinkKind if kind is not LinkKind.REDIRECT])


@st.composite
def tols(draw: st.DrawFn) -> Tol:
    rows = draw(st.lists(st.tuples(texts, kinds, texts, texts), max_size=6))
    hrefs, elements, anchors, rels = zip(*rows, strict=True) if rows else ((), (), (), ())
    headers = [draw(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=12)) for _ in range(3)]
    links = Links(tuple(hrefs), bytes(elements), tuple(anchors), tuple(rels))
    return Tol(links, *headers, volatile=draw(st.integers(0, 9)))


@settings(deadline=None)
@given(tols())
def test_tol_written_is_read_back_equal(made: Tol) -> None:
    body = write_tol(made)
    assert isinstance(body, bytes)
    assert parse_tol(body) == made
    assert parse_tol(body.replace(b"\n", b"\r\n")) == made  # a server or an editor may do that


@settings(deadline=None)
@given(st.lists(st.tuples(st.from_regex(r"\A[A-Za-z0-9_.-]{1,8}\Z"), st.binary(max_size=30)), unique_by=lambda p: p[0]))
def test_tvi_written_is_read_back_equal(parts: list[tuple[str, bytes]]) -> None:
    made = Tvi(tuple(parts), "sha-256=1", "sha-256=2", "page.html", ".x")
    body = write_tvi(made)
    assert isinstance(body, bytes)
    assert parse_tvi(body) == made


@settings(deadline=None)
@given(
    st.binary(max_size=60), st.sampled_from([b"", b"# tol 1\n", b"# tvi 1\n# document: a\n# frame: b\n", b"# tol 2\n"])
)
def test_any_bytes_give_a_table_or_a_refusal(body: bytes, start: bytes) -> None:
    assert isinstance(parse_tol(start + body), Tol | TableRefusal)
    assert isinstance(parse_tvi(start + body), Tvi | TableRefusal)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_a_damaged_table_never_raises(noise: bytes) -> None:
    whole = write_tol(Tol(Links(("/a", "/b"), bytes((1, 6)), ("A", ""), ("", "next"))))
    assert isinstance(whole, bytes)
    for at in range(0, len(whole), 7):
        assert isinstance(parse_tol(whole[:at] + noise + whole[at:]), Tol | TableRefusal)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", TableRefusal.NOT_A_TABLE),
        (b"<!DOCTYPE html><title>Not found</title>", TableRefusal.NOT_A_TABLE),
        (b"# tvi 1\n", TableRefusal.NOT_A_TABLE),
        (b"# tol 2\n", TableRefusal.VERSION),
        (b"# tol one\n", TableRefusal.NOT_A_TABLE),
        (b"# tol 1\ninternal\t/caf\xe9\n", TableRefusal.ENCODING),
        (b"# tol 1\ninternal\t/a\ninternal\t/b", TableRefusal.BROKEN),  # cut on its way
        (b"# tol 1\nelsewhere\t/a\n", TableRefusal.BROKEN),
        (b"# tol 1\ninternal\t/a\t\t\tscript\n", TableRefusal.BROKEN),
        (b"# tol 1\ninternal\t/a\\x\n", TableRefusal.BROKEN),
        (b"# tol 1\n# of: a\n# of: b\n", TableRefusal.BROKEN),
        (b"# tol 1\n" + b"internal\t/a\n" * (MAX_ROWS + 1), TableRefusal.TOO_LARGE),
        (b"# tol 1\ninternal\t/" + b"a" * MAX_LINE_BYTES + b"\n", TableRefusal.TOO_LARGE),
        (b"# tol 1\n" + b"\n" * TABLE_MAX_BYTES, TableRefusal.TOO_LARGE),
    ],
)
def test_tol_that_is_none_is_refused_with_its_reason(body: bytes, reason: TableRefusal) -> None:
    assert parse_tol(body) is reason


def test_tol_says_what_is_internal() -> None:
    hrefs = ("/a", "b.html", "https://here.example/c", "//HERE.example:443/d", "https://other.example/", "mailto:x@y")
    links = Links(hrefs, bytes((1,)) * 6, ("",) * 6, ("",) * 6)
    body = write_tol(Tol(links, site="https://here.example"))
    assert isinstance(body, bytes)
    places = [line.split("\t")[0] for line in body.decode().splitlines() if "\t" in line]
    assert places == ["internal"] * 3 + ["external"] * 3  # without its scheme nobody knows what port 443 means


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h/a/page.html", "http://h/a/page.tol"),
        ("http://h/a/page.html?x=1.5", "http://h/a/page.tol?x=1.5"),
        ("http://h/", "http://h/index.tol"),
        ("http://h/a/", "http://h/a/index.tol"),
        ("/v1.2", "/v1.2.tol"),
        ("/a.b/page", "/a.b/page.tol"),
        ("/.html", "/.html.tol"),
        ("/page.tol", None),
    ],
)
def test_table_stands_beside_its_document(url: str, name: str | None) -> None:
    assert table_url(url, "tol") == name


def test_table_of_another_document_is_told() -> None:
    assert is_table_of("page.html", "http://h/a/page.html?x=1")
    assert not is_table_of("page.html", "http://h/a/page.xml")
    assert is_table_of("index.html", "http://h/a/")
    assert is_table_of("", "http://h/a/anything")


# volatile parts

HTML = (
    b"<title><span data-vol=9></title><!-- <span data-vol=8>x</span> -->"
    b'<p a=">"><SPAN class=x DATA-VOL="1">old</SPAN></p>'
)
XML = b"<r><!-- <Vol1>x</Vol1> --><Vol1>a</Vol1><![CDATA[<Vol2>]]><Vol2><Vol2>b</Vol2></Vol2><Vol3/></r>"


def contents(body: bytes, parts: list[volatile.VolatilePart]) -> list[tuple[str, bytes]]:
    return [(part.id, body[part.start : part.end]) for part in parts]


def test_marked_parts_are_found_where_they_are_markup() -> None:
    assert contents(HTML, volatile.marked_parts(HTML, is_xml=False)) == [("1", b"old")]
    assert contents(XML, volatile.marked_parts(XML, is_xml=True)) == [("Vol1", b"a"), ("Vol2", b"<Vol2>b</Vol2>")]


def test_parts_inside_parts_and_repeated_ids_stay_in_the_frame() -> None:
    body = (
        b"<span data-vol=1>a<span>b</span><span data-vol=2>c</span></span><span data-vol=1>d</span><span data-vol=3>e"
    )
    assert contents(body, volatile.marked_parts(body, is_xml=False)) == [
        ("1", b"a<span>b</span><span data-vol=2>c</span>"),
    ]


def test_selected_parts_are_numbered_by_their_tags() -> None:
    body = b"<!-- <td> --><table><tr><td>1<td class=n>2</td><td>3</td></table><div class=n><b>x</b></div>"
    found = volatile.selected_parts(body, ".n")
    assert found is not None
    assert contents(body, found) == [("td:2", b"2"), ("div:1", b"<b>x</b>")]


def test_selected_parts_that_the_parser_has_made_are_not_told() -> None:
    assert volatile.selected_parts(b"<p><b class=n>x<p>y", ".n") is None  # the second <b> is in no source
    with pytest.raises(ValueError, match="selector"):
        volatile.selected_parts(b"<p>", "p[[")


@pytest.mark.parametrize(
    "piece", [b"<a ", b"<!--", b"<span data-vol=1>", b'<a b="', b"<title>", b"</span", b"<![CDATA["]
)
def test_looking_for_parts_takes_linear_time(piece: bytes) -> None:
    body = b"<span data-vol=0>" + piece * (1_000_000 // len(piece))
    volatile.marked_parts(body, is_xml=False)  # a square would not end
    volatile.marked_parts(b"<Vol1>" + body, is_xml=True)


fragments = st.lists(
    st.sampled_from(
        ["<p>", "</p>", "<b>x</b>", "<!-- <span data-vol=1> -->", "<script>'<span data-vol=2>'</script>", "ü & text"]
    ),
    max_size=5,
).map("".join)
inner = st.text(st.characters(exclude_characters="<", exclude_categories=["Cs"]), max_size=15)


@settings(deadline=None)
@given(st.lists(st.tuples(fragments, inner, inner), min_size=1, max_size=5), st.sampled_from(["utf-8", "latin-1"]))
def test_patched_document_is_the_new_document(rows: list[tuple[str, str, str]], encoding: str) -> None:
    def document(which: int) -> bytes:
        pieces = [f'{row[0]}<span data-vol="n{i}">{row[which]}</span>' for i, row in enumerate(rows)]
        return "".join(pieces).encode(encoding, "replace")

    old, new = document(1), document(2)
    made = tvi_of(new, is_xml=False)
    assert made is not None
    body = write_tvi(made)
    assert isinstance(body, bytes)
    sent = parse_tvi(body)
    assert isinstance(sent, Tvi)
    assert patch_document(old, sent, is_xml=False) == new


@settings(deadline=None)
@given(
    st.text(st.sampled_from("<>/ ='\"-!spandt:vol1Vx"), max_size=80).map(str.encode) | st.binary(max_size=80),
    st.booleans(),
)
def test_any_document_has_a_table_that_patches_it_or_none(body: bytes, is_xml: bool) -> None:
    made = tvi_of(body, is_xml=is_xml)
    if made is not None:
        assert volatile.parts_by_id(body, [name for name, _ in made.parts], is_xml=is_xml) is not None
        written = write_tvi(made)
        assert isinstance(written, bytes)
        assert parse_tvi(written) == made
        assert patch_document(body, made, is_xml=is_xml) == body
    assert tvi_of(body, is_xml=False, selector="span, p") is None or b"<" in body


def test_patch_by_selector_and_in_xml() -> None:
    for old, new, is_xml, selector in (
        (b"<p>a</p><i class=v>1</i>", b"<p>a</p><i class=v>2</i>", False, ".v"),
        (b"<r><Vol7>1</Vol7></r>", b"<r><Vol7>22</Vol7></r>", True, ""),
    ):
        made = tvi_of(new, is_xml=is_xml, selector=selector)
        assert made is not None
        assert patch_document(old, made, is_xml=is_xml) == new


def parts_of(body: bytes, selector: str) -> list[tuple[str, bytes]]:
    made = tvi_of(body, is_xml=False, selector=selector)
    assert made is not None
    return list(made.parts)


def test_marked_and_selected_parts_are_in_one_table_each_once() -> None:
    body = b"<i class=v>1</i><span data-vol=n>2</span><span class=v data-vol=m></span><span data-vol=n class=v>3</span>"
    assert parts_of(body, ".v") == [("i:1", b"1"), ("n", b"2"), ("m", b""), ("span:3", b"3")]
    inside = b"<td class=v>a<span data-vol=n>b</span></td><span data-vol=m>c<b class=v>d</b></span>"
    page = b"<table><tr>" + inside.replace(b"</td>", b"</td></table>")
    assert parts_of(page, ".v") == [("td:1", b"a<span data-vol=n>b</span>"), ("m", b"c<b class=v>d</b>")]
    assert parts_of(b"<span data-vol=n>1</span>", ".v") == [("n", b"1")]
    many = b"<span data-vol=n>x</span>" + b"<b class=v>y</b>" * volatile.MAX_VOLATILE_PARTS
    assert len(parts_of(many, ".v")) == volatile.MAX_VOLATILE_PARTS
    xml = tvi_of(XML, is_xml=True, selector=".v")
    assert xml is not None
    assert [name for name, _ in xml.parts] == ["Vol1", "Vol2"]


pieces = st.lists(
    st.sampled_from(
        [
            "<span data-vol=1>",
            "<span data-vol=2 class=v>",
            "<span class=v>",
            "<b class=v>",
            "<b>",
            "</b>",
            "</span>",
            "{}",
        ]
    ),
    max_size=16,
).map("".join)


@settings(deadline=None)
@given(pieces)
def test_table_of_marked_and_selected_parts_patches_what_differs_in_them(page: str) -> None:
    new = page.replace("{}", "new").encode()
    made = tvi_of(new, is_xml=False, selector=".v")
    if made is None:
        return
    found = volatile.parts_by_id(new, [name for name, _ in made.parts], is_xml=False)
    assert found is not None
    assert tuple(contents(new, found)) == made.parts
    old = volatile.fill_parts(new, [(part, new[part.start : part.end].replace(b"new", b"older")) for part in found])
    assert patch_document(old, made, is_xml=False) == new


def test_changed_frame_is_noticed() -> None:
    made = tvi_of(b"<h1>New</h1><span data-vol=1>2</span>", is_xml=False)
    assert made is not None
    assert patch_document(b"<h1>Old</h1><span data-vol=1>1</span>", made, is_xml=False) is TableRefusal.FRAME_CHANGED
    assert patch_document(b"<h1>New</h1>", made, is_xml=False) is TableRefusal.FRAME_CHANGED


def test_table_that_lies_about_its_parts_is_noticed() -> None:
    made = tvi_of(b"<span data-vol=1>2</span>", is_xml=False)
    assert made is not None
    lie = Tvi((("1", b"3"),), made.document, made.frame)
    assert patch_document(b"<span data-vol=1>1</span>", lie, is_xml=False) is TableRefusal.NOT_WHAT_IT_SAYS
