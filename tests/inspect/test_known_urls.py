"""The known URLs of a collection against a sorted list of them."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lycosa
from lycosa.errors import SettingsError
from lycosa.frontier.rows import Origin, UrlRow, UrlState
from lycosa.inspect import known_urls
from lycosa.records import Family
from lycosa.store import CollectionStore
from lycosa.store.state import Batch, State
from lycosa.web.url import url_key

URLS = {
    "https://example.org/": UrlState.DONE,
    "https://example.org/docs/": UrlState.DONE,
    "https://example.org/docs/a": UrlState.QUEUED,
    "https://example.org/docs/b?page=1/2": UrlState.DROPPED,
    "https://example.org/docs/deep/c": UrlState.FAILED,
    "http://example.org/": UrlState.DONE,
    "https://www.example.org/x": UrlState.QUEUED,
    "https://notexample.org/": UrlState.QUEUED,
}


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> CollectionStore:
    made = CollectionStore.create(tmp_path_factory.mktemp("known") / "c")
    batch = Batch()
    for url, state in URLS.items():
        batch.put(Family.URL, url_key(url), UrlRow(state, origin=Origin.SITEMAP).pack())
    made.state.write(batch)
    return made


def test_all_are_there_in_the_order_of_the_state(collection: CollectionStore) -> None:
    known = known_urls(collection.state)
    assert list(known) == sorted(URLS, key=url_key)
    assert list(reversed(known)) == sorted(URLS, key=url_key, reverse=True)
    assert all(url in known for url in URLS)
    assert "https://example.org/nothing" not in known
    assert "no url" not in known


def test_a_part_and_a_state(collection: CollectionStore) -> None:
    assert set(known_urls(collection.state, "www.example.org")) == {"https://www.example.org/x"}
    assert set(known_urls(collection.state, in_state="queued")) == {
        url for url, state in URLS.items() if state is UrlState.QUEUED
    }
    assert set(known_urls(collection.state, "https://example.org/docs/", in_state="failed")) == {
        "https://example.org/docs/deep/c"
    }
    assert not len(known_urls(collection.state, "https://example.net/"))
    with pytest.raises(SettingsError, match="queued, done, failed, dropped"):
        known_urls(collection.state, in_state="lost")


def test_subtrees(collection: CollectionStore) -> None:
    known = known_urls(collection.state)
    docs = "https://example.org/docs/"
    assert known.count(docs) == 4
    assert known.count("https://example.org") == 5
    assert list(known.below(docs)) == sorted((url for url in URLS if url.startswith(docs)), key=url_key)
    assert dict(known.folders("https://example.org/")) == {"https://example.org/": 1, docs: 4}
    assert known.first(docs) == docs
    assert known.last(docs) == "https://example.org/docs/deep/c"
    assert known.after(docs) == "https://example.org/docs/a"
    assert known.before("https://example.org/docs/a") == docs
    with pytest.raises(SettingsError, match="no http or https URL"):
        known.count("docs/")


def test_bottom_up_a_folder_comes_after_what_lies_in_it(collection: CollectionStore) -> None:
    known = known_urls(collection.state)
    assert list(known.below("https://example.org/docs/", bottom_up=True))[-1] == "https://example.org/docs/"
    assert list(known.ancestors("https://example.org/docs/deep/new")) == [
        ("https://example.org/docs/deep/", 1),
        ("https://example.org/docs/", 4),
        ("https://example.org/", 5),
    ]


def test_by_the_library_beside_the_writer(collection: CollectionStore) -> None:
    with lycosa.Collection(collection.path) as reader:
        assert len(reader.known("example.org", state="done")) == 3
        batch = Batch()
        batch.put(Family.URL, url_key("https://example.org/later"), UrlRow(UrlState.DONE).pack())
        collection.state.write(batch)
        assert len(reader.known("example.org", state="done")) == 4
        batch.delete(Family.URL, url_key("https://example.org/later"))
        collection.state.write(batch)


@settings(max_examples=50)
@given(
    st.sets(st.text("ab/?1", max_size=6).map(lambda path: f"https://example.org/{path}")), st.text("ab/?1", max_size=3)
)
def test_counts_and_walks_as_by_hand(empty: State, urls: set[str], path: str) -> None:
    batch = Batch()
    batch.delete_range(Family.URL, b"", b"\xff" * 3)
    for url in urls:
        batch.put(Family.URL, url_key(url), UrlRow(UrlState.QUEUED).pack())
    empty.write(batch)
    known = known_urls(empty)
    prefix = f"https://example.org/{path}"
    inside = sorted(url for url in urls if url.startswith(prefix))
    assert known.count(prefix) == len(inside)
    assert list(known.below(prefix)) == inside
    assert list(known.below(prefix, bottom_up=True)) == inside[::-1]
    assert sum(count for _, count in known.folders(prefix)) == len(inside)
    assert known.first(prefix) == (inside[0] if inside else None)
    assert known.last(prefix) == (inside[-1] if inside else None)
    assert known.after(prefix) == min((url for url in urls if url > prefix), default=None)
    assert known.before(prefix) == max((url for url in urls if url < prefix), default=None)


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    with State.open(tmp_path_factory.mktemp("any") / "state") as state:
        yield state
