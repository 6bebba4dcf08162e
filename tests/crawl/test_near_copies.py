"""Families of near-copies of one text are given up, those of near-copies of distinct texts are not."""

import random
from pathlib import Path

import pytest

from lycosa.learning.traps import MOST_WAITS, START, Judgement, PageSignature, PatternBudgets, sign_page
from lycosa.records import Family
from lycosa.store import CollectionStore, page_at
from lycosa.web import url_key
from tests.crawl.small_site import FIRST, crawl_site, links

HOST, PAGES = FIRST.rstrip("/"), 120
LETTERS = "abcdefghijklmnopqrst"


def prose(name: str, seed: int = 0) -> str:
    draw = random.Random(f"{name}{seed}")
    return " ".join("".join(draw.choices(LETTERS, k=6)) for _ in range(300))


def word(number: int) -> str:
    """A word without digits, so that pages with it do not differ in numbers only."""
    return "".join(LETTERS[int(digit)] for digit in str(number)) * 3


def crawl_family(path: Path, text_of: "dict[int, str]") -> list[str]:
    """Crawls a host with other pages and a family of numbered ones; returns what of the family was asked for."""

    def answer(url: str) -> str | None:
        place = url.removeprefix(HOST)
        if place == "/":
            return links(*(f"/other-{word(number)}" for number in range(40)), *(f"/item/{n}" for n in text_of))
        if place.startswith("/item/"):
            return f"<p>{text_of[int(place[6:])]}</p>"
        return f"<p>{prose(place)}</p>"

    asked, _ = crawl_site(path, answer, delay_s=0.0)
    return [url for url in asked if "/item/" in url]


@pytest.mark.slow
def test_family_of_near_copies_of_one_text_is_given_up(tmp_path: Path) -> None:
    asked = crawl_family(tmp_path, {number: f"{prose('same')} {word(number)}" for number in range(PAGES)})
    assert 5 < len(asked) < PAGES // 2
    assert "pattern-dropped" in (tmp_path / "log.jsonl").read_text()


@pytest.mark.slow
def test_family_of_near_copies_of_distinct_texts_is_fetched(tmp_path: Path) -> None:
    texts = {2 * number: prose("text", number) for number in range(PAGES // 2)}
    texts |= {number + 1: f"{text} {word(number)}" for number, text in texts.items()}
    assert len(crawl_family(tmp_path, texts)) == PAGES


@pytest.mark.slow
def test_family_whose_pages_differ_in_numbers_only_is_fetched(tmp_path: Path) -> None:
    assert len(crawl_family(tmp_path, {number: f"{prose('same')} {number}" for number in range(PAGES)})) == PAGES


def test_rows_have_the_simhash_and_the_canonical_url(tmp_path: Path) -> None:
    pages = {
        "/": f"<p>{prose('home')}</p>" + links("/a", "/b", "/copy", "/short"),
        "/a": f"<link rel=canonical href='/b#top'><p>{prose('a')}</p>",
        "/b": f"<link rel=canonical href='{HOST}/b'><p>{prose('b')}</p>",
        "/copy": f"<link rel=canonical href='{HOST}/b'><p>{prose('b')}</p>",
        "/short": "<p>short</p>",
    }
    crawl_site(tmp_path, lambda url: pages.get(url.removeprefix(HOST)))
    with CollectionStore.open(tmp_path, read_only=True) as collection:
        rows = {path: page_at(collection.state, url_key(HOST + path)) for path in pages}
        assert len(list(collection.state.walk(Family.PAGE))) == len(pages)
    assert {path: len(row.simhash) for path, row in rows.items() if row} == dict.fromkeys(pages, 16) | {"/short": 0}
    named = {path: row.canonical.removeprefix(HOST) for path, row in rows.items() if row}
    assert named == {"/": "", "/a": "/b", "/b": "=", "/copy": "/b", "/short": ""}
    assert rows["/b"] and rows["/copy"] and rows["/b"].simhash == rows["/copy"].simhash


def signature(number: int) -> PageSignature:
    return sign_page(text=word(number).encode() * 9, images="", structure="", digest=b"", depth=1)


def test_family_of_held_pages_is_given_up_when_they_are_settled_as_dull() -> None:
    budgets = PatternBudgets()
    for number in range(20):
        assert budgets.note(f"/item/{number}", signature(number), 0.0, holds_good=True) is Judgement.GOOD
    assert budgets.claim("/item/99", 0.0) == 0.0
    for number in range(START + MOST_WAITS + 1):
        budgets.judge_held(f"/item/{number}", signature(number), Judgement.DULL, 0.0)
    assert budgets.claim("/item/99", 1e9) == float("inf")


def test_page_that_is_settled_as_good_pardons_its_family() -> None:
    budgets = PatternBudgets()
    budgets.note("/item/1", signature(1), 0.0, holds_good=True)
    for _ in range(START + MOST_WAITS + 1):
        budgets.judge_held("/item/1", signature(1), Judgement.DULL, 0.0)
    budgets.judge_held("/item/1", signature(1), Judgement.GOOD, 0.0)
    assert budgets.claim("/item/99", 0.0) == 0.0
