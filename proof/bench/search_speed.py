"""How quickly a large index answers: 100,000 documents, a thousand queries of many kinds, one after the other.

The documents are windows of about 3 KB cut at random out of real documentation, each under a title of words from its
text, with ten links to others under their titles; so words are as frequent as they are in the real texts. Queries are
of one to four words as they come in the texts, frequent ones among them, and phrases, exclusions, sites and dates. A
query's time is that of the whole call: ten results with titles, dates and snippets read from the archive.
"""

import contextlib
import random
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from lycosa.graph import LinkIndexer
from lycosa.records import Family, Request, Response
from lycosa.search import QueryError, SearchView, make_index
from lycosa.store import Batch, CollectionStore, HttpExchange, PageRow, pack_row, response_exchange
from lycosa.web import FollowedLinks, document_digest, document_fingerprint, extract_readable, url_key
from proof import Bar, Experiment, Run
from proof.ground.commands import scratch
from proof.ground.sites import OPENJDK, POSTGRESQL

DOCUMENTS, QUICK_DOCUMENTS = 100_000, 3_000
QUERIES, QUICK_QUERIES, WARMING = 1_000, 200, 40
WINDOW_CHARS = 3_000
LINKS = 10
COMMIT = 1_000
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"


def texts(most: int = 2_000) -> list[str]:
    """Real texts, one a page."""
    files = [file for site in (POSTGRESQL, OPENJDK) for file in sorted(site.folder().rglob("*.html")) if file.is_file()]
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
            links = FollowedLinks(hrefs, b"\1" * len(hrefs), anchors, {href: href for href in hrefs})
            linker.page(url, url_key(url), row, links)
            if len(rows) == COMMIT or number == count - 1:
                places = collection.warc.append(members)
                linker.before_commit(batch, is_last=False)
                for key, each, ticket in rows:
                    each.place = places[ticket].pack()
                    batch.put(Family.PAGE, key, pack_row(each))
                collection.commit(batch)
                linker.on_committed()
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


def measure(run: Run) -> None:
    documents, count = (QUICK_DOCUMENTS, QUICK_QUERIES) if run.quick else (DOCUMENTS, QUERIES)
    times: dict[str, list[tuple[float, float]]] = {}  # kind → milliseconds by the clock, and of CPU
    with scratch() as folder:
        path = folder / "collection"
        run.say(f"making {documents:,} documents")
        fill(path, documents)
        run.say("indexing")
        made = make_index(path)
        source = [text for _, _, text, _ in pages(2_000)]
        with SearchView(path) as view, run.progress(WARMING + count, "queries") as step:
            for kind, query in [*queries(source, WARMING), *queries(source, count)]:
                began, cpu = time.perf_counter(), time.process_time()
                with contextlib.suppress(QueryError):
                    view.search(query)
                took = 1000 * (time.perf_counter() - began), 1000 * (time.process_time() - cpu)
                times.setdefault(kind, []).append(took)
                step.advance()
    run.setting("documents", made.documents)
    run.setting("queries", count)
    rows: list[tuple[str | int | float, ...]] = [
        (kind, len(each), *(round(quantile([t[by] for t in each], q), 1) for by in (0, 1) for q in (50, 99)))
        for kind, each in times.items()
    ]
    run.table(["kind", "queries", "p50 ms", "p99 ms", "CPU p50", "CPU p99"], rows)
    everything = [took for each in times.values() for took in each]
    for percent in (50, 99):
        run.figure(f"p{percent}", quantile([wall for wall, _ in everything], percent), "ms")
        run.figure(f"p{percent} of CPU", quantile([cpu for _, cpu in everything], percent), "ms")
    run.figure("index", made.size_bytes / 1e6, "MB")


def quantile(values: list[float], percent: int) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


EXPERIMENT = Experiment(
    name="search-speed",
    summary="how quickly an index of 100,000 documents answers queries of many kinds",
    run=measure,
    bars=(Bar("quick", "p50", "<=", 10.0), Bar("hardly ever slow", "p99", "<=", 50.0)),
)
