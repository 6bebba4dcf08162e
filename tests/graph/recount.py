"""The links of a collection counted from scratch: from page rows and link rows alone, without index and feed."""

from collections import defaultdict
from pathlib import Path

from lycosa.graph.feed import entries_after, key_of
from lycosa.graph.index import LinkIndex
from lycosa.graph.indexer import replay
from lycosa.records import Family
from lycosa.store import CollectionStore, State
from lycosa.store.page_rows import unpack_links, unpack_page
from lycosa.web.url import base_url, join_map, url_from_key


def sources_by_target(state: State) -> dict[str, set[str]]:
    """URL → the pages that point to it."""
    found: dict[str, set[str]] = defaultdict(set)
    for key, packed in state.walk(Family.PAGE):
        row, links = unpack_page(packed), state.get(Family.LINK, key)
        if row.file_num and 0 < row.status < 400 and links:
            url, written = url_from_key(key), unpack_links(links)
            for target in set(join_map(base_url(url, written.base_href), written.hrefs).values()):
                if target != url:
                    found[target].add(url)
    return found


def link_problems(path: Path) -> list[str]:
    """Sentences about what the link index and the numbers of pages say otherwise than a recount."""
    with CollectionStore.open(path, read_only=True) as collection:
        state, index = collection.state, LinkIndex.open(path)
        problems = _number_problems(state)
        covered = index.covered
        index.overlay(list(replay(state, covered)))
        expected = sources_by_target(state)
        urls = list(expected)
        for url, count in zip(urls, index.counts(urls), strict=True):
            if count != len(expected[url]):
                problems.append(f"{url} has {len(expected[url])} links, the index counts {count}")
        total, counted = (
            sum(map(len, expected.values())),
            sum(int((1 - 2 * s.pairs()[2]).sum()) for s in index.segments),
        )
        if total != counted:
            problems.append(f"there are {total} links, the index has {counted}")
        for url in urls[:: max(1, len(urls) // 100)]:
            found = {url_from_key(key_of(state, link.source) or b"") for link in index.inlinks(url)}
            if found != expected[url]:
                problems.append(f"{url} is pointed to by {sorted(expected[url])}, the index says {sorted(found)}")
        sequences = [news.sequence for news in entries_after(state, covered)]
        if sequences != list(range(covered + 1, covered + 1 + len(sequences))):
            problems.append("the feed has a hole")
    return problems


def _number_problems(state: State) -> list[str]:
    by_number = {int.from_bytes(number): key for number, key in state.walk(Family.FILE)}
    pages = {key: unpack_page(row).file_num for key, row in state.walk(Family.PAGE)}
    problems = [f"two numbers for one page: {len(by_number)} for {len(set(by_number.values()))}"]
    problems = problems if len(set(by_number.values())) != len(by_number) else []
    problems += [
        f"{key!r} has number {n}, which leads to {by_number.get(n)!r}"
        for key, n in pages.items()
        if n and by_number.get(n) != key
    ]
    problems += [
        f"number {n} leads to {key!r}, which has {pages.get(key)}"
        for n, key in by_number.items()
        if pages.get(key) != n
    ]
    return problems + [
        f"{n} is not of the bucket of {key!r}" for n, key in by_number.items() if n >> 48 != int.from_bytes(key[:2])
    ]
