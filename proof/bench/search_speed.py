"""How quickly a large index answers: 100,000 documents, a thousand queries of many kinds, one after the other.

    python -m proof.bench.search_speed [--documents 100000] [--queries 1000]

The documents are windows of about 3 KB cut at random out of real documentation, each under a title of words from its
text, with ten links to others under their titles; so words are as frequent as they are in the real texts. Queries are
of one to four words as they come in the texts, frequent ones among them, and phrases, exclusions, sites and dates. A
query's time is that of the whole call: ten results with titles, dates and snippets read from the archive.
"""

import argparse
import contextlib
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lycosa.graph.indexer import LinkIndexer
from lycosa.records import Family, Request, Response
from lycosa.search.query import QueryError
from lycosa.search.view import SearchView, make_index
from lycosa.store import Batch, CollectionStore, HttpExchange, response_exchange
from lycosa.store.page_rows import LinkRow, PageRow, pack
from lycosa.web.document import document_digest, document_fingerprint
from lycosa.web.readable import extract_readable
from lycosa.web.url import url_key
from proof.bench.ground import say
from proof.bench.measure import Verdict, load, table
from proof.bench.site import QUICK, WHOLE

P50_BAR_MS, P99_BAR_MS = 10.0, 50.0
WINDOW_CHARS = 3_000
LINKS = 10
COMMIT = 1_000
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"


def texts(most: int = 2_000) -> list[str]:
    """Real texts, one a page."""
    files = [file for site in (QUICK, WHOLE) for file in sorted(site.folder().rglob("*.html")) if file.is_file()]
    chosen = random.Random(1).sample(files, min(most, len(files)))
    read = (extract_readable(file.read_bytes(), url="http://x/", content_type="text/html").text for file in chosen)
    return [text for text in (" ".join(each.split()) for each in read) if len(text) > WINDOW_CHARS]


def pages(count: int) -> Iterator[tuple[str, str, str, list[int]]]:
    """URL, title, text and the numbers of the pages that it points to."""
    source, chance = texts(), random.Random(2)
    for number in range(count):
        whole = chance.choice(source)
        at = chance.randrange(len(whole) - WINDOW_CHARS + 1)
        text = whole[at : at + WINDOW_CHARS]
        title = " ".join(chance.sample(text.split(), 4))
        yield url_of(number), title, text, [chance.randrange(count) for _ in range(LINKS)]


def url_of(number: int) -> str:
    return f"https://h{number % 50}.example/d{number % 977}/{number}.html"


def fill(path: Path, count: int) -> list[str]:
    """Writes a collection as a crawl would have left it; returns some of the texts."""
    made = [(url, title, text) for url, title, text, _ in pages(count)]
    titles = [title for _, title, _ in made]
    with CollectionStore.create(path) as collection:
        linker = LinkIndexer(collection)
        linker.catch_up()
        batch, members, rows = Batch(), list[bytes](), list[tuple[bytes, PageRow, int]]()
        for number, (url, title, text, targets) in enumerate(pages(count)):
            body = f"<html lang=en><title>{title}</title><p>{text}</p></html>".encode()
            fetched_s = 1_700_000_000.0 + 600 * number
            found = response_exchange(
                Request(url, "h", 80, ""), Response(url, 200, _HEAD, body=body), fetched_s=fetched_s
            )
            row = PageRow(200, fetched_s, essence="text/html", size_bytes=len(body), title=title, language="en")
            row.digest, row.fingerprint = document_digest(body), document_fingerprint(body)
            rows.append((url_key(url), row, len(members) + HttpExchange.RESPONSE))
            members += found.members
            hrefs = tuple(dict.fromkeys(map(url_of, targets)))
            anchors = tuple(titles[target] for target in dict.fromkeys(targets))
            links = LinkRow(hrefs, "", b"\1" * len(hrefs), anchors)
            linker.page(url, url_key(url), row, links, {href: href for href in hrefs})
            if len(rows) == COMMIT or number == count - 1:
                places = collection.warc.append(members)
                linker.prepare(batch)
                for key, each, ticket in rows:
                    each.place = places[ticket].pack()
                    batch.put(Family.PAGE, key, pack(each))
                linker.write(batch)
                collection.commit(batch)
                linker.committed()
                batch, members, rows = Batch(), [], []
        linker.close()
    return [text for _, _, text in made[:2_000]]


def queries(source: list[str], count: int) -> Iterator[tuple[str, str]]:
    """Kind and text of each."""
    chance = random.Random(3)

    def words(most: int) -> str:
        found = [word.strip('.,;:()"') for word in chance.choice(source).split()]
        return " ".join(chance.sample([word for word in found if word.isalnum()], most)).lower()

    def phrase() -> str:
        found = chance.choice(source).split()
        at = chance.randrange(len(found) - 3)
        return '"' + " ".join(found[at : at + 3]).replace('"', " ") + '"'

    kinds: dict[str, Callable[[], str]] = {
        "one word": lambda: words(1),
        "two words": lambda: words(2),
        "four words": lambda: words(4),
        "phrase": phrase,
        "frequent words": lambda: chance.choice(
            ["the of to", "the method", "in this class", "a the", "java the returns"]
        ),
        "exclusion": lambda: f"{words(2)} -{words(1)}",
        "site and date": lambda: f"{words(1)} site:h{chance.randrange(50)}.example after:2023-12 before:2025",
        "either": lambda: f"{words(1)} OR {words(1)}",
    }
    names = list(kinds)
    for number in range(count):
        kind = names[number % len(names)]
        yield kind, kinds[kind]()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--tries", type=int, default=1, help="of each query the best counts, where others are busy too")
    parser.add_argument("--keep", type=Path, help="make the collection here, or use the one that is there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        path = options.keep or Path(folder) / "collection"
        if not path.is_dir():
            say(f"making {options.documents:,} documents")
            fill(path, options.documents)
        say("indexing")
        made = make_index(path)
        source = [text for _, _, text, _ in pages(2_000)]
        times: dict[str, list[float]] = {}
        own: dict[str, list[float]] = {}
        with SearchView(path) as view:
            for kind, query in list(queries(source, 40)) + list(queries(source, options.queries)):
                walls, cpus = [], []
                for _ in range(options.tries):
                    began, cpu = time.perf_counter(), time.process_time()
                    with contextlib.suppress(QueryError):
                        view.search(query)
                    walls.append(1000 * (time.perf_counter() - began))
                    cpus.append(1000 * (time.process_time() - cpu))
                times.setdefault(kind, []).append(min(walls))
                own.setdefault(kind, []).append(min(cpus))
    everything = sorted(value for each in times.values() for value in each)
    spent = sorted(value for each in own.values() for value in each)
    print(f"{made.documents:,} documents, index {made.size_bytes / 1e6:,.0f} MB; {len(everything):,} queries; {load()}")
    rows = [
        [
            kind,
            str(len(each)),
            *(f"{quantile(sorted(values), q):.1f}" for values in (each, own[kind]) for q in (50, 99)),
        ]
        for kind, each in times.items()
    ]
    print(table(["", "queries", "p50 ms", "p99 ms", "CPU p50", "CPU p99"], rows))
    p50, p99 = quantile(everything, 50), quantile(everything, 99)
    print(f"CPU p50 {quantile(spent, 50):.1f} ms, p99 {quantile(spent, 99):.1f} ms")
    verdict = Verdict()
    verdict.judge(f"p50 {p50:.1f} ms, at most {P50_BAR_MS:g}", p50 <= P50_BAR_MS)
    verdict.judge(f"p99 {p99:.1f} ms, at most {P99_BAR_MS:g}", p99 <= P99_BAR_MS)
    verdict.exit()


def quantile(ordered: list[float], percent: int) -> float:
    return statistics.quantiles(ordered, n=100, method="inclusive")[percent - 1] if len(ordered) > 1 else ordered[0]


if __name__ == "__main__":
    main()
