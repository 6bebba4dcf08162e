"""The compressed trie against a sorted list: whatever is done to both, they hold and show the same."""

from bisect import bisect_left
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lycosa.frontier import trie as trie_module
from lycosa.frontier.runs import RUN_KEYS
from lycosa.frontier.segment import Segment
from lycosa.frontier.sieve import Marks, Sieve
from lycosa.frontier.trie import UrlTrie, prefix_end
from lycosa.web.url import url_key

ALL_BYTES = bytes(range(256))
# Few letters, so that keys are prefixes of each other and come again; any bytes; and a key that has every byte.
KEYS = st.one_of(
    st.text("ab/\n", max_size=6).map(str.encode),
    st.binary(max_size=4),
    st.binary(max_size=2).map(lambda end: b"\xff" * 3 + end),
    st.sampled_from([b"", b"\n", b"\n\n", ALL_BYTES, ALL_BYTES + b"a", b"a" + ALL_BYTES]),
)
KEY_LISTS = st.lists(KEYS, max_size=60)


@pytest.fixture(autouse=True, scope="module")
def small_parts() -> Iterator[None]:
    """So little in the front and in a block that forty keys make several segments of several blocks."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lycosa.frontier.trie.FRONT_MOST", 8)
        patch.setattr("lycosa.frontier.segment.BLOCK_KEYS", 4)
        patch.setattr("lycosa.frontier.runs.RUN_KEYS", 3)
        yield


class AgainstSortedList(RuleBasedStateMachine):
    """Any order of changes and questions gives what a sorted list would."""

    def __init__(self) -> None:
        super().__init__()
        self.trie = UrlTrie()
        self.model: list[bytes] = []

    @initialize(keys=KEY_LISTS)
    def begins_with(self, keys: list[bytes]) -> None:
        self.model = sorted(set(keys))
        self.trie = UrlTrie.from_sorted(self.model)

    @rule(key=KEYS)
    def add(self, key: bytes) -> None:
        assert self.trie.add(key) == (key not in self.model)
        self.model = sorted({*self.model, key})

    @rule(keys=KEY_LISTS)
    def update(self, keys: list[bytes]) -> None:
        assert self.trie.update(keys) == len(set(keys) - set(self.model))
        self.model = sorted({*self.model, *keys})

    @rule(key=KEYS)
    def discard(self, key: bytes) -> None:
        assert self.trie.discard(key) == (key in self.model)
        self.model = sorted(set(self.model) - {key})

    @rule(data=st.data())
    def discard_some_that_are_there(self, data: st.DataObject) -> None:
        if self.model:
            for key in data.draw(st.lists(st.sampled_from(self.model), unique=True)):
                assert self.trie.discard(key)
                self.model.remove(key)

    @rule(data=st.data())
    def discard_some_and_add_them_again(self, data: st.DataObject) -> None:
        if self.model:
            some = data.draw(st.lists(st.sampled_from(self.model), unique=True))
            assert all(map(self.trie.discard, some))
            assert all(map(self.trie.add, some[::2]))
            assert self.trie.update(some) == len(some[1::2])
            assert all(self.trie.rank(key) == at for at, key in enumerate(self.model))

    @rule(key=KEYS)
    def neighbours(self, key: bytes) -> None:
        at = bisect_left(self.model, key)
        assert self.trie.rank(key) == at
        assert self.trie.at_or_after(key) == (self.model[at] if at < len(self.model) else None)
        assert self.trie.before(key) == (self.model[at - 1] if at else None)
        assert list(self.trie.forwards(key)) == self.model[at:]
        assert list(self.trie.backwards(key)) == self.model[:at][::-1]

    @rule(start=KEYS, end=KEYS)
    def ranges(self, start: bytes, end: bytes) -> None:
        inside = [key for key in self.model if start <= key < end]
        assert list(self.trie.forwards(start, end)) == inside
        assert list(self.trie.backwards(end, start)) == inside[::-1]

    @rule(prefix=KEYS)
    def subtrees(self, prefix: bytes) -> None:
        inside = [key for key in self.model if key.startswith(prefix)]
        assert self.trie.count(prefix) == len(inside)
        assert list(self.trie.subtree(prefix)) == inside
        assert self.trie.leftmost(prefix) == (inside[0] if inside else None)
        assert self.trie.rightmost(prefix) == (inside[-1] if inside else None)

    @rule(prefix=KEYS)
    def branches(self, prefix: bytes) -> None:
        sizes: dict[bytes, int] = {}
        for key in self.model:
            if key.startswith(prefix):
                cut = key.find(b"/", len(prefix)) + 1
                sizes[key[:cut] if cut else key] = sizes.get(key[:cut] if cut else key, 0) + 1
        assert list(self.trie.branches(prefix)) == list(sizes.items())

    @rule(keys=KEY_LISTS)
    def membership(self, keys: list[bytes]) -> None:
        assert self.trie.has_many(keys) == [key in self.model for key in keys]
        assert [key in self.trie for key in keys] == [key in self.model for key in keys]

    @invariant()
    def holds_the_same(self) -> None:
        assert len(self.trie) == len(self.model)
        assert list(self.trie) == self.model
        assert list(reversed(self.trie)) == self.model[::-1]

    @invariant()
    def is_compact(self) -> None:
        stats = self.trie.stats()
        assert stats.keys == len(self.model)
        assert stats.front < trie_module.FRONT_MOST
        assert stats.gone <= stats.keys  # no segment is more than half gone


TestAgainstSortedList = AgainstSortedList.TestCase
TestAgainstSortedList.settings = settings(max_examples=80, stateful_step_count=25, deadline=None)


@given(KEYS)
def test_prefix_end_is_the_least_key_above_the_subtree(prefix: bytes) -> None:
    end = prefix_end(prefix)

    if end is None:
        assert not prefix.strip(b"\xff")
    else:
        assert prefix + b"\xff" * 9 < end
        assert not end.startswith(prefix)
        assert end[:-1] == prefix[: len(end) - 1]
        assert end[-1] == prefix[len(end) - 1] + 1


def test_from_sorted_keys_that_do_not_ascend_are_refused() -> None:
    many = [b"%03d" % number for number in range(300)]
    for keys in (
        [b"b", b"a"],
        [b"a", b"a"],
        [b"a", b"b", b"c", b"c"],
        [b"a", b"b", b"d", b"c"],
        many[:RUN_KEYS] + many[RUN_KEYS - 1 :],
    ):
        with pytest.raises(ValueError, match="ascend"):
            UrlTrie.from_sorted(keys)


def test_block_of_random_keys_without_a_free_byte_is_split() -> None:
    keys = sorted(bytes((first,)) + ALL_BYTES[second::4] for first in range(8) for second in range(4))

    segment = Segment.of([keys])

    assert [key for run in segment.forwards(b"") for key in run] == keys
    assert all(segment.find(key) is not None for key in keys)
    assert segment.find(ALL_BYTES) is None


def test_key_with_a_separator_in_it_is_not_taken_for_two_neighbours() -> None:
    trie = UrlTrie.from_sorted([b"a", b"b", b"c"])

    assert b"a\nb" not in trie
    assert not trie.discard(b"b\nc")
    assert trie.add(b"a\nb")


def test_sieve_lets_every_known_key_through_and_few_others() -> None:
    known = [b"/known/%d" % number for number in range(5_000)]
    marks = Marks()
    marks.add(known[:3_000])
    marks.add(known[3_000:])
    sieve = Sieve(marks)

    passed = sum(sieve.may_have(b"/unknown/%d" % number) for number in range(5_000))

    assert all(map(sieve.may_have, known))
    assert passed < 5_000 * 0.04  # 2.4 % by the formula
    assert sieve.size_bytes() == 5_000


def test_segments_stay_few_and_double_in_size() -> None:
    trie = UrlTrie()
    for number in range(5_000):
        trie.add(b"%d" % (number * 7919 % 5_000))

    sizes = [segment.size for segment in trie._segments]

    assert len(trie) == 5_000
    assert all(larger > 2 * sum(sizes[at + 1 :]) for at, larger in enumerate(sizes[:-1]))
    assert len(sizes) <= 10


def test_walk_shows_every_key_that_stays_while_others_come_and_go() -> None:
    stays = [b"s%03d" % number for number in range(100)]
    trie = UrlTrie([*stays, *(b"s%03dx" % number for number in range(100))])

    for walk, sign in ((trie.forwards(), 1), (trie.backwards(), -1)):
        seen = []
        for number, key in enumerate(walk):
            seen.append(key)
            trie.discard(b"s%03dx" % (number * 7 % 100))
            trie.add(b"s%03dy" % (number * 11 % 100))
        assert [key for key in seen if len(key) == 4] == stays[::sign]


def test_queue_emptied_from_the_left_gives_its_memory_back() -> None:
    trie = UrlTrie(b"/page/%05d" % number for number in range(3_000))
    full_bytes = trie.stats().segment_bytes

    taken = []
    while (key := trie.leftmost()) is not None:
        taken.append(key)
        assert trie.discard(key)
        if len(taken) == 2_900:
            assert trie.stats().segment_bytes < full_bytes / 8

    assert taken == [b"/page/%05d" % number for number in range(3_000)]
    assert trie.stats().segments == 0


def test_url_keys_make_domains_hosts_and_folders_subtrees() -> None:
    urls = [
        "https://example.org/",
        "https://example.org/docs/",
        "https://example.org/docs/a",
        "https://www.example.org/docs/b",
        "https://example.com/docs/c",
    ]
    trie = UrlTrie(map(url_key, urls))

    assert trie.count(url_key("https://example.org/docs/")) == 2
    assert trie.count(url_key("https://example.org/")) == 3
    assert trie.count(url_key("https://example.org/").partition(b":")[0]) == 4
    folders = dict(trie.branches(url_key("https://example.org/")))
    assert folders == {url_key("https://example.org/"): 1, url_key("https://example.org/docs/"): 2}
