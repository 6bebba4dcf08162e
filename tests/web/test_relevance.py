"""Relevance: pages by the topic's words, links before download, what is learned, and the bounds of all of it."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.web.relevance import BORROWED, RELEVANCE_BANDS, Calibration, Topic, TrackRecord, head_pays
from lycosa.web.words import MOST_WEIGHT, REFRESH_PAGES, Lexicon

SOLAR = (
    "Solar power storage pays off: a battery stores solar power by day, and the storage feeds the inverter at night. "
)
CHESS = (
    "The gambit was declined and the endgame with rook and pawns ended in a draw after eighty moves of the players. "
)


def trained(pages: int = 60) -> Topic:
    """A topic that has seen two sites, one on it and one not."""
    topic = Topic.of_words("solar power storage")
    for i in range(pages):
        topic.read(f"http://sun.example/inverters/{i}.html", title="Solar inverter", text=SOLAR * 5)
        topic.read(f"http://play.example/gambits/{i}.html", title="Chess gambit", text=CHESS * 5)
    return topic


def test_page_with_all_words_is_relevant_and_page_without_is_not() -> None:
    topic = Topic.of_words("solar power storage")
    assert topic.page(title="Solar", text=SOLAR * 3) > 0.8
    assert topic.page(title="Chess", text=CHESS * 3) == 0.0


def test_page_with_one_of_the_words_lies_between() -> None:
    topic = Topic.of_words("solar power storage")
    assert 0.1 < topic.page(text="The solar eclipse was watched by many. " + CHESS) < 0.5


def test_plural_and_accents_count_as_the_word() -> None:
    assert Topic.of_words("battery café").page(title="Batteries and cafes") > 0.6


def test_topic_without_a_word_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one word"):
        Topic.of_words(" -- ")


def test_stop_word_of_the_query_loses_its_say_while_crawling() -> None:
    topic = Topic.of_words("the solar")
    before = topic.page(text=CHESS * 3)
    for i in range(50):
        topic.read(f"http://play.example/{i}", title="Chess", text=CHESS * 3)
    assert topic.page(text=CHESS * 3) < before / 3
    assert topic.page(title="Solar", text=SOLAR * 3) > 0.7


def test_example_pages_make_a_topic() -> None:
    topic = Topic.of_pages([SOLAR * 4, SOLAR * 2 + "Panels and inverters of the plant."])
    for i in range(20):  # by which it learns that "the" is no word of the topic
        topic.read(f"http://play.example/{i}", title="Chess", text=CHESS * 3)
    assert topic.page(text=SOLAR * 3) > 0.7
    assert topic.page(text=SOLAR * 3) > 3 * topic.page(text=CHESS * 3)


def test_link_is_judged_by_its_anchor_before_anything_is_learned() -> None:
    topic = Topic.of_words("solar power storage")
    on, off = topic.links(["Solar storage", "Chess"], ["http://a.example/1", "http://a.example/2"], parent=0.5)
    assert on > off


def test_link_with_words_that_came_with_the_topic_is_preferred() -> None:
    topic = trained()
    url = "http://new.example/{}.html"
    on, off, unknown = topic.links(
        ["inverter night", "gambit rook", "xyzzy"], [url.format(i) for i in range(3)], parent=0.5
    )
    assert on > 0.8 > unknown > off


def test_link_without_words_follows_folder_then_host_then_parent() -> None:
    topic = trained()
    urls = ["http://sun.example/inverters/q9z", "http://play.example/gambits/q9z"]
    good, bad = topic.links(["", ""], urls, parent=0.3)
    assert good > 0.8
    assert bad < 0.2
    fresh = "http://fresh.example/q9z"
    assert topic.links([""], [fresh], parent=0.9)[0] > topic.links([""], [fresh], parent=0.0)[0]


def test_folder_whose_pages_disappoint_loses_its_standing() -> None:
    topic = trained()
    url = "http://sun.example/archive/next.html"
    before = topic.links([""], [url], parent=0.5)[0]
    for i in range(20):
        topic.read(f"http://sun.example/archive/{i}.html", title="Chess", text=CHESS * 3)
    assert topic.links([""], [url], parent=0.5)[0] < before / 2


def test_learned_words_alone_make_no_page_relevant() -> None:
    topic = trained()
    text = "inverter battery night feeds stores pays " * 30
    assert 0.0 < topic.page(title="Inverter", text=text) <= BORROWED


def test_predictions_are_corrected_by_their_outcomes() -> None:
    topic = Topic.of_words("solar")
    for i in range(100):
        topic.read(f"http://play.example/{i}", text=CHESS, predicted=0.7)
    assert topic.expected(0.7) < 0.3
    assert topic.expected(0.05) <= topic.expected(0.7) <= topic.expected(0.95)


def test_refine_moves_the_prediction_towards_what_the_head_says() -> None:
    topic = trained()
    assert topic.refine(0.5, title="Chess gambit", text=CHESS) < 0.25
    assert topic.refine(0.3, title="Solar power storage", text=SOLAR) > 0.6
    assert topic.refine(0.4) == 0.4


def test_head_is_read_only_in_doubt_and_only_where_pages_are_large() -> None:
    assert head_pays(0.3, page_bytes=60_000)
    assert not head_pays(0.3, page_bytes=5_000)
    assert not head_pays(0.3, page_bytes=None)
    assert not head_pays(0.9, page_bytes=1_000_000)
    assert not head_pays(0.01, page_bytes=60_000)
    assert not head_pays(0.3, page_bytes=60_000, request_bytes=250_000)


def test_bands_rise_with_the_prediction_and_use_the_whole_range() -> None:
    topic = Topic.of_words("solar")
    bands = [topic.band(i / 100) for i in range(101)]
    assert bands == sorted(bands)
    assert set(bands) == set(range(RELEVANCE_BANDS))


@given(
    st.lists(st.tuples(st.text(max_size=40), st.text(st.characters(exclude_characters="\n"), max_size=60)), max_size=8),
    st.floats(0, 1),
)
def test_any_links_give_numbers_from_0_to_1_one_each(links: list[tuple[str, str]], parent: float) -> None:
    topic = trained(2)
    found = topic.links([a for a, _ in links], [u for _, u in links], parent=parent)
    assert len(found) == len(links)
    assert all(0 <= number <= 1 for number in found)


@given(st.text(max_size=80), st.text(max_size=2_000), st.text(max_size=80))
def test_any_page_gives_a_number_from_0_to_1(title: str, text: str, url: str) -> None:
    topic = trained(1)
    assert 0 <= topic.read(url, title=title, text=text, predicted=0.5) <= 1
    assert 0 <= topic.refine(0.5, title=title, text=text) <= 1


def test_lexicon_forgets_rather_than_grows() -> None:
    lexicon = Lexicon(["solar"], vocabulary=200)
    for i in range(300):
        lexicon.count({"often", *(f"word{i}-{j}" for j in range(10))}, is_relevant=i % 2 == 0)
    assert len(lexicon._pages) <= 200 + 10 * REFRESH_PAGES
    assert lexicon._pages["often"] > 1


def test_lexicon_bounds_the_evidence_of_a_word() -> None:
    lexicon = Lexicon()
    for _ in range(1_000):
        lexicon.count({"good"}, is_relevant=True)
        lexicon.count({"bad"}, is_relevant=False)
    assert lexicon["good"] == MOST_WEIGHT
    assert lexicon["bad"] == -MOST_WEIGHT
    assert lexicon["unknown"] == 0.0


def test_ledger_keeps_the_names_in_use() -> None:
    ledger = TrackRecord(10)
    for i in range(1_000):
        ledger.add("busy", 1.0)
        ledger.add(f"once {i}", 0.0)
    assert len(ledger) <= 20
    assert ledger.get("busy") == (1_000.0, 1_000)
    assert ledger.get("once 1") is None


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=60))
def test_calibration_never_falls(outcomes: list[tuple[float, float]]) -> None:
    calibration = Calibration()
    for predicted, actual in outcomes:
        calibration.add(predicted, actual)
    found = [calibration.actual(i / 50) for i in range(51)]
    assert all(low <= high + 1e-9 for low, high in pairwise(found))


@given(st.lists(st.sampled_from(["solar", "Solars,", "batteries", "insolar", "battery-", "storage", "x", "\n", "é"])))
def test_text_is_judged_alike_searched_and_split(some: list[str]) -> None:
    searching = Topic.of_words("solar battery")
    splitting = Topic.of_words("solar battery")
    assert searching._marks
    splitting._marks = []
    assert searching.page(text=" ".join(some)) == splitting.page(text=" ".join(some))


def test_topic_of_many_words_is_found_in_a_text() -> None:
    topic = Topic.of_words(" ".join(f"word{chr(97 + i)}{chr(110 + i % 3)}" for i in range(26)))
    assert not topic._marks
    assert topic.page(text="wordan " * 5) > topic.page(text="other " * 5)
