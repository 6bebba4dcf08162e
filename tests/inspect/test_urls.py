"""The list of known URLs against what `status`, `why` and `links` say of them; filters against plain looking."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from lycosa.errors import SettingsError
from lycosa.frontier.rows import RETRY_LANE, HostRow, QueueEntry, Reason, UrlRow, UrlState, lane_start, pack_host
from lycosa.graph import links_of
from lycosa.inspect import (
    KnownUrl,
    KnownUrlFilter,
    explain_url,
    open_to_read,
    stats_of,
    url_batches,
)
from lycosa.records import Family
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import CollectionStore
from lycosa.store.joined import SHARDED_FILE, SHARDS_FOLDER
from lycosa.store.page_rows import PageRow, pack_row
from lycosa.store.state import Batch
from lycosa.web.url import url_key
from lycosa.wording import safe_cell
from tests.crawl.memory_crawl import crawl, front
from tests.inspect.listing import list_urls

WEB = SimWeb(SimSettings(hosts=4, pages=300, seed=3, trouble={"not-found": 0.1}, robots={"rules": 1.0}))


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CollectionStore]:
    """A crawl that was stopped in the middle, with pages, redirects, failures and URLs that were dropped."""
    into = tmp_path_factory.mktemp("urls") / "c"
    crawl(WEB, into, front(WEB), pages=150)
    with open_to_read(into) as collection:
        yield collection


def wanted(collection: CollectionStore, **filters: object) -> list[KnownUrl]:
    return list(list_urls(collection, KnownUrlFilter(**filters)))  # type: ignore[arg-type]


def test_urls_by_state_are_as_many_as_status_counts(crawled: CollectionStore) -> None:
    stats = stats_of(crawled)

    counts = Counter(known.state for known in list_urls(crawled))

    assert counts["queued"] == stats.queued > 0
    assert counts["failed"] == stats.failed.total() > 0
    assert counts["dropped"] == stats.dropped.total() > 0
    assert counts["done"] == stats.known - stats.queued - stats.failed.total() - stats.dropped.total()


def test_reason_of_every_failure_is_the_one_that_why_names(crawled: CollectionStore) -> None:
    failed = wanted(crawled, states=["failed"])

    assert {known.reason for known in failed} >= {"status 404"}
    for known in failed:
        said = explain_url(crawled, known.url)[1]
        assert known.reason in said
        assert f"after {known.tries} tr" in said


def test_referrers_are_the_pages_that_link(crawled: CollectionStore) -> None:
    for known in list_urls(crawled, KnownUrlFilter(states=["failed", "dropped"]), referrers=3):
        links = links_of(crawled, known.url)
        assert known.referrers == links.pages_in
        assert known.linked_from == tuple(link.url for link in links.links_in[:3])


@pytest.mark.parametrize(
    ("filters", "is_wanted"),
    [
        ({"states": ["done", "failed"]}, lambda known: known.state in ("done", "failed")),
        ({"statuses": ["4xx"]}, lambda known: known.status is not None and 400 <= known.status < 500),
        ({"statuses": ["200,301"]}, lambda known: known.status in (200, 301)),
        ({"types": ["text/*"]}, lambda known: known.type.startswith("text/")),
        ({"depths": ["2", "4-5"]}, lambda known: known.depth in (2, 4, 5)),
        ({"host": "h1.sim"}, lambda known: known.host == "h1.sim"),
        ({"below": front(WEB, 2)}, lambda known: known.url.startswith(front(WEB, 2))),
        ({"below": "sim", "states": ["queued"], "depths": ["3"]}, lambda k: k.state == "queued" and k.depth == 3),
        ({"below": front(WEB, 2), "host": "h1.sim"}, lambda known: False),
    ],
)
def test_filters_choose_what_plain_looking_finds(crawled: CollectionStore, filters: dict, is_wanted) -> None:  # type: ignore[type-arg,no-untyped-def]
    everything = list(list_urls(crawled))

    assert wanted(crawled, **filters) == list(filter(is_wanted, everything))


def test_only_what_is_asked_for_is_read(crawled: CollectionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = set()
    for name in ("get", "get_many", "scan", "walk"):
        plain = getattr(crawled.state, name)
        monkeypatch.setattr(
            crawled.state, name, lambda family, *a, plain=plain, **n: asked.add(family) or plain(family, *a, **n)
        )

    listed = sum(map(len, url_batches(crawled, columns={"url"})))

    assert listed == stats_of(crawled).known
    assert asked - {Family.META} == {Family.URL}


def fill(path: Path, **named: int) -> CollectionStore:
    """A collection with one URL of each kind that a crawl seldom leaves behind."""
    made = CollectionStore.create(path, **named)
    batch = Batch()
    rows = {
        "https://gone.example/": UrlRow(UrlState.QUEUED),
        "https://slow.example/again": UrlRow(UrlState.QUEUED, 2),
        "https://slow.example/deep": UrlRow(UrlState.DROPPED, 300, Reason.PATTERN),
        "https://slow.example/formula": UrlRow(UrlState.DONE),
    }
    for url, row in rows.items():
        batch.put(Family.URL, url_key(url), row.pack())
    gone, slow = (url_key(f"https://{name}.example/").partition(b"\0/")[0] for name in ("gone", "slow"))
    batch.put(Family.HOST, gone, pack_host(HostRow(queued=1, gave_up="no-such-host")))
    batch.put(Family.HOST, slow, pack_host(HostRow(queued=1, retries=1)))
    entry = QueueEntry(lane_start(slow, RETRY_LANE) + b"\0" * 8, "/again", tries=2, failed="connect-timeout")
    batch.put(Family.QUEUE, entry.key, entry.pack())
    hostile = PageRow(200, 1_700_000_000.5, essence="=cmd|'/c calc'!a1", file_num=1)
    batch.put(Family.PAGE, url_key("https://slow.example/formula"), pack_row(hostile))
    made.state.write(batch)
    return made


def test_url_of_a_host_that_was_given_up_has_failed(tmp_path: Path) -> None:
    with fill(tmp_path / "c") as collection:
        (known,) = wanted(collection, states=["failed"])
        assert (known.url, known.reason) == ("https://gone.example/", "its host was given up (no such host)")
        assert [known.url for known in wanted(collection, states=["queued"])] == ["https://slow.example/again"]


def test_url_that_is_tried_again_has_its_tries_and_its_last_failure(tmp_path: Path) -> None:
    with fill(tmp_path / "c") as collection:
        (known,) = wanted(collection, states=["queued"])
        assert (known.tries, known.reason) == (2, "connect timeout")


def test_depth_of_two_bytes_and_time_to_the_second(tmp_path: Path) -> None:
    with fill(tmp_path / "c") as collection:
        deep, page = wanted(collection, host="slow.example", states=["dropped", "done"])
        assert (deep.depth, deep.reason) == (300, "path pattern")
        assert page.fetched is not None
        assert page.fetched.isoformat() == "2023-11-14T22:13:20+00:00"


def test_shards_are_listed_as_one_collection(tmp_path: Path) -> None:
    (tmp_path / SHARDED_FILE).write_text("{}")
    fill(tmp_path / SHARDS_FOLDER / "1").close()
    with CollectionStore.create(tmp_path / SHARDS_FOLDER / "2", warc_first=100) as other:
        batch = Batch()
        batch.put(Family.URL, url_key("https://other.example/"), UrlRow(UrlState.DONE).pack())
        other.state.write(batch)

    with open_to_read(tmp_path) as joined:
        assert Counter(known.host for known in list_urls(joined)) == {
            "gone.example": 1,
            "slow.example": 3,
            "other.example": 1,
        }


@pytest.mark.parametrize(
    ("filters", "words"),
    [
        ({"states": ["lost"]}, "--state is 'lost': choose from queued"),
        ({"statuses": ["fine"]}, "status is 'fine'"),
        ({"depths": ["-1"]}, "depth is '-1'"),
        ({"below": "::"}, "neither the beginning"),
        ({"host": "a/b"}, "not the name of a host"),
    ],
)
def test_filter_that_cannot_be_is_refused_with_a_sentence(crawled: CollectionStore, filters: dict, words: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(SettingsError, match=words):
        wanted(crawled, **filters)


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\t=1", " =1", "\r=1", "|calc", "＝1"])
def test_cell_that_looks_like_a_formula_is_text(text: str) -> None:
    assert safe_cell(text) == f"'{text}"


def test_cell_of_plain_text_stays_as_it_is() -> None:
    assert [safe_cell(text) for text in ("", "text/html", "a=b", "a\0b")] == ["", "text/html", "a=b", "ab"]
