"""SimHashes of main texts: near for near texts, the same from the kernel and its twin, none for short texts."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import Document, identify_media, native, simhash, simhash_distance
from lycosa.web.html import analyse_html
from lycosa.web.page import read_natively
from lycosa.web.similarity import LEAST_WORDS
from tests.web.nearness import are_near

PIECES = st.sampled_from(
    [
        "one",
        "two",
        "three 4",
        " ",
        "\n",
        "Über",
        "資料と記録",
        "ไทย",
        "don’t",
        "\x00",
        "🦊",
        "a" * 30,
        "–",
        "\u0fff",
        "\u2e7f",
    ]
)
MARKUP = [
    "<main>", "</main>", "<nav>", "</nav>", "<p>", "</p>", "<a href=/x>", "</a>", "<a>", "<div class=sidebar>",
    "</div>", "<svg><a xlink:href=/y>", "</svg>", "<a href>", "<h1>", "</h1>", "<script>x</script>", "<footer>",
    "<b>", "</b>", "<template>", "</template>", "<table>", "<tr>", "<td>", "</table>",
    *(" ".join(f"{word}{number}" for number in range(40)) for word in "abcdef"),
]  # fmt: skip


def words(count: int, name: str = "word") -> list[str]:
    return [f"{name}{number}" for number in range(count)]


def by_twin(text: str) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lycosa.web.similarity.native", lambda: None)
        return simhash(text)


@pytest.mark.skipif(native() is None, reason="the kernel is not installed")
@given(st.lists(PIECES, min_size=50, max_size=400))
def test_kernel_and_twin_have_the_same_simhash(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert simhash(text) == by_twin(text)


@pytest.mark.skipif(native() is None, reason="the kernel is not installed")
def test_kernel_and_twin_agree_on_a_text_with_more_shingles_than_a_counter_of_votes_holds() -> None:
    text = " ".join(words(2_000))
    assert simhash(text) == by_twin(text) != b""


@pytest.mark.skipif(native() is None, reason="the kernel is not installed")
@given(st.lists(st.sampled_from(MARKUP), max_size=40))
def test_kernel_and_twin_hash_the_same_part_of_a_page(parts: list[str]) -> None:
    body = "".join(parts).encode()
    document = Document(body, "http://a.example/", identify_media("text/html", body), "UTF-8", wants_simhash=True)
    page = read_natively(document)
    assert page is None or page.simhash == analyse_html(document).simhash


@pytest.mark.parametrize("changed", [1, 4])
def test_texts_that_differ_in_few_words_are_near(changed: int) -> None:
    draw, near = random.Random(7), 0
    for _ in range(50):
        text = [f"{draw.randrange(5_000)}" for _ in range(400)]
        other = list(text)
        at = draw.randrange(390)
        other[at : at + changed] = words(changed)
        near += are_near(simhash(" ".join(text)), simhash(" ".join(other)))
    assert near >= 49


def test_texts_that_differ_in_a_third_of_their_words_are_not_near() -> None:
    text = words(300)
    assert not are_near(simhash(" ".join(text)), simhash(" ".join(text[:200] + words(100, "other"))))


def test_words_in_another_order_are_another_text() -> None:
    assert not are_near(simhash(" ".join(words(300))), simhash(" ".join(reversed(words(300)))))


def test_short_text_has_no_simhash_and_is_near_to_nothing() -> None:
    short, long = " ".join(words(LEAST_WORDS - 1)), " ".join(words(LEAST_WORDS))
    assert (simhash(short), len(simhash(long))) == (b"", 16)
    assert not are_near(simhash(short), simhash(short))


def test_text_without_spaces_is_compared_by_its_characters() -> None:
    draw = random.Random(3)
    text = "".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(500))
    assert are_near(simhash(text), simhash(text[:250] + "新" + text[250:]))


def test_unsure_bits_do_not_count() -> None:
    one, other = (0b1011).to_bytes(8) + (0b0001).to_bytes(8), (0b0000).to_bytes(8) + (0b0010).to_bytes(8)
    assert simhash_distance(one, other) == 1


def test_links_and_navigation_do_not_count() -> None:
    text = " ".join(words(100))

    def hashed(body: str) -> bytes:
        raw = body.encode()
        media = identify_media("text/html", raw)
        return analyse_html(Document(raw, "http://a.example/", media, "UTF-8", wants_simhash=True)).simhash

    plain = hashed(f"<p>{text}</p>")
    assert (
        hashed(f"<nav>{' '.join(words(50, 'nav'))}</nav><p>{text}</p><a href=/x>{' '.join(words(50, 'x'))}</a>")
        == plain
    )
    assert hashed(f"<p><a href=/x>{text}</a></p>") == b""
