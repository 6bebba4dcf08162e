"""The tree of a collection against plain counting, and what it does with every way to name a part of it."""

from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.api.crawl import Crawl
from lycosa.errors import SettingsError
from lycosa.frontier.rows import HostRow, Origin, UrlRow, UrlState, pack_host
from lycosa.inspect import Branch, known_urls, open_to_read, url_tree
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import CollectionStore
from lycosa.store.state import Batch
from lycosa.web.url import url_key
from tests.crawl.memory_crawl import crawl, front

ALL_ROWS = 10_000
URLS = {
    "https://example.org/": UrlState.DONE,
    "https://example.org/docs/": UrlState.DONE,
    "https://example.org/docs/api/v1/one": UrlState.QUEUED,
    "https://example.org/docs/api/v1/two": UrlState.FAILED,
    "https://example.org/docs/api/v1/three?page=1/2": UrlState.DROPPED,
    "https://example.org/docs/api/v1/three?page=2": UrlState.DROPPED,
    "http://example.org/": UrlState.DONE,
    "https://example.org:8443/deep/er/x": UrlState.QUEUED,
    "https://www.example.org/a/b/c/d": UrlState.DONE,
    "https://notexample.org/": UrlState.DONE,
    "https://other.co.uk/q?": UrlState.QUEUED,
    "http://127.0.0.1/x": UrlState.DONE,
    "http://127.0.0.10/x": UrlState.DONE,
    "http://[::1]/x": UrlState.DONE,
}


def fill(collection: CollectionStore, urls: dict[str, UrlState]) -> None:
    batch = Batch()
    for url, state in urls.items():
        key = url_key(url)
        batch.put(Family.URL, key, UrlRow(state, origin=Origin.SITEMAP).pack())
        batch.put(Family.HOST, key[: key.index(b"\0", 2)], pack_host(HostRow()))
    collection.state.write(batch)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> CollectionStore:
    made = CollectionStore.create(tmp_path_factory.mktemp("tree") / "c")
    fill(made, URLS)
    return made


def shown(branches: list[Branch]) -> dict[str, int]:
    return {branch.prefix: branch.known for branch in branches}


def folders_of(url: str, root: str) -> list[str]:
    """Every folder of a URL below `root`, by cutting its text."""
    path, mark, _ = url.partition("?")
    ends = [at + 1 for at, letter in enumerate(path) if letter == "/" and at > len("https://")]
    return [folder for end in ends if len(folder := url[:end]) > len(root)] + [path + "?"] * bool(mark)


def plainly(urls: dict[str, UrlState], depth: int | None = None) -> dict[str, int]:
    """The tree of everything, counted without any tree: folders that hold more than their largest folder."""
    sizes: Counter[str] = Counter()
    parent: dict[str, str] = {}
    for url in urls:
        folders = folders_of(url, "")[:depth]
        sizes.update(folders)
        parent.update(zip(folders[1:], folders, strict=False))
    chains = {around for folder, around in parent.items() if sizes[folder] == sizes[around]}
    return {"": len(urls), **{folder: size for folder, size in sizes.items() if folder not in chains}}


def test_tree_counts_every_folder_and_joins_chains(collection: CollectionStore) -> None:
    branches = url_tree(collection, rows=ALL_ROWS)

    assert shown(branches) == plainly(URLS)
    assert branches[0].known == len(URLS)
    assert "https://www.example.org/a/b/c/" in shown(branches)  # one branch, not four
    assert not any(branch.left_out for branch in branches)


def test_tree_counts_states(collection: CollectionStore) -> None:
    docs = url_tree(collection, "https://example.org/docs/", rows=ALL_ROWS)[0]

    assert (docs.known, docs.queued, docs.done, docs.failed, docs.dropped) == (5, 1, 1, 1, 2)


def test_tree_shows_heavier_siblings_first_each_under_its_parent(collection: CollectionStore) -> None:
    branches = url_tree(collection, "example.org", rows=ALL_ROWS)

    assert [(branch.level, branch.prefix, branch.known) for branch in branches[:4]] == [
        (0, "example.org", 9),
        (1, "https://example.org/", 6),
        (2, "https://example.org/docs/", 5),
        (3, "https://example.org/docs/api/v1/", 4),
    ]
    assert branches[4].prefix == "https://example.org/docs/api/v1/three?"


def test_tree_keeps_the_heaviest_and_says_what_is_left_out(collection: CollectionStore) -> None:
    branches = url_tree(collection, rows=2)

    assert [branch.prefix for branch in branches] == ["", "https://example.org/", "https://example.org/docs/"]
    assert [branch.left_out for branch in branches] == [8, 0, 1]


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_tree_goes_no_deeper_than_asked(collection: CollectionStore, depth: int) -> None:
    assert shown(url_tree(collection, depth=depth, rows=ALL_ROWS)) == plainly(URLS, depth)


@pytest.mark.parametrize(
    ("text", "words", "known"),
    [
        ("https://example.org/docs/api", "https://example.org/docs/api", 4),
        ("https://example.org/docs/api/v1/t", "https://example.org/docs/api/v1/t", 3),
        ("https://example.org", "https://example.org/", 6),
        ("HTTPS://EXAMPLE.org/docs/../docs/", "https://example.org/docs/", 5),
        ("example.org/docs/", "https://example.org/docs/", 5),
        ("example.org:8443", "https://example.org:8443/", 1),
        ("127.0.0.1/x", "http://127.0.0.1/x", 1),
        ("example.org", "example.org", 9),
        ("www.example.org", "www.example.org", 1),
        ("127.0.0.1", "127.0.0.1", 1),
        ("[::1]", "http://[::1]/", 1),
        ("org", "org", 10),
        ("co.uk", "co.uk", 1),
        ("", "", len(URLS)),
    ],
)
def test_tree_of_a_part(collection: CollectionStore, text: str, words: str, known: int) -> None:
    root = url_tree(collection, text, rows=ALL_ROWS)[0]

    assert (root.prefix, root.known) == (words, known)


@pytest.mark.parametrize("text", ["https://example.org/nothing", "nowhere.example", "xample.org", "net"])
def test_tree_of_nothing_known_is_an_empty_root(collection: CollectionStore, text: str) -> None:
    (root,) = url_tree(collection, text, rows=ALL_ROWS)

    assert (root.known, root.left_out) == (0, 0)


@pytest.mark.parametrize("text", ["ftp://example.org/", "http://", "a b/c", "https://[bad"])
def test_tree_of_no_url_says_what_would_do(collection: CollectionStore, text: str) -> None:
    with pytest.raises(SettingsError, match="neither the beginning"):
        url_tree(collection, text, rows=ALL_ROWS)


SOME_URLS = st.dictionaries(
    st.builds(
        "https://{}.example.org/{}{}".format,
        st.sampled_from("ab"),
        st.text("xy/", max_size=6),
        st.sampled_from(["", "?", "?x/y"]),
    ),
    st.sampled_from(UrlState),
    max_size=20,
)


@settings(max_examples=30, deadline=None)
@given(SOME_URLS, st.integers(1, 12), st.one_of(st.none(), st.integers(1, 4)))
def test_tree_of_any_urls_is_what_plain_counting_gives(
    tmp_path_factory: pytest.TempPathFactory, urls: dict[str, UrlState], rows: int, depth: int | None
) -> None:
    with CollectionStore.create(tmp_path_factory.mktemp("any") / "c") as made:
        fill(made, urls)
        expected = plainly(urls, depth)

        everything = url_tree(made, depth=depth, rows=ALL_ROWS)
        some = url_tree(made, depth=depth, rows=rows)

    assert shown(everything) == expected
    assert shown(some).items() <= expected.items()
    assert sorted(shown(some).values()) == sorted(sorted(expected.values())[-rows - 1 :])
    for branches in (everything, some):
        for above, branch in pairwise(branches):
            assert branch.level <= above.level + 1
            assert branch.level < above.level or branch.known <= above.known


def test_tree_beside_a_running_crawl_counts_what_is_committed(tmp_path: Path) -> None:
    web, seen = SimWeb(SimSettings(hosts=2, pages=80)), list[Branch]()

    def look(_: Crawl) -> None:
        with open_to_read(tmp_path / "c") as beside:
            seen.extend(url_tree(beside, depth=1, rows=ALL_ROWS))

    result = crawl(web, tmp_path / "c", front(web), act=look, after=30)

    assert 0 < seen[0].done < result.stats.pages
    assert seen[0].queued > 0
    assert seen[0].known == sum(branch.known for branch in seen[1:]) < result.stats.known


def test_what_waits_at_a_host_that_was_given_up_has_failed(tmp_path: Path) -> None:
    with CollectionStore.create(tmp_path / "c") as made:
        fill(made, URLS)
        batch, gone = Batch(), url_key("https://other.co.uk/q?")
        batch.put(Family.HOST, gone[: gone.index(b"\0", 2)], pack_host(HostRow(queued=1, gave_up="no-such-host")))
        made.state.write(batch)

        root = url_tree(made, rows=0)[0]
        failed, queued = (set(known_urls(made.state, in_state=each)) for each in ("failed", "queued"))

        assert (root.queued, root.failed) == (2, 2)
        assert failed == {"https://other.co.uk/q?", "https://example.org/docs/api/v1/two"}
        assert len(queued) == 2
        assert "https://other.co.uk/q?" in known_urls(made.state, in_state="failed")
