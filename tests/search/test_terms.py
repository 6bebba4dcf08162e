"""The terms that the kernel remembers are those that the tokeniser finds."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.search import documents
from lycosa.search.documents import LANGUAGES, OTHER, analyser, spaced, terms
from lycosa.search.identifiers import parts_in
from lycosa.web.kernel import native

pytestmark = pytest.mark.skipif(native() is None, reason="without the kernel a text is handed on as it is")
WORDS = ["running", "Foxes", "ÉCOLE", "Straße", "½", "x²", "日本語", "naïve’s", "cafe\u0301", "a" * 49, "b" * 50]


@given(st.sampled_from(LANGUAGES), st.lists(st.sampled_from(WORDS) | st.text(max_size=12), max_size=20))
def test_terms_of_a_text_are_those_of_its_tokeniser_in_the_same_places(language: str, words: list[str]) -> None:
    text = " ".join(words).encode("utf-8", "ignore").decode()

    kept = [term for term in terms(text, language).split(" ") if term not in ("", ".")]

    assert kept == analyser(language).analyze(spaced(text))


@pytest.mark.parametrize("language", ["en", OTHER])
def test_no_term_has_what_must_be_escaped_in_json(language: str) -> None:
    characters = "".join(chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000)
    words = (" ".join(characters[at : at + 40]) for at in range(0, len(characters), 40))

    found = {character for text in words for term in analyser(language).analyze(text) for character in term}

    assert not {'"', "\\", *map(chr, range(32))} & found
    assert {"a", "日"} <= found


def test_word_that_is_too_long_keeps_its_place() -> None:
    assert terms(f"one {'x' * 60} two", "en").split() == ["one", ".", "two"]


@given(
    st.lists(
        st.sampled_from([*WORDS, "getElementById", "XMLHttpRequest2", "é–getBar", "太aB"])
        | st.text("aB1é _.太", max_size=12)
    )
)
def test_words_in_identifiers_are_found_along_with_the_terms(words: list[str]) -> None:
    text, url = spaced(" ".join(words)), "http://a.example/getUrlOf"
    known, others = (native().TermMap(analyser(language).analyze) for language in ("en", OTHER))  # type: ignore[union-attr]

    for page in (text, "otherWords", text):  # it remembers what it has seen, page by page
        written, rest = known.document(
            '{"page":1}', "en", ("aTitle", "aHeading", page.encode()), url, "u_x", others, None
        )
        found = msgspec.json.decode(written)

        expected = {"title_en": "aTitle", "heads_en": "aHeading", "text_en": page}
        assert {field: found[field] for field in expected} == {
            field: known.terms(expected[field]) for field in expected
        }
        assert (found["page"], found["url"]) == (1, others.terms("u_x"))
        parts = set(parts_in("aTitle", url, page).split())
        assert sorted(rest.split()) == (sorted(parts) if rest else [])
        assert rest or sorted(found["parts"].split()) == sorted(set(known.terms(" ".join(parts)).split()))


@given(
    st.lists(
        st.sampled_from(["the", "THE", "und", "И", "не", "é", "É", "naïve", "\x85", "x" * 40]) | st.text(max_size=8)
    )
)
def test_kernel_and_twin_count_the_same_telling_words(words: list[str]) -> None:
    text = " ".join(words).encode("utf-8", "ignore")

    assert documents._telling_words().counts(text, documents.SAMPLE_CHARS) == documents._telling_counts(text)


def test_only_the_first_characters_tell_the_language() -> None:
    text = f"{'é' * (documents.SAMPLE_CHARS - 4)} the and".encode()

    assert sum(documents._telling_words().counts(text, documents.SAMPLE_CHARS)) == 1
    assert sum(documents._telling_counts(text)) == 1
