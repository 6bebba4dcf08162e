"""PageRank of a large collection: 1,000,000 pages with 20,000,000 links, as `lycosa rank` works it out.

The collection is made first, without a crawl: numbers and URLs of the pages in the state, and their links in segments
of the index, most of them to pages nearby and to a few that everyone points to. Then a process of its own opens it,
works the ranks out from scratch, and again from the last ones; its CPU time, which on an idle machine is the clock's,
and its largest resident set count. Beside it real documentation is crawled, and its ranks are compared with those that
networkx finds in the links of the state. Told of both: what a link takes in the index, anchors apart.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import networkx
import numpy as np

from lycosa.graph import columns as texts
from lycosa.graph import rank_pages, ranked_pages, stored_link_index
from lycosa.graph.columns import LinkColumns, intern_texts, url_ids
from lycosa.graph.index import LINK_INDEX_FOLDER, SegmentList, write_list
from lycosa.graph.ranks import DAMPING
from lycosa.graph.segments import Segment, write_segment
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.store import Batch, CollectionStore, unpack_links
from lycosa.web import url_from_key, url_key
from lycosa.web.url import base_url, join_map
from proof import Bar, Experiment, Run
from proof.ground.commands import run_command, scratch
from proof.ground.servers import nginx_of
from proof.ground.sites import POSTGRESQL, crawl_command

PAGES, QUICK_PAGES, LINKS_A_PAGE = 1_000_000, 20_000, 20
SEGMENT_LINKS = 4_000_000
HOSTS = 2_000
NEAR = 3_000  # how far most links lead, in pages
BATCH_PAGES = 5_000

_RANK = """
import json, sys, time
from pathlib import Path
from lycosa.graph.links import rank_pages
from lycosa.inspect import open_to_read
took = []
for _ in range(2):
    began, cpu = time.monotonic(), time.process_time()
    with open_to_read(Path(sys.argv[1])) as collection:
        ranks, steps = rank_pages(collection)
    took.append((time.monotonic() - began, time.process_time() - cpu, steps))
print(json.dumps({"took": took, "pages": len(ranks.ranks), "sum": float(ranks.ranks.sum())}))
"""


def number_pages(
    collection: CollectionStore, pages: int
) -> tuple[list[str], "np.ndarray[tuple[int], np.dtype[np.uint64]]"]:
    """URLs and FileNums of the pages, sorted by number, with rows in the state."""
    urls = [f"https://host{n % HOSTS}.example/section{n % 97}/page{n}.html" for n in range(pages)]
    keys = [url_key(url) for url in urls]
    numbers = np.array([int.from_bytes(key[:2]) << 48 | n + 1 for n, key in enumerate(keys)], dtype=np.uint64)
    order = np.argsort(numbers)
    for at in range(0, pages, BATCH_PAGES):
        batch = Batch()
        for place in order[at : at + BATCH_PAGES].tolist():
            batch.put(Family.FILE, int(numbers[place]).to_bytes(8), keys[place])
        collection.state.write(batch)
    return [urls[place] for place in order.tolist()], numbers[order]


def link_pages(
    folder: Path, urls: list[str], numbers: "np.ndarray[tuple[int], np.dtype[np.uint64]]", links: int
) -> tuple[int, float]:
    """Segments of the index; returns how many links they have, and the bytes of each, anchors apart."""
    choose, ids = np.random.default_rng(1), url_ids(urls)
    pages, parts = len(urls), max(1, links // SEGMENT_LINKS)
    table, _ = intern_texts(["next page"])
    names = []
    for part in range(parts):
        first, last = pages * part // parts, pages * (part + 1) // parts
        count = links // parts
        source = choose.integers(first, last, count)
        near = (source + choose.integers(-NEAR, NEAR, count)) % pages
        target = np.where(choose.random(count) < 0.8, near, (pages * choose.random(count) ** 4).astype(np.int64))
        pairs = np.unique(np.argsort(np.argsort(ids))[target] * pages + source)
        targets, sizes = np.unique(pairs // pages, return_counts=True)
        columns = LinkColumns(
            sources=numbers[first:last],
            present=np.ones(last - first, dtype=bool),
            targets=np.sort(ids)[targets],
            sizes=sizes.astype(np.int64),
            places=pairs % pages - first,
            minus=np.zeros(len(pairs), dtype=bool),
            codes=np.zeros(len(pairs), dtype=np.int64),
            texts=texts.LinkTexts(*table),
        )
        names.append(f"{part:04}.links")
        write_segment(folder / names[-1], columns)
    write_list(folder, SegmentList(0, tuple(names)))
    return measured([Segment.open(folder / name) for name in names])


def measured(segments: Sequence[Segment]) -> tuple[int, float]:
    total = sum(segment.links for segment in segments)
    return total, sum(segment.id_bytes for segment in segments) / total


def beside_networkx() -> tuple[float, int, float]:
    """Crawls real documentation; how far its ranks are from those of networkx, added up, the number of pages, and the
    bytes of a link."""
    with scratch() as folder:
        into = folder / "crawl"
        with nginx_of(POSTGRESQL.folder(), folder) as server:
            run_command(crawl_command(server, POSTGRESQL, into))
        with open_to_read(into) as collection:
            found, _ = rank_pages(collection)
            _, link_bytes = measured(stored_link_index(collection).segments)
            ranks = {row.url: row.rank for row in ranked_pages(collection, found)}
            graph = networkx.DiGraph()
            graph.add_nodes_from(ranks)
            for key, row in collection.state.walk(Family.LINK):
                url, links = url_from_key(key), unpack_links(row)
                targets = set(join_map(base_url(url, links.base_href), links.hrefs).values()) - {url}
                graph.add_edges_from((url, target) for target in targets if target in ranks)
    expected = networkx.pagerank(graph, alpha=DAMPING, tol=1e-14, max_iter=1_000)
    return sum(abs(ranks[url] - expected[url]) for url in ranks), len(ranks), link_bytes


def measure(run: Run) -> None:
    pages = QUICK_PAGES if run.quick else PAGES
    with scratch() as folder:
        path = folder / "collection"
        run.say(f"making a collection of {pages:,} pages")
        with CollectionStore.create(path) as collection:
            (path / LINK_INDEX_FOLDER).mkdir()
            urls, numbers = number_pages(collection, pages)
        links, link_bytes = link_pages(path / LINK_INDEX_FOLDER, urls, numbers, pages * LINKS_A_PAGE)
        del urls, numbers
        run.say("working the ranks out")
        usage = run_command([sys.executable, "-c", _RANK, path])
    run.say(f"crawling {POSTGRESQL.package}, for networkx")
    difference, site_pages, site_bytes = beside_networkx()
    told = json.loads(usage.out)
    run.setting("pages", told["pages"])
    run.setting("links", links)
    run.setting(f"pages of {POSTGRESQL.package}", site_pages)
    for name, (wall_s, cpu_s, steps) in zip(("from scratch", "from the last ranks"), told["took"], strict=True):
        run.figure(f"CPU {name}", cpu_s, "s")
        run.figure(f"time {name}", wall_s, "s")
        run.figure(f"steps {name}", steps)
    run.figure("memory", usage.peak_mb, "MB")
    run.figure("ranks add up to 1 but for", abs(told["sum"] - 1))
    run.figure("difference from networkx, added up", difference)
    run.figure("a link of the real site, anchors apart", site_bytes, "B")
    run.figure("a made-up link, anchors apart", link_bytes, "B")


EXPERIMENT = Experiment(
    name="rank",
    summary="PageRank of 1,000,000 pages with 20,000,000 links, from a collection on disk",
    run=measure,
    bars=(
        Bar("quick", "CPU from scratch", "<=", 60.0),
        Bar("little memory", "memory", "<=", 1_500.0),
        Bar("a distribution", "ranks add up to 1 but for", "<=", 1e-9),
        Bar("as networkx", "difference from networkx, added up", "<=", 1e-6),
        Bar("small links", "a link of the real site, anchors apart", "<=", 2.0),
    ),
)
