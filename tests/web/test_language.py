"""The language of texts, by a detector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web import DetectedLanguage, detect_language, language_of_text

# The first article of the Universal Declaration of Human Rights, in the public domain.
ARTICLE = {
    "en": "All human beings are born free and equal in dignity and rights. They are endowed with reason.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison.",
    "es": "Todos los seres humanos nacen libres e iguales en dignidad y derechos y, dotados como están de razón.",
    "it": "Tutti gli esseri umani nascono liberi ed eguali in dignità e diritti. Essi sono dotati di ragione.",
    "pt": "Todos os seres humanos nascem livres e iguais em dignidade e em direitos. Dotados de razão.",
    "nl": "Alle mensen worden vrij en gelijk in waardigheid en rechten geboren. Zij zijn begiftigd met verstand.",
    "sv": "Alla människor är födda fria och lika i värde och rättigheter. De är utrustade med förnuft och samvete.",
    "pl": "Wszyscy ludzie rodzą się wolni i równi pod względem swej godności i swych praw. Są oni obdarzeni rozumem.",
    "ru": "Все люди рождаются свободными и равными в своем достоинстве и правах. Они наделены разумом и совестью.",
    "ja": "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。",
    "zh": "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق. وقد وهبوا عقلاً وضميرًا.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.",
}


@pytest.mark.parametrize("language", ARTICLE)
def test_language_of_two_sentences_is_found(language: str) -> None:
    found = detect_language(ARTICLE[language])
    assert found.language == language
    assert found.score > 0.8


def test_names_and_menus_before_a_text_do_not_count() -> None:
    menu = "Home News Shop Contact About Search Login Register Help Imprint\n" * 4
    assert detect_language(menu + ARTICLE["de"] * 8).language == "de"


@pytest.mark.parametrize("text", ["", " ", "12 345.67 %", "ok", "© 2024"])
def test_text_that_says_nothing_has_no_language(text: str) -> None:
    assert detect_language(text).language == ""


@given(st.text(max_size=700))
def test_any_text_gives_a_result(text: str) -> None:
    found = detect_language(text)
    assert isinstance(found, DetectedLanguage)
    assert 0 <= found.score <= 1


def test_english_is_told_by_its_small_words_without_the_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "The panels on these roofs are there for the heating of water, and it is not easy to see what they can do. " * 3
    )
    monkeypatch.setattr("lycosa.web.language._detector", lambda: pytest.fail("the detector was asked"))

    assert language_of_text(text) == "en"


@pytest.mark.parametrize("language", ARTICLE)
def test_other_texts_have_the_language_that_the_detector_finds(language: str) -> None:
    assert language_of_text(ARTICLE[language]) == language


def test_few_english_words_in_another_text_do_not_make_it_english() -> None:
    title = "The Art of the Deal, and that for which you have not asked"

    assert language_of_text(f"{ARTICLE['de']} {title} {ARTICLE['de'] * 3}") == "de"
