"""The policies over a real frontier: the papers' examples, steps of different hosts, windows to and fro, bands."""

from collections import Counter, defaultdict
from collections.abc import Sequence

import pytest
from frontier_world import World, built_in
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.errors import PartError
from lycosa.frontier.host_cache import MemoryLimits
from lycosa.frontier.lease import Lease
from lycosa.frontier.policy import PLAIN, LinkSource, Policy, Ranking, Walk
from lycosa.frontier.politeness import HostGroup, Politeness
from lycosa.frontier.rankings import PValue, Relevance, pvalue, three_lists
from lycosa.frontier.rows import HostRow, RequestKind, UrlState
from lycosa.web.relevance import Topic
from lycosa.web.url import Url, parse_url, url_key

EXAMPLE = {"A": (13, 8), "B": (22, 10), "C": (17, 9), "D": (10, 11), "E": (5, 3)}
POLICIES = [
    "breadth",
    "top-window",
    "leaf-window",
    "internal-first",
    "pvalue",
    "pvalue+top-window",
    "pvalue+leaf-window",
]


def urls_of(*paths: str) -> list[Url]:
    return [url for path in paths if (url := parse_url(f"http://{path}"))]


def drained(world: World) -> list[Lease]:
    """Every URL that may be asked for now in the order it is given out, each done before the next."""
    given = []
    while lease := world.frontier.leasing.next(world.now, world.now):
        world.frontier.outcomes.finish(lease, UrlState.DONE)
        world.frontier.outcomes.release(lease, world.now, world.now)
        given.append(lease)
    return given


def test_pvalues_and_lists_are_those_of_the_paper() -> None:
    values = {name: pvalue(forward, back, 1.0) for name, (forward, back) in EXAMPLE.items()}
    assert values == {"A": 5, "B": 12, "C": 8, "D": -1, "E": 2}
    assert three_lists(values) == (["B", "C"], ["A"], ["E", "D"])


def test_pages_of_an_earlier_visit_are_dealt_by_their_own_links() -> None:
    ranking = PValue()
    ranking.matured(1, 1)
    pages = {f"p{n}": (30 - n, 0) for n in range(21)} | {"broken": (0, 5), "hub": (40, 1)}
    order = ranking.deal(pages)
    assert sorted(order) == sorted(pages)
    assert order[:7] == ["hub", "p0", "p1", "p2", "p7", "p8", "p14"]
    assert order[-1] == "broken"


def test_own_links_of_a_page_count_more_than_the_mean_of_its_host() -> None:
    """A page whose record was lost is queued again with the number of links it had, one that failed with none."""
    ranking = PValue()
    ranking.load(b"\x93" + b"\x1e\x14\x0a")  # cuts at 20 and 10
    ranking.matured(1, 1)
    world = World(Politeness(delay_s=0.0, robots=False), Policy(ranking, PLAIN))
    plain, hub, broken = urls_of("one.example/plain", "one.example/hub", "one.example/broken")
    world.frontier.requeue(broken.href, 1, kind=RequestKind.PAGE, links=0, now=world.now)
    world.frontier.requeue(plain.href, 1, kind=RequestKind.PAGE, now=world.now)
    world.frontier.requeue(hub.href, 1, kind=RequestKind.PAGE, links=40, now=world.now)
    world.commit()
    world.frontier.add_evidence({hub.href: 25.0, plain.href: 25.0, broken.href: 1.0}, world.now)
    world.commit()
    rows = world.frontier.rows_of([url_key(url.href) for url in (hub, plain, broken)])
    assert [row.position.links for row in rows if row and row.position] == [40, None, 0]
    assert [row.position.band for row in rows if row and row.position] == [2, 3, 3]
    assert [lease.url for lease in drained(world)] == [hub.href, broken.href, plain.href]


def test_pvalue_serves_its_lists_four_two_one() -> None:
    ranking = PValue()
    ranking.load(b"\x93" + b"\x10\x0a\x05")  # cuts at 10 and 5
    ranking.matured(1, 1)
    world = World(Politeness(delay_s=0.0, robots=False), Policy(ranking, PLAIN))
    urls = urls_of(*(f"one.example/{i}" for i in range(30)))
    # The mean of a host of which nothing is known is 20: 10, 13 and 18 links leave 10, 7 and 2.
    world.frontier.admit(urls, depth=0, now=world.now, credits=[10.0] * 10 + [13.0] * 10 + [18.0] * 10)
    order = [int(lease.url.rpartition("/")[2]) // 10 for lease in drained(world)]
    assert order[:14] == [0, 0, 0, 0, 1, 1, 2] * 2
    assert Counter(order) == {0: 10, 1: 10, 2: 10}


def test_more_links_move_a_queued_url_to_another_list() -> None:
    world = World(Politeness(delay_s=0.0, robots=False), "pvalue")
    ranking = world.frontier.policy.ranking
    assert ranking is not None
    ranking.load(b"\x93" + b"\x14\x14\x0a")
    ranking.matured(1, 1)
    assert (ranking.band(0.0, HostRow()), ranking.band(5.0, HostRow()), ranking.band(15.0, HostRow())) == (1, 2, 3)
    first, second = urls_of("one.example/a", "one.example/b")
    world.admit([first, second])
    world.frontier.add_evidence({first.href: 15.0}, world.now)
    world.commit()
    assert [lease.url for lease in drained(world)] == [second.href, first.href]


@settings(max_examples=100, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=12),
    per_host=st.integers(1, 3),
    ends=st.lists(st.integers(0, 5), min_size=1, max_size=10),
    policy=st.sampled_from(["top-window", "leaf-window"]),
)
def test_urls_of_a_step_are_all_of_different_hosts(
    sizes: list[int], per_host: int, ends: list[int], policy: str
) -> None:
    world = World(
        Politeness(delay_s=0.5, per_host=per_host, per_ip=100, robots=False), policy, memory=MemoryLimits(window=3)
    )
    for host, size in enumerate(sizes):
        world.admit(urls_of(*(f"h{host}.example/{i}" for i in range(size))))
    steps: dict[int, list[str]] = defaultdict(list)
    for turn in range(2000):
        while True:
            step, before = world.frontier.scheduler.step, len(world.leases)
            world.lease()
            if len(world.leases) == before:
                break
            host = world.leases[-1].host
            steps[max(step, host.step)].append(host.origin)
        for _ in range(ends[turn % len(ends)] + 1):
            world.end(0, "done")
        world.commit()
        world.now += 0.3
        if world.frontier.counts.queued <= 0:
            break
    assert sum(map(len, steps.values())) == sum(sizes)
    assert all(len(set(hosts)) == len(hosts) for hosts in steps.values())


def test_top_window_takes_the_leftmost_leaf_of_every_host() -> None:
    world = World(Politeness(delay_s=0.0, robots=False), "top-window")
    world.admit(urls_of("a.example/m", "a.example/c", "b.example/z", "a.example/b/x", "b.example/"))
    order = [lease.url.removeprefix("http://") for lease in drained(world)]
    assert [url for url in order if url.startswith("a")] == ["a.example/b/x", "a.example/c", "a.example/m"]
    assert {url[0] for url in order[:2]} == {url[0] for url in order[2:4]} == {"a", "b"}


PATHS = st.text("/ab019", max_size=5).map("/{}".format)


@given(PATHS, PATHS, st.text("ab019", max_size=4), st.text("ab019", max_size=4))
def test_no_two_entries_have_the_same_place_whatever_orders_they_were_queued_under(
    path: str, other: str, children: str, later: str
) -> None:
    before, after = (Walk("w", by_path=True, children=order) for order in (children, later))
    assert path == other or before.order(path) != after.order(other)


def test_leaf_window_goes_to_and_fro() -> None:
    world = World(Politeness(delay_s=0.0, robots=False), "leaf-window", memory=MemoryLimits(window=3))
    names = "abcdefghi"
    world.admit(urls_of(*(f"one.example/{name}" for name in names)))
    world.commit()
    taken = []
    for _ in range(7):
        (lease,) = [world.frontier.leasing.next(world.now, world.now)]
        assert lease is not None
        taken.append(lease.url[-1])
        world.frontier.outcomes.finish(lease, UrlState.DONE)
        world.frontier.outcomes.release(lease, world.now, world.now)
    world.admit(urls_of("one.example/aa", "one.example/ab"))
    world.commit()
    rest = [lease.url.rpartition("/")[2] for lease in drained(world)]
    assert taken == list(names[:7])
    assert rest == ["h", "i", "ab", "aa"]


def test_leaf_window_leaves_what_it_has_passed_for_the_way_back() -> None:
    """Also on a host whose URLs are all in memory; the leftmost leaf would be `aa`."""
    world = World(Politeness(delay_s=0.0, robots=False), "leaf-window")
    world.admit(urls_of(*(f"one.example/{name}" for name in "abcd")))
    for _ in range(2):
        lease = world.frontier.leasing.next(world.now, world.now)
        assert lease is not None
        world.frontier.outcomes.finish(lease, UrlState.DONE)
        world.frontier.outcomes.release(lease, world.now, world.now)
    world.admit(urls_of("one.example/aa", "one.example/ab", "one.example/cc"))
    rest = [lease.url.rpartition("/")[2] for lease in drained(world)]
    assert rest == ["c", "cc", "d", "ab", "aa"]


class Ladder(PValue):
    """A ranking whose credit is the band."""

    name = "ladder"
    bands = 4
    takes: tuple[int, ...] = ()

    def __init__(self, slack: int | None) -> None:
        super().__init__()
        self.slack = slack

    def band(self, credit: float, host: HostRow) -> int:
        return int(credit)


@pytest.mark.parametrize(("slack", "expected"), [(0, "abbcd"), (1, "abcbd"), (2, "abcdb"), (None, "abcdb")])
def test_hosts_with_less_to_offer_are_held_back_while_better_is_soon_to_be_had(
    slack: int | None, expected: str
) -> None:
    world = World(Politeness(delay_s=1.0, per_ip=100, robots=False), Policy(Ladder(slack), PLAIN))
    urls = urls_of("a.example/1", "b.example/1", "b.example/2", "c.example/1", "d.example/1")
    world.frontier.admit(urls, depth=0, now=world.now, credits=[1.0, 2.0, 2.0, 3.0, 4.0])
    order = ""
    for _ in range(3):
        order += "".join(lease.host.host[0] for lease in drained(world))
        world.now += 1.0
    assert order == expected


@pytest.mark.parametrize("policy", POLICIES)
def test_hosts_of_a_group_are_asked_as_one(policy: str) -> None:
    pace = Politeness(
        delay_s=0.0, per_ip=100, robots=False, groups=(HostGroup("*.shop.example", 1, 2.0), HostGroup("domain", 2, 0.0))
    )
    world = World(pace, policy)
    world.admit(urls_of(*(f"h{i}.shop.example/{j}" for i in range(4) for j in range(3)), "a.other.example/1"))
    running: list[Lease] = []
    last_end = float("-inf")
    done = 0
    for _ in range(300):
        while lease := world.frontier.leasing.next(world.now, world.now):
            if "shop" in lease.url:
                assert not any("shop" in other.url for other in running)
                assert world.now >= last_end + 2.0
            running.append(lease)
        if running:
            lease = running.pop(0)
            world.frontier.outcomes.finish(lease, UrlState.DONE)
            world.frontier.outcomes.release(lease, world.now, world.now)
            last_end = world.now if "shop" in lease.url else last_end
            done += 1
        world.now += 0.5
    assert done == 13
    assert built_in(policy).name == policy


def topic_world() -> World:
    return World(Politeness(delay_s=0.0, robots=False), Policy(Relevance(Topic.of_words("solar")), PLAIN))


def test_topic_gives_the_best_band_first_whatever_was_found_first() -> None:
    world = topic_world()
    worth = [0.02, 0.95, 0.2, 0.003, 0.6]
    urls = urls_of(*(f"one.example/{credit}" for credit in worth))
    for url, credit in zip(urls, worth, strict=True):
        world.frontier.admit([url], depth=0, now=world.now, credits=[credit])
    order = [float(lease.url.rpartition("/")[2]) for lease in drained(world)]
    assert order == sorted(worth, reverse=True)


def test_topic_looks_up_what_speaks_for_a_url_only_in_doubt() -> None:
    world = topic_world()
    urls = urls_of("one.example/hopeless", "one.example/doubtful")
    world.frontier.admit(urls, depth=0, now=world.now, credits=[0.003, 0.3])
    host = next(iter(world.frontier.hosts.values()))
    host.row.requests, host.row.bytes = 100, 10_000_000
    doubtful, hopeless = drained(world)
    assert doubtful.is_head
    assert doubtful.credit == 0.3
    assert not hopeless.is_head
    assert hopeless.credit is None


@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), max_size=60),
    st.floats(0, 1),
    st.integers(0, 100_000),
    st.sampled_from([0.0, 0.1, 1.0]),
)
def test_topic_passes_over_no_band_in_which_a_head_is_wanted(
    outcomes: list[tuple[float, float]], credit: float, page_bytes: int, delay_s: float
) -> None:
    topic = Topic.of_words("solar")
    ranking, host = Relevance(topic), HostRow(requests=10, bytes=10 * page_bytes)
    for predicted, actual in outcomes:
        topic._calibration.add(predicted, actual)
    if ranking.wants_head(credit, host, delay_s):
        assert ranking.may_want_head(ranking.band(credit, host), host, delay_s)


class ShortFirst(Ranking):
    """The least that a ranking has to say."""

    name, bands = "short-first", 2

    def fetched(self, source: LinkSource, urls: Sequence[str], anchors: Sequence[str]) -> Sequence[float]:
        return [float(len(url) < 30) for url in urls]

    def band(self, credit: float, host: HostRow) -> int:
        return 1 if credit else 2


def test_ranking_of_two_methods_orders_a_crawl() -> None:
    world = World(Politeness(delay_s=0.0, robots=False), Policy(ShortFirst(), PLAIN))
    urls = urls_of("a.example/a-long-path/and-longer.html", "a.example/b")
    credits = ShortFirst().fetched(LinkSource("http://a.example/", 0), [url.href for url in urls], ["", ""])
    world.frontier.admit(urls, depth=1, now=world.now, credits=credits)
    assert [lease.url for lease in drained(world)] == [urls[1].href, urls[0].href]


def test_policy_of_a_name_that_is_not_known_says_what_there_is() -> None:
    with pytest.raises(PartError, match="no walk called 'sideways'; there is breadth"):
        built_in("rank+sideways")
    with pytest.raises(PartError, match="does not rank"):
        built_in("breadth+rank")
