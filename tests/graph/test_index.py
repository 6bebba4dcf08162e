"""The link index against a plain dictionary, whatever is added, changed, removed, joined and opened again."""

import mmap
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lycosa.errors import StoreError
from lycosa.graph import segments
from lycosa.graph.columns import Frames, LinkChanges, from_pages, join_columns, pack_frames, unpack_frames, url_id
from lycosa.graph.index import (
    LIST,
    MERGED_AT_ONCE,
    SMALL_MERGED_AT_ONCE,
    LinkIndex,
    LinkWriter,
    merge_segments,
    neighbours,
    read_list,
)
from lycosa.graph.segments import Segment
from tests.effort import bounded
from tests.resident import needs_smaps, resident_bytes

URLS = [f"https://h{n % 4}.example/p{n}" for n in range(12)]
WORDS = ["", "home", "next page", "größer", "x" * 200]

Links = dict[str, tuple[int, str]]
Model = dict[int, Links]


def change(model: Model, file_num: int, now: Links, *, is_gone: bool = False) -> LinkChanges:
    """The record that turns what the model has of a page into `now`; the model follows."""
    before = model.get(file_num, {})
    added = {url: words for url, words in now.items() if before.get(url) != words}
    lost = [url for url, words in before.items() if now.get(url) != words]
    model[file_num] = now
    if is_gone:
        del model[file_num]
    kinds, anchors = bytes(kind for kind, _ in added.values()), [anchor for _, anchor in added.values()]
    return LinkChanges(file_num, URLS[file_num], list(added), kinds, anchors, lost, is_gone)


def check(index: LinkIndex, model: Model) -> None:
    expected = {url: {} for url in URLS}
    for file_num, links in model.items():
        for url, words in links.items():
            if url != URLS[file_num]:
                expected[url][file_num] = words
    assert index.counts(URLS) == [len(expected[url]) for url in URLS]
    for url in URLS:
        assert {link.source: (link.kind, link.anchor) for link in index.inlinks(url)} == expected[url]


pages_links = st.dictionaries(st.sampled_from(URLS), st.tuples(st.integers(1, 8), st.sampled_from(WORDS)), max_size=8)
steps = st.lists(st.tuples(st.integers(0, 11), pages_links, st.booleans()), min_size=1, max_size=12)


@pytest.mark.slow
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
)
@given(batches=st.lists(steps, min_size=1, max_size=5), joined=st.integers(0, 4), group=st.integers(1, 8))
def test_index_agrees_with_a_dictionary(
    batches: list[list[tuple[int, Links, bool]]],
    joined: int,
    group: int,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(segments, "GROUP", group)
    folder, model = tmp_path_factory.mktemp("collection"), {}
    writer = LinkWriter.open(folder)
    for number, batch in enumerate(batches, 1):
        pages = [change(model, file, {} if gone else now, is_gone=gone) for file, now, gone in batch]
        writer.add([pages], number)
        check(writer, model)
    first = min(joined, len(writer.segments) - 1)
    parts = [writer.path / s.name for s in writer.segments[first:]]
    merge_segments(writer.path / "joined.links", parts, is_whole=first == 0)
    reader = LinkIndex.open(folder)
    reader.segments[first:] = [Segment.open(writer.path / "joined.links")]
    check(reader, model)
    if first == 0:
        assert not reader.segments[0].pairs()[2].any(), "a whole index takes nothing back"
        assert set(reader.segments[0].sources.tolist()) == set(model)


def site(pages: int, links: int, seed: int = 0) -> list[LinkChanges]:
    """A site: every page has a menu and points to its neighbours."""
    choose = np.random.default_rng(seed)
    urls = [f"https://site.example/docs/page{n}.html" for n in range(pages)]
    made = []
    for n in range(pages):
        near = (n + choose.integers(-50, 50, links - 10)) % pages
        targets = list(dict.fromkeys([*urls[:10], *(urls[i] for i in near)]))
        made.append(LinkChanges(n + 1, urls[n], targets, b"\1" * len(targets), [f"page {u[-9:]}" for u in targets]))
    return made


def test_many_links_to_one_url_are_counted_and_listed(tmp_path: Path) -> None:
    pages = site(3_000, 20)
    writer = LinkWriter.open(tmp_path)
    writer.add([pages[:1500], pages[1500:]], 3_000)
    assert writer.counts([pages[0].url, pages[9].url, "https://nobody.example/"]) == [2_999, 2_999, 0]
    inlinks = writer.inlinks(pages[0].url)
    assert [link.source for link in inlinks] == list(range(2, 3_001))
    assert {link.anchor for link in inlinks} == {f"page {pages[0].url[-9:]}"}


def test_graph_takes_two_bytes_a_link_at_most(tmp_path: Path) -> None:
    segments.write_segment(tmp_path / "s.links", from_pages(site(5_000, 34)))
    written = Segment.open(tmp_path / "s.links")
    assert written.id_bytes / written.links <= 1.2


def test_graph_with_half_of_its_targets_seen_once_takes_two_bytes_a_link_at_most() -> None:
    pages = [
        LinkChanges(
            page.file_num, page.url, [*page.urls, *(f"{page.url}#{n}" for n in range(2))], b"\1" * 12, [""] * 12
        )
        for page in site(1_200, 10)
    ]
    made = Segment.of(from_pages(pages))
    assert 0.1 < len(made.targets) / made.links < 0.4
    assert made.id_bytes / made.links <= 2.0


def test_flush_of_a_thousand_pages_is_short() -> None:
    pages = site(1_000, 50)
    bounded(lambda: from_pages(pages), units=50)


def test_changed_counts_are_told(tmp_path: Path) -> None:
    heard: dict[int, int] = {}
    writer = LinkWriter.open(tmp_path)
    writer.on_change = lambda ids, by: heard.update(zip(ids.tolist(), by.tolist(), strict=True))
    writer.add([[LinkChanges(1, URLS[1], URLS[2:5], b"\1\1\1", ["", "", ""])]], 1)
    assert heard == {url_id(url): 1 for url in URLS[2:5]}
    heard.clear()
    writer.add([[LinkChanges(1, URLS[1], [], b"", [], URLS[2:4])]], 2)
    assert heard == {url_id(url): -1 for url in URLS[2:4]}


def test_neighbours_are_joined_when_enough_are_alike() -> None:
    assert neighbours([1000] * (SMALL_MERGED_AT_ONCE - 1)) is None
    assert neighbours([1000] * SMALL_MERGED_AT_ONCE) == 0
    assert neighbours([1 << 22] + [1000] * SMALL_MERGED_AT_ONCE) == 1
    assert neighbours([1 << 22] + [1 << 18] * MERGED_AT_ONCE + [1000]) == 1
    assert neighbours([1 << 23] * 7 + [1 << 18] * 7 + [1000] * 7) is None


@pytest.mark.slow
def test_writer_has_segments_joined_by_a_process(tmp_path: Path) -> None:
    writer = LinkWriter.open(tmp_path)
    pages = site(800, 20)
    for n in range(SMALL_MERGED_AT_ONCE):
        writer.add([pages[n * 25 : n * 25 + 25]], n)
    expected = writer.counts([page.url for page in pages])
    writer.merge_if_due()
    deadline = time.monotonic() + 120
    while len(writer.segments) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
        writer.merge_if_due()
    assert len(writer.segments) == 1
    assert writer.counts([page.url for page in pages]) == expected
    assert {file.name for file in writer.path.iterdir()} == {LIST, writer.segments[0].name}
    assert LinkIndex.open(tmp_path).covered == SMALL_MERGED_AT_ONCE - 1


def test_files_that_nobody_names_are_deleted_by_the_next_writer(tmp_path: Path) -> None:
    writer = LinkWriter.open(tmp_path)
    writer.add([site(10, 12)], 1)
    (writer.path / "0123.links").write_bytes(b"half")
    (writer.path / ".0456.links.new").write_bytes(b"half")
    again = LinkWriter.open(tmp_path)
    assert {file.name for file in again.path.iterdir()} == {LIST, *read_list(again.path).names}
    assert again.counts([site(10, 12)[0].url]) == [9]


def test_damaged_segment_says_what_to_do(tmp_path: Path) -> None:
    writer = LinkWriter.open(tmp_path)
    writer.add([site(10, 12)], 1)
    (writer.path / writer.segments[0].name).write_bytes(b"something else altogether")
    with pytest.raises(StoreError, match="built anew"):
        LinkIndex.open(tmp_path)


def test_segment_with_a_flipped_bit_is_built_anew(tmp_path: Path) -> None:
    writer = LinkWriter.open(tmp_path)
    writer.add([site(10, 12)], 1)
    file = writer.path / writer.segments[0].name
    whole = file.read_bytes()
    for place in range(len(whole) // 2, len(whole), 97):
        data = bytearray(whole)
        data[place] ^= 16
        file.write_bytes(data)
        with pytest.raises(StoreError, match="damaged"):
            LinkIndex.open(tmp_path)
    assert LinkWriter.open(tmp_path).covered == 0


@needs_smaps
def test_segment_that_is_only_opened_is_not_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "s.links"
    segments.write_segment(path, from_pages(site(15_000, 34)))
    opened = Segment.open(path)
    assert resident_bytes(path) < path.stat().st_size / 2
    assert int(opened.counts(opened.targets).sum()) == opened.links
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as whole:
        assert len(bytes(whole)) == path.stat().st_size
        assert resident_bytes(path) > path.stat().st_size / 2, "the system tells"


def test_damaged_frame_says_so() -> None:
    frames = pack_frames(np.arange(5_000), np.array([5_000]))
    with pytest.raises(StoreError, match="damaged"):
        unpack_frames(Frames(frames.data ^ 255, frames.ends))


def test_segment_of_another_version_says_so(tmp_path: Path) -> None:
    writer = LinkWriter.open(tmp_path)
    writer.add([site(10, 12)], 1)
    file = writer.path / writer.segments[0].name
    file.write_bytes(file.read_bytes().replace(b"lycosa links 2", b"lycosa links 1", 1))
    with pytest.raises(StoreError, match="another version"):
        LinkIndex.open(tmp_path)
    assert LinkWriter.open(tmp_path).covered == 0, "the next crawl builds it anew"


def test_page_without_links_is_a_page(tmp_path: Path) -> None:
    writer = LinkWriter.open(tmp_path)
    writer.add([[LinkChanges(7, URLS[0])]], 1)
    (only,) = writer.segments
    assert (only.sources.tolist(), only.links) == ([7], 0)
    assert writer.counts(URLS) == [0] * len(URLS)
    assert writer.inlinks(URLS[0]) == []


def test_joined_texts_are_kept_once() -> None:
    parts = [from_pages(_with_words(n, ["home", "next", f"only {n}"])) for n in range(3)]
    whole = join_columns(parts, is_whole=True)
    assert len(whole.texts.ids) == 5
    assert bytes(whole.texts.data)[:4] in (b"home", b"next")


def _with_words(number: int, words: Sequence[str]) -> list[LinkChanges]:
    return [LinkChanges(number, URLS[number], URLS[5:8], b"\1\1\1", words)]
