"""Verdicts: what counts as a change of content, what is learned to be volatile, what is a change of state."""

import io
from html import escape

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from lycosa.recrawl.change.content import Masks, content_of
from lycosa.recrawl.change.structure import structure_differs
from lycosa.recrawl.change.verdict import (
    ChangeKind,
    ChangeVerdict,
    ChangeWord,
    Comparison,
    Presence,
    Version,
    change_of_state,
    compare,
    judge_file,
    judge_page,
    presence_of,
)
from lycosa.web.page import analyse_page

PAGE = "<title>T</title><nav><a href=/n>n</a></nav><main><h1>Head</h1><p>{text}</p><img src={image} alt=x>{more}</main>"


def version(text: str = "Some words", more: str = "", image: str = "/i.png", frame: str = PAGE) -> Version:
    body = frame.format(text=text, more=more, image=image).encode()
    return Version(analyse_page(body, url="http://h.example/", content_type="text/html; charset=utf-8"), body)


def kind(old: Version, new: Version) -> ChangeKind:
    return compare(old, new).verdict.kind


def visits(*versions: Version) -> list[ChangeVerdict]:
    """The verdicts on a page that was stored as the first version and then visited."""
    stored, masks, digest, found = versions[0], Masks(), b"", []
    for new in versions[1:]:
        compared: Comparison = judge_page(new, masks, digest, lambda stored=stored: stored)
        masks, digest = compared.masks, compared.digest
        stored = new if compared.verdict.is_change else stored
        found.append(compared.verdict)
    return found


@pytest.mark.parametrize(
    ("new", "expected"),
    [
        (version("Other words"), ChangeKind.TEXT),
        (version("words Some"), ChangeKind.TEXT),
        (version("Some <b>words</b>"), ChangeKind.STRUCTURE),
        (version(image="/j.png"), ChangeKind.IMAGE),
        (version(frame=PAGE.replace("alt=x", "alt=y")), ChangeKind.IMAGE),
        (version(frame=PAGE.replace("alt=x", "alt=x width=64")), ChangeKind.IMAGE),
        (version(frame=PAGE.replace("alt=x", "alt=x srcset='/i.png 1x, /i2.png 2x'")), ChangeKind.IMAGE),
        (version(more="<a href=/x>Some</a>"), ChangeKind.STRUCTURE),
        (version(), ChangeKind.NONE),
        (version("Some\n   words"), ChangeKind.VOLATILE),
        (version(more="<!-- built 3 May -->"), ChangeKind.VOLATILE),
        (version(more="<script>let n=1</script>"), ChangeKind.VOLATILE),
        (version(frame=PAGE.replace("<p>", "<p class=new>")), ChangeKind.VOLATILE),
        (version(frame=PAGE.replace("href=/n>n", "href=/m>m")), ChangeKind.VOLATILE),
    ],
)
def test_verdict_on_one_edit_names_its_kind(new: Version, expected: ChangeKind) -> None:
    assert kind(version(), new) is expected


def test_verdict_on_a_link_that_leads_elsewhere_is_text() -> None:
    old, new = version(more="<a href=/a>go</a>"), version(more="<a href=/b>go</a>")
    found = compare(old, new).verdict
    assert (found.kind, found.where, found.size) == (ChangeKind.TEXT, "1: /b", 1)


def test_verdict_on_text_and_structure_names_the_first_and_keeps_the_other() -> None:
    found = compare(version(), version("Other <i>words</i>", image="/k.png")).verdict
    assert (found.kind, found.also) == (ChangeKind.STRUCTURE, (ChangeKind.TEXT, ChangeKind.IMAGE))
    assert found.where == "html > body > main > p: +i"


def test_tags_with_the_same_first_and_last_letter_differ_for_the_verdict() -> None:
    old, new = version(more="<del>x</del>"), version(more="<dl>x</dl>")
    assert structure_differs(_strings(old), _strings(new)) is None
    assert kind(old, new) is ChangeKind.STRUCTURE


def _strings(of: Version) -> tuple[str, str]:
    return of.page.structure_first, of.page.structure_last


@pytest.mark.parametrize(
    "text",
    [
        "Read {n}7 times, last from {n}ab{n}c.",
        "Last updated Monday, {n} May 2026 1{n}:22",
        "Visitors today: {n},312",
        "Generated in 0.03{n} s",
        "{n} minutes ago",
    ],
)
def test_values_that_change_on_every_visit_are_volatile_from_the_third(text: str) -> None:
    kinds = [verdict.kind for verdict in visits(*(version(text.format(n=n)) for n in range(1, 7)))]
    assert kinds == [ChangeKind.TEXT] + [ChangeKind.VOLATILE] * 4


def test_links_with_a_session_id_are_volatile_from_the_third_visit() -> None:
    pages = [version(more=f"<a href='/go?sid={n}f3ab2c{n}'>go</a>") for n in range(1, 6)]
    assert [verdict.kind for verdict in visits(*pages)] == [ChangeKind.TEXT] + [ChangeKind.VOLATILE] * 3


def test_image_of_another_size_is_a_change_also_where_its_address_changes_on_every_visit() -> None:
    pages = [version(image=f"/i.png?{n}7 width={64 if n < 5 else 32}") for n in range(6)]
    assert [verdict.kind for verdict in visits(*pages)] == [ChangeKind.IMAGE] + [ChangeKind.VOLATILE] * 3 + [
        ChangeKind.IMAGE
    ]


def test_edit_beside_a_learned_part_is_a_change() -> None:
    counter = [f"<p>Read {n}7 times</p>" for n in range(6)]
    pages = [version(more=more) for more in counter[:4]] + [version("New words", more=counter[4])]
    assert visits(*pages)[-1].kind is ChangeKind.TEXT


def test_part_with_a_mark_is_volatile_at_once() -> None:
    pages = [version(more=f"<p><span data-vol=1>whatever {word}</span></p>") for word in ("here", "there")]
    assert visits(*pages)[0].kind is ChangeKind.VOLATILE


def test_words_that_change_on_every_visit_stay_changes() -> None:
    pages = [version(word) for word in ("one", "two", "three", "four", "five")]
    assert {verdict.kind for verdict in visits(*pages)} == {ChangeKind.TEXT}


def test_value_that_changed_only_now_and_then_stays_a_change() -> None:
    masks, digest, stored = Masks(), b"", version("Version 1.0")
    for number in range(1, 5):
        new = version(f"Version 1.{number}")
        compared = judge_page(new, masks, digest, lambda stored=stored: stored)
        assert compared.verdict.kind is ChangeKind.TEXT
        masks, digest, stored = compared.masks, compared.digest, new
        for _ in range(4):  # visits on which it was the same
            masks = masks.unchanged()


def test_prices_in_a_list_are_told_apart_by_their_neighbours() -> None:
    def shop(first: int, second: int) -> Version:
        return version(more=f"<b>Apple</b><i>{first} EUR</i><b>Pear</b><i>{second} EUR</i>")

    found = visits(shop(1, 9), shop(2, 9), shop(3, 9), shop(4, 9), shop(5, 8))
    assert [verdict.kind for verdict in found] == [
        ChangeKind.TEXT,
        ChangeKind.VOLATILE,
        ChangeKind.VOLATILE,
        ChangeKind.TEXT,
    ]


def test_stored_version_is_not_read_when_the_digest_knows_the_page() -> None:
    first = compare(version(), version("Some  words"))
    again = judge_page(version("Some   words"), first.masks, first.digest, lambda: pytest.fail("it was read"))
    assert again.verdict.kind is ChangeKind.VOLATILE


def test_stored_version_that_cannot_be_read_makes_everything_a_change() -> None:
    assert judge_page(version(), Masks(), b"", lambda: None).verdict.kind is ChangeKind.TEXT


@pytest.mark.parametrize(
    ("body", "content_type", "expected"),
    [
        (b"<p>words", "text/html", Presence.PAGE),
        (b"", "text/html", Presence.EMPTY),
        (b"  \n<html><body></body></html>", "text/html", Presence.EMPTY),
        (b"%PDF-1.7 ...", "application/pdf", Presence.FILE),
        (b"%PDF-1.7 ...", "text/html", Presence.FILE),
        (b"\x89PNG\r\n\x1a\n", "image/png", Presence.IMAGE),
        (b"<h1>Sign in</h1><form><input name=u><input type=password></form>", "text/html", Presence.LOGIN),
        (b"<p>" + b"long words " * 300 + b"<input type=password>", "text/html", Presence.PAGE),
    ],
)
def test_presence_of_an_answer_says_what_stands_there(body: bytes, content_type: str, expected: Presence) -> None:
    page = analyse_page(body, url="http://h.example/", content_type=content_type)
    assert presence_of(page, body) is expected


@pytest.mark.parametrize(
    ("old", "new", "expected", "word"),
    [
        (Presence.PAGE, Presence.FILE, ChangeKind.GONE, ChangeWord.REMOVED),
        (Presence.PAGE, Presence.EMPTY, ChangeKind.GONE, ChangeWord.REMOVED),
        (Presence.PAGE, Presence.LOGIN, ChangeKind.GONE, ChangeWord.REMOVED),
        (Presence.PAGE, Presence.GONE, ChangeKind.GONE, ChangeWord.REMOVED),
        (Presence.PAGE, Presence.MOVED, ChangeKind.MOVED, ChangeWord.CHANGED),
        (Presence.GONE, Presence.PAGE, ChangeKind.BACK, ChangeWord.NEW),
        (Presence.LOGIN, Presence.PAGE, ChangeKind.BACK, ChangeWord.NEW),
        (Presence.GONE, Presence.FILE, ChangeKind.BACK, ChangeWord.NEW),
    ],
)
def test_change_of_presence_is_a_change_of_state(
    old: Presence, new: Presence, expected: ChangeKind, word: ChangeWord
) -> None:
    found = change_of_state(old, new)
    assert found is not None
    assert (found.kind, found.word) == (expected, word)
    assert change_of_state(old, old) is None


@given(st.binary(max_size=400), st.sampled_from(["text/html", "text/plain", "application/rss+xml", "image/png", None]))
def test_content_of_any_bytes_is_equal_to_itself(body: bytes, content_type: str | None) -> None:
    page = analyse_page(body, url="http://h.example/", content_type=content_type)
    one, two = Version(page, body), Version(page, body)
    assert content_of(page, body) == content_of(page, body)
    assert compare(one, two).verdict.kind is ChangeKind.NONE


@given(st.text(max_size=300))
def test_masks_learned_from_any_text_never_hide_a_change_of_words(text: str) -> None:
    text = escape(text)
    masks = compare(version(text), version(text + " 1")).masks
    masks = compare(version(text + " 1"), version(text + " 2"), masks).masks
    assert compare(version(text + " 2"), version(text + " zebra"), masks).verdict.is_change


def test_image_encoded_anew_shows_the_same_and_another_does_not() -> None:
    pixels = np.random.default_rng(2).random((64, 64)) < 0.5
    old = Version(analyse_page(png(pixels), url="http://h.example/i.png", content_type="image/png"), png(pixels))
    again, other = png(pixels, compress_level=1), png(~pixels)
    assert again != old.body
    same = judge_file(Presence.IMAGE, again, b"", lambda: old)
    assert same.verdict.kind is ChangeKind.VOLATILE
    assert judge_file(Presence.IMAGE, again, same.digest, lambda: pytest.fail("it was read")) == same
    assert judge_file(Presence.IMAGE, other, b"", lambda: old).verdict.kind is ChangeKind.IMAGE
    assert judge_file(Presence.IMAGE, b"no image", b"", lambda: old).verdict.kind is ChangeKind.IMAGE
    assert judge_file(Presence.FILE, b"other", b"", lambda: None).verdict.kind is ChangeKind.TEXT


def png(pixels: np.ndarray, **options: int) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels.astype(np.uint8) * 255).save(out, "PNG", **options)
    return out.getvalue()
