"""Mining finds what nobody links to, and a guess pays."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_crawl import SimCrawl

from lycosa.learning.mining import MiningLevel
from lycosa.learning.series import MOST_OPEN, MOST_SERIES, GuessOutcome, Miner, MinerRow
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace


def explore(miner: Miner, there: set[str], known: set[str]) -> list[str]:
    """All guesses of a miner on a host that has exactly the paths `there`."""
    made = []
    while guesses := miner.guesses(4):
        for path in guesses:
            if path in known:
                miner.record_outcome(path, GuessOutcome.KNOWN)
                continue
            made.append(path)
            miner.record_outcome(path, GuessOutcome.HIT if path in there else GuessOutcome.MISS)
    return made


def mined(there: set[str], known: set[str]) -> list[str]:
    miner = Miner()
    for path in sorted(known):
        miner.learn(path)
    return explore(miner, there, known)


def test_series_is_extended_in_both_directions_until_it_ends() -> None:
    there = {f"/page{n}.html" for n in range(1, 30)}
    guesses = mined(there, {"/", "/page7.html", "/page9.html"})
    found = set(guesses) & there
    assert found == there - {"/page7.html", "/page9.html"}
    assert len(guesses) <= len(found) + 4


def test_gap_inside_and_at_the_end_is_crossed_when_the_series_has_paid() -> None:
    there = {f"/vol{n}/" for n in range(1, 30) if n not in (5, 20, 21)}
    guesses = mined(there, {"/", "/vol1/", "/vol12/"})
    assert set(guesses) & there == there - {"/vol1/", "/vol12/"}


def test_zero_padding_is_learned_from_a_member() -> None:
    there = {f"/photo-{n:02d}.html" for n in range(1, 13)}
    guesses = mined(there, {"/", "/photo-11.html", "/photo-08.html"})
    assert set(guesses) & there == there - {"/photo-11.html", "/photo-08.html"}


def test_dates_roll_over() -> None:
    there = {"/2024/02/28/", "/2024/02/29/", "/2024/03/01/", "/2024/03/02/"}
    guesses = mined(there, {"/", "/2024/02/", "/2024/", "/2024/02/28/", "/2024/03/", "/2024/03/01/"})
    assert {"/2024/02/29/", "/2024/03/02/"} <= set(guesses)


def test_host_of_unrelated_numbers_gets_few_guesses() -> None:
    known = {"/"} | {f"/news/{n * 7919 % 99_991}.html" for n in range(500)}
    known |= {f"/item-{n * 7919 % 99_991}/about-{word}.html" for n, word in enumerate("abcdefghijklmnopqrstuvw")}
    assert len(mined({*known, "/news/"}, known)) <= 30


@given(st.lists(st.tuples(st.text("/ab01-?=&%", max_size=24), st.booleans()), max_size=60), st.integers(0, 2**32))
def test_no_guess_is_made_twice_whatever_is_learned_and_found(events: list[tuple[str, bool]], chance: int) -> None:
    miner, made = Miner(), list[str]()
    for path, is_there in events:
        miner.learn("/" + path)
        for guess in miner.guesses(3):
            made.append(guess)
            miner.record_outcome(
                guess, GuessOutcome.HIT if is_there and chance >> len(made) % 32 & 1 else GuessOutcome.MISS
            )
    assert len(made) == len(set(made))


def test_memory_and_row_are_bounded() -> None:
    miner = Miner()
    for n in range(5_000):
        miner.learn(f"/section-{n * 31 % 977}/folder-{n % 89}/word{chr(97 + n % 26)}-{n}.html")
        for guess in miner.guesses(1):
            miner.record_outcome(guess, GuessOutcome.HIT if n % 3 else GuessOutcome.MISS)
    assert len(miner._series) <= MOST_SERIES
    assert len(msgspec.msgpack.encode(miner.pack())) <= 3_000
    assert len(miner.guesses(1_000)) <= MOST_OPEN


def test_row_brings_back_a_miner_that_goes_on_where_it_was() -> None:
    there = {f"/page{n}.html" for n in range(1, 30)}
    miner = Miner()
    for path in ("/", "/page7.html", "/page9.html"):
        miner.learn(path)
    before = miner.guesses(1)[0]
    miner.record_outcome(before, GuessOutcome.HIT)
    row = msgspec.msgpack.decode(msgspec.msgpack.encode(miner.pack()), type=MinerRow)
    after = explore(Miner(row), there, set())
    assert before not in set(after)
    assert set(after) & there == there - {before, "/page7.html", "/page9.html"}


@pytest.mark.slow
def test_simulated_web_gives_up_its_unlinked_pages_cheaply() -> None:
    seed, hosts, pages = 3, 1, 1_200
    web = SimWeb(SimSettings(seed=seed, hosts=hosts, pages=pages))
    layout = web.layout
    places = [
        PagePlace(host, index, page)
        for host in range(hosts)
        for index in range(layout.folder_count(host))
        for page in range(1 + layout.folder(host, index).articles + layout.folder(host, index).series)
    ]
    unlinked = {(place.host, layout.path_of(place)) for place in places if not layout.is_linked(place)}
    crawl = SimCrawl(web, mine=MiningLevel.ALL).run(range(hosts))
    found = {(fetch.host, fetch.path) for fetch in crawl.fetches if fetch.status == 200} & unlinked
    guesses = sum(fetch.is_guess for fetch in crawl.fetches)
    assert len(found) >= 0.8 * len(unlinked) > pages / 10
    assert guesses <= 1.3 * len(found)
