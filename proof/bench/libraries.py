"""Our own parts beside the libraries that could take their place: the link index, the WARC reader, snippets.

    links      segments of packed columns beside a RocksDB family with one key a link
    warc       the WARC reader beside FastWARC, which runs in an environment of its own
    snippets   the highlighter beside tantivy's snippet generator

Pages are real documentation. CPU time counts, the best of several rounds. The trie has a benchmark of its own, `trie`.
"""

import json
import random
import subprocess
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import tantivy
from rocksdict import BlockBasedOptions, Cache, DBCompressionType, Options, Rdict, ReadOptions, WriteBatch

from lycosa.errors import LycosaError
from lycosa.graph.columns import LinkChanges, url_id
from lycosa.graph.index import LinkIndex, LinkWriter, SegmentList, merge_segments, write_list
from lycosa.search.documents import register, schema
from lycosa.search.snippet import WINDOW_CHARS, Highlighter
from lycosa.store import WarcLocation, read_message
from lycosa.store.warc_read import WarcReader, read_record
from lycosa.web import analyse_page, base_url, extract_readable, join_map
from proof import Bar, Experiment, Run
from proof.bench.costs import PAGE_BYTES, build, fetched
from proof.ground.commands import best_us, scratch
from proof.ground.peers import environment
from proof.ground.sites import OPENJDK, POSTGRESQL, RealSite

PAGES, QUICK_PAGES = 8_000, 500
RECORDS, QUICK_RECORDS = 2_000, 200
ASKED = 300
BLOCK_BYTES, CACHE_BYTES = 16 << 10, 32 << 20
QUESTIONS = Path(__file__).parents[1] / "ground" / "fastwarc_questions.py"
QUERIES = (["index"], ["transaction", "isolation", "level"], ["create", "index", "concurrently"])
SITE = "https://docs.example.org/"


def measure(run: Run) -> None:
    with scratch() as folder:
        for name in run.chosen:
            run.say(name)
            PARTS[name](run, folder)


# links


def links(run: Run, folder: Path) -> None:
    pages = _pages_with_links(POSTGRESQL if run.quick else OPENJDK, QUICK_PAGES if run.quick else PAGES)
    count = sum(len(page.urls) for page in pages)
    targets = random.Random(1).sample(sorted({url for page in pages for url in page.urls}), ASKED)
    run.setting("links", count)
    ours, theirs = _segments(folder, pages, count, targets), _rocksdb(folder, pages, count, targets)
    run.table(["links", *ours], [("segments", *ours.values()), ("RocksDB", *theirs.values())])
    run.figure("bytes of a link, ours to RocksDB's", ours["B/link"] / theirs["B/link"])
    run.figure("CPU to add a link, ours to RocksDB's", ours["add, µs/link"] / theirs["add, µs/link"])
    run.figure("CPU to read all links, ours to RocksDB's", ours["read all, µs/link"] / theirs["read all, µs/link"])
    run.figure("CPU to find the links to one URL, ours to RocksDB's", ours["one URL, µs"] / theirs["one URL, µs"])


def _pages_with_links(site: RealSite, most: int) -> list[LinkChanges]:
    pages = []
    for number, path in enumerate(sorted(site.folder().rglob("*.html"))[:most], 1):
        url = f"{SITE}{path.relative_to(site.folder())}"
        page = analyse_page(path.read_bytes(), url=url, content_type="text/html")
        joined = join_map(base_url(url, page.base_href), page.links.hrefs)
        rows = zip(page.links.hrefs, page.links.kinds, page.links.anchors, strict=True)
        found = {joined[href]: (kind, anchor) for href, kind, anchor in rows if joined.get(href, url) != url}
        kinds, anchors = bytes(kind for kind, _ in found.values()), [anchor for _, anchor in found.values()]
        pages.append(LinkChanges((7 << 48) | number, url, list(found), kinds, anchors))
    return pages


def _lots(pages: list[LinkChanges], size: int) -> Iterator[list[LinkChanges]]:
    rest = iter(pages)
    while some := list(islice(rest, size)):
        yield some


def _segments(folder: Path, pages: list[LinkChanges], count: int, targets: list[str]) -> dict[str, float]:
    def add() -> None:
        writer = LinkWriter.open(folder)
        writer.clear()
        writer.add(_lots(pages, 1_000), len(pages))

    add_us = best_us(add, count, rounds=3)
    parts = [folder / "graph" / segment.name for segment in LinkIndex.open(folder).segments]
    merged = folder / "graph" / "all.links"
    add_us += best_us(lambda: merge_segments(merged, parts, is_whole=True), count, rounds=3)
    write_list(folder / "graph", SegmentList(len(pages), (merged.name,)))
    index = LinkIndex.open(folder)
    return {
        "add, µs/link": add_us,
        "B/link": merged.stat().st_size / count,
        "read all, µs/link": best_us(index.segments[0].pairs, count, rounds=3),
        "one URL, µs": best_us(lambda: [index.inlinks(url) for url in targets], len(targets), rounds=3),
        "many counts, µs/URL": best_us(lambda: index.counts(targets), len(targets), rounds=3),
    }


def _rocksdb(folder: Path, pages: list[LinkChanges], count: int, targets: list[str]) -> dict[str, float]:
    options, blocks = Options(raw_mode=True), BlockBasedOptions()
    options.create_if_missing(True)
    options.set_compression_type(DBCompressionType.zstd())
    blocks.set_block_size(BLOCK_BYTES)
    blocks.set_block_cache(Cache(CACHE_BYTES))
    options.set_block_based_table_factory(blocks)
    database = Rdict(str(folder / "rocksdb"), options)

    def add() -> None:
        for some in _lots(pages, 100):
            batch = WriteBatch(raw_mode=True)
            for page in some:
                source = page.file_num.to_bytes(8)
                for url, kind, anchor in zip(page.urls, page.kinds, page.anchors, strict=True):
                    batch.put(url_id(url).to_bytes(6) + source, bytes((kind,)) + anchor.encode())
            database.write(batch)
        database.flush()
        database.compact_range(None, None)

    def inlinks(url: str) -> int:
        bounds, target = ReadOptions(), url_id(url)
        bounds.set_iterate_upper_bound((target + 1).to_bytes(6))
        return sum(1 for _ in database.items(from_key=target.to_bytes(6), read_opt=bounds))

    add_us = best_us(add, count, rounds=1)
    one_us = best_us(lambda: [inlinks(url) for url in targets], len(targets), rounds=3)
    found = {
        "add, µs/link": add_us,
        "B/link": sum(file.stat().st_size for file in (folder / "rocksdb").glob("*.sst")) / count,
        "read all, µs/link": best_us(lambda: sum(1 for _ in database.items()), count, rounds=3),
        "one URL, µs": one_us,
        "many counts, µs/URL": one_us,
    }
    database.close()
    return found


# warc


def warc(run: Run, folder: Path) -> None:
    path, count = folder / "pages.warc.gz", QUICK_RECORDS if run.quick else RECORDS
    exchanges = build([fetched(PAGE_BYTES, number) for number in range(count)])
    path.write_bytes(b"".join(member for members in exchanges for member in members))
    with WarcReader(path) as reader:
        places = [WarcLocation(0, each.offset, each.length) for each in reader if each.type == "response"]
    some = random.Random(1).sample(places, min(ASKED, len(places)))

    def in_order() -> int:
        with WarcReader(path) as records:
            return sum(len(record.block) for record in records)

    python = environment("fastwarc", "fastwarc>=1.1")
    command = [str(python), "-W", "ignore", str(QUESTIONS), str(path), *(str(place.offset) for place in some)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise LycosaError(f"FastWARC failed:\n{done.stderr}")
    fast: dict[str, float] = json.loads(done.stdout)
    one_us = best_us(lambda: [read_record(path, place) for place in some], len(some))
    message_us = best_us(lambda: [read_message(path, place) for place in some], len(some))
    order_us, fast_order_us = best_us(in_order, 3 * count), fast["in_order_s"] * 1e6 / (3 * count)
    fast_one_us = fast["one_by_one_s"] * 1e6 / len(some)
    rows = [("all in order", order_us, fast_order_us), ("one by its place", one_us, fast_one_us)]
    run.table(["CPU µs a record", "ours", "FastWARC"], [*rows, ("one message by its place", message_us, fast_one_us)])
    run.figure("CPU of a message by its place, ours to FastWARC's", message_us / fast_one_us)
    run.figure("CPU of records in order, ours to FastWARC's", order_us / fast_order_us)


# snippets


def snippets(run: Run, _: Path) -> None:
    files = sorted(POSTGRESQL.folder().rglob("*.html"))[: QUICK_PAGES if run.quick else PAGES]
    texts = [
        extract_readable(path.read_bytes(), url=f"{SITE}{path.name}", content_type="text/html").text for path in files
    ]
    index = tantivy.Index(schema())
    register(index)
    writer = index.writer(50_000_000, 1)
    for text in texts:
        writer.add_document(tantivy.Document.from_dict({"text_en": text}, schema()))
    writer.commit()
    index.reload()
    rows, ratios, gained = [], [], []
    for words in QUERIES:
        chosen = [text for text in texts if all(word in text.lower() for word in words)][:100]
        ours, theirs = Highlighter(words, "en"), _tantivy_snippets(index, words)
        ours_us = best_us(lambda: list(map(ours.snippet, chosen)), len(chosen))  # noqa: B023
        theirs_us = best_us(lambda: list(map(theirs, chosen)), len(chosen))  # noqa: B023
        shown = sum(len({each.text[a:b].lower() for a, b in each.highlights}) for each in map(ours.snippet, chosen))
        others = sum(len(theirs(text)) for text in chosen)
        rows.append((" ".join(words), ours_us, theirs_us, shown / len(chosen), others / len(chosen)))
        ratios.append(ours_us / theirs_us)
        gained.append(shown / others)
    run.table(["query", "ours, µs", "tantivy, µs", "words shown", "words shown, tantivy"], rows)
    run.figure("CPU of a snippet, ours to tantivy's", sum(ratios) / len(ratios))
    run.figure("words shown, ours to tantivy's", sum(gained) / len(gained))


def _tantivy_snippets(index: tantivy.Index, words: list[str]) -> Callable[[str], set[str]]:
    query = index.parse_query(" AND ".join(words), ["text_en"])
    generator = tantivy.SnippetGenerator.create(index.searcher(), query, schema(), "text_en")
    generator.set_max_num_chars(WINDOW_CHARS)

    def shown(text: str) -> set[str]:
        found = generator.snippet_from_doc(tantivy.Document.from_dict({"text_en": text}, schema()))
        fragment = found.fragment().encode()
        return {fragment[mark.start : mark.end].decode().lower() for mark in found.highlighted()}

    return shown


PARTS: dict[str, Callable[[Run, Path], None]] = {"links": links, "warc": warc, "snippets": snippets}
EXPERIMENT = Experiment(
    name="libraries",
    summary="the link index beside RocksDB, the WARC reader beside FastWARC, snippets beside tantivy's",
    run=measure,
    choices=tuple(PARTS),
    bars=(
        Bar("links are small", "bytes of a link, ours to RocksDB's", "<=", 0.6),
        Bar("links are added cheaply", "CPU to add a link, ours to RocksDB's", "<=", 1.0),
        Bar("all links are read quickly", "CPU to read all links, ours to RocksDB's", "<=", 0.5),
        Bar("a message is read quickly", "CPU of a message by its place, ours to FastWARC's", "<=", 1.0),
        Bar("snippets are cheap", "CPU of a snippet, ours to tantivy's", "<=", 1.2),
        Bar("snippets show the words", "words shown, ours to tantivy's", ">=", 1.0),
    ),
)
