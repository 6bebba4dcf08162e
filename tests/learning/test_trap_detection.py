"""Budgets starve traps and leave big families alone."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sim_crawl import SimCrawl

from lycosa.learning.mining import MiningLevel
from lycosa.learning.trap_guard import BASE, MOST_SOURCES, PER_DOMAIN, DomainBudget
from lycosa.learning.traps import (
    DROPPED,
    FILES_ALLOWED,
    FIRST_WAIT_S,
    MOST_FAMILIES,
    MOST_REFRAINS,
    MOST_TEXTS,
    BudgetRow,
    PageSignature,
    ParameterRow,
    PatternBudgets,
    QueryParameters,
    family_key,
    sign_page,
)
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.truth import truth_of
from lycosa.simweb.web import without_session

TRAPS = ("calendar", "path-loop", "session-ids", "soft-404")


def page(text: str, *, depth: int = 2, images: str = "", fresh: int = 0) -> PageSignature:
    return sign_page(text=text.encode(), images=images, structure="hbp", digest=text.encode(), depth=depth, fresh=fresh)


def fetched(budgets: PatternBudgets, pages: Iterable[tuple[str, PageSignature]]) -> int:
    """How many of the pages were asked for before their family was dropped or slowed; each comes a second later."""
    went = 0
    for now, (path, seen) in enumerate(pages):
        if budgets.claim(path, float(now)) == 0:
            went += 1
            budgets.note(path, seen, float(now))
    return went


def slowed() -> PatternBudgets:
    """Budgets of a host whose family `/lost/#` has just run out of credit."""
    budgets = PatternBudgets()
    while budgets.claim("/lost/0", 0.0) == 0:
        budgets.note("/lost/0", page("Sorry"), 0.0)
    return budgets


def test_family_of_one_text_waits_ever_longer_and_is_dropped() -> None:
    budgets, now, waits = PatternBudgets(), 0.0, []
    for n in range(100):
        wait_s = budgets.claim(f"/lost/{n}", now)
        if wait_s == DROPPED:
            break
        if wait_s:
            waits.append(wait_s)
            now += wait_s
            assert budgets.claim(f"/lost/{n}", now) == 0
        budgets.note(f"/lost/{n}", page("Sorry"), now)
    assert waits == [FIRST_WAIT_S * 2**n for n in range(4)]
    assert budgets.claim("/lost/999", now) == DROPPED
    assert budgets.claim("/found/999", now) == 0


def test_answers_to_many_requests_under_way_do_no_more_than_drop_the_family() -> None:
    budgets = slowed()
    for _ in range(2_000):
        budgets.note("/lost/1", page("Sorry"), 0.0)
    assert budgets.claim("/lost/1", 0.0) == DROPPED


def test_slowed_family_gets_one_request_a_wait() -> None:
    budgets, now = slowed(), FIRST_WAIT_S
    assert [budgets.claim("/lost/9", now) > 0 for _ in range(3)] == [False, True, True]


def test_one_good_page_frees_a_slowed_family() -> None:
    budgets = slowed()
    assert budgets.claim("/lost/9", 0.0) > 0
    budgets.note("/lost/6", page("Something to read at last"), 0.0)
    assert budgets.claim("/lost/9", 0.0) == 0


@pytest.mark.parametrize(
    "pages",
    [
        pytest.param(
            [(f"/thread/{n}", page(f"Thread {n} on topic w{n:x}x", depth=3)) for n in range(3_000)], id="forum"
        ),
        pytest.param(
            [
                (f"/doc/{n}.html", page(f"Chapter {chr(97 + n % 26) * (n % 40 + 1)} {n}" * 20, depth=n))
                for n in range(900)
            ],
            id="documents, each linked from the one before",
        ),
        pytest.param(
            [(f"/gallery/{n}", page("next previous", depth=n, images=f"/{n}.jpg")) for n in range(900)], id="gallery"
        ),
        pytest.param(
            [(f"/photo/{n}", page(f"Photo {n} of 900", depth=4)) for n in range(900)], id="captions by number"
        ),
        pytest.param([(f"/pool/{n}/", page(f"Index of {n}: file-{n:x}.deb")) for n in range(900)], id="directories"),
        pytest.param(
            [
                (f"/t/{n}", page("deleted" if n % 3 else f"words {n:b}".replace("1", "i").replace("0", "o")))
                for n in range(900)
            ],
            id="two of three are empty",
        ),
        pytest.param(
            [
                (f"/{n}.pdf", sign_page(text=b"", images="", structure="", digest=b"%d" % n, depth=n))
                for n in range(900)
            ],
            id="documents without text",
        ),
    ],
)
def test_big_family_with_something_to_say_is_never_slowed(pages: list[tuple[str, PageSignature]]) -> None:
    assert fetched(PatternBudgets(), pages) == len(pages)


def test_chain_that_differs_in_numbers_only_is_cut_short() -> None:
    chain = [(f"/calendar/{n}/", page(f"Events of {n}. Nothing on this day.", depth=n)) for n in range(2_000)]
    assert fetched(PatternBudgets(), chain) <= 20


def test_files_of_one_number_that_differ_in_it_alone_are_counted_beyond_a_restart() -> None:
    chain = [(f"/p{n}.html", page(f"Page {n}", depth=n)) for n in range(3_000)]
    budgets = PatternBudgets()
    assert fetched(budgets, chain[: FILES_ALLOWED // 2]) == FILES_ALLOWED // 2
    again = PatternBudgets(msgspec.msgpack.decode(msgspec.msgpack.encode(budgets.pack()), type=BudgetRow))
    assert FILES_ALLOWED // 2 <= fetched(again, chain[FILES_ALLOWED // 2 :]) <= FILES_ALLOWED // 2 + 20


@given(st.lists(st.tuples(st.text(max_size=30), st.integers(0, 3), st.integers(0, 50)), max_size=80))
def test_any_order_of_events_gives_a_verdict(events: list[tuple[str, int, int]]) -> None:
    budgets, parameters = PatternBudgets(), QueryParameters()
    for now, (path, text, depth) in enumerate(events):
        assert budgets.claim(path, float(now)) >= 0
        seen = page("x" * text, depth=depth)
        budgets.note(path, seen, float(now))
        parameters.note(path, seen.text)
        assert parameters.plain(parameters.plain(path)) == parameters.plain(path)


def test_memory_and_row_are_bounded_and_the_row_keeps_what_was_dropped() -> None:
    budgets = PatternBudgets()
    for n in range(40):
        budgets.note(f"/lost/{n}", page("Sorry"), 0.0)
    for n in range(5_000):
        budgets.note(f"/{n:b}".replace("1", "i").replace("0", "o"), page(f"t{n % 1_500}", depth=n % 7), 0.0)
    assert len(budgets._dull) + len(budgets._harmless) <= MOST_FAMILIES
    assert len(budgets._texts) <= MOST_TEXTS
    assert len(budgets._refrains) <= MOST_REFRAINS
    small = PatternBudgets()
    for n in range(40):
        small.note(f"/lost/{n}", page("Sorry"), 0.0)
    for row in (budgets.pack(), small.pack()):
        packed = msgspec.msgpack.encode(row)
        assert len(packed) < 2_000
        assert msgspec.msgpack.decode(packed, type=BudgetRow) == row
    assert PatternBudgets(small.pack()).claim("/lost/77", 0.0) == DROPPED


def test_more_dull_families_than_are_held_the_oldest_is_forgotten() -> None:
    budgets = PatternBudgets()
    names = [f"/{n:b}/".replace("1", "i").replace("0", "o") for n in range(2 * MOST_FAMILIES)]
    for name in names:
        for _ in range(3):
            budgets.note(name, page("Sorry"), 0.0)
    held = [name for name in names if family_key(name) in budgets._dull]
    assert held == names[-MOST_FAMILIES:]


def test_parameter_without_effect_is_learned_and_one_with_effect_is_not() -> None:
    parameters = QueryParameters()
    for n in range(6):
        for sid in range(2):
            parameters.note(f"/p{n}?id=7&sid={sid}", n)
            parameters.note(f"/p{n}?id=8&sid={sid}", n + 100)
    assert parameters.idle == ["sid"]
    assert parameters.plain("/other?id=7&sid=99") == "/other?id=7"
    assert parameters.was_fetched("/p0?id=7")
    row = msgspec.msgpack.decode(msgspec.msgpack.encode(parameters.pack()), type=ParameterRow)
    assert QueryParameters(row).idle == ["sid"]


def test_session_id_in_the_path_is_a_parameter() -> None:
    parameters = QueryParameters()
    for n in range(5):
        for sid in "ab":
            parameters.note(f"/p{n};jsessionid={sid}?x=1", n)
    assert parameters.plain("/q;jsessionid=c?x=1") == "/q?x=1"


def test_parameter_is_not_idle_by_one_path_alone() -> None:
    parameters = QueryParameters()
    for n in range(50):
        parameters.note(f"/index.php?id={n}", 1)
    assert parameters.plain("/index.php?id=51") == "/index.php?id=51"


def test_domain_earns_pages_by_links_from_other_domains() -> None:
    domain = DomainBudget(pages=BASE)
    assert domain.is_spent
    domain.linked_from("example.org")
    domain.linked_from("example.org")
    assert domain.budget == BASE + PER_DOMAIN
    assert not domain.is_spent


def test_domain_that_everybody_links_to_has_no_limit_and_a_small_row() -> None:
    domain = DomainBudget(pages=10**9)
    for n in range(2 * MOST_SOURCES):
        domain.linked_from(f"d{n}.example")
    assert not domain.is_spent
    packed = msgspec.msgpack.encode(domain)
    assert len(packed) < 2_000
    assert msgspec.msgpack.decode(packed, type=DomainBudget) == domain


@pytest.mark.slow
def test_traps_beside_thousands_of_pages_take_a_tenth_at_most() -> None:
    hosts = 2
    web = SimWeb(SimSettings(seed=3, hosts=hosts, pages=1_500, trouble=dict.fromkeys(TRAPS, 1.0)))
    seeds = [f"{web.linker.origin(host)}/" for host in range(hosts)]
    expected = truth_of(web, seeds, robots=False, sitemaps=False, mine="off")
    real = {web.address_of(url) for url in expected.pages}
    harmless = {web.address_of(url) for url in expected.redirects} | {(host, "/feed.xml") for host in range(hosts)}
    crawl = SimCrawl(web, budgets=True, mine=MiningLevel.OFF, most=20_000).run(range(hosts))
    places = [(fetch.host, without_session(fetch.path)) for fetch in crawl.fetches]
    fresh = len(set(places) & real)
    trapped = len(places) - fresh - len(set(places) & harmless)
    assert fresh >= 0.99 * len(real) >= 0.99 * 1_000
    assert trapped <= 0.1 * len(places)
    assert trapped > 20
