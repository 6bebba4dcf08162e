"""Known-item search on three real documentation sets: the title of a page as the query must find that page.

Each set is crawled from nginx and indexed by the command line. Of the titles that only one page has, a sample is asked
in plain words, in lower case. Beside Lycosa's own weights stand BM25 over title and text alone, without field weights,
and the same as Lycosa without anchors and without ranks, so that each shows what it adds. Measured, too: size of
the index as a share of the text it is of, and documents a second when it is made anew (`--rebuild`).
"""

import contextlib
import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.errors import LycosaError
from lycosa.inspect import open_to_read
from lycosa.records import Family
from lycosa.recrawl.versions import StoredDocuments
from lycosa.search import BM25_ALONE, SearchView, Weights
from lycosa.search.documents import is_searchable
from lycosa.store import unpack_page
from lycosa.web import extract_readable, url_from_key
from lycosa.web.words import split_words
from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.peers import CACHE
from proof.ground.servers import nginx_of
from proof.ground.sites import OPENJDK, POSTGRESQL, RealSite, crawl_command

SETS = {
    "postgresql": POSTGRESQL,
    "python": RealSite("python3.11-doc", "usr/share/doc/python3.11/html", "/index.html"),
    "openjdk": OPENJDK,
}
QUICK_SET = "postgresql"
TITLES, QUICK_TITLES = 1_000, 100
RATE_SET = "openjdk"  # the others are over before all cores have begun
OWN = Weights()
WAYS = {
    "Lycosa": OWN,
    "without anchors": msgspec.structs.replace(OWN, anchors=0.0),
    "without ranks": msgspec.structs.replace(OWN, rank=0.0),
    "without both": msgspec.structs.replace(OWN, anchors=0.0, rank=0.0),
    "BM25 alone": BM25_ALONE,
}


class KnownItems(NamedTuple):
    """How often the page that was meant stood first, and among the first ten; and the mean of 1 / place."""

    first: float
    ten: float
    reciprocal: float


def collection_of(name: str) -> Path:
    """The crawl of a set, made once and kept with what the benchmarks download."""
    into = CACHE / "search" / name
    if (into / "done").is_file():
        with contextlib.suppress(LycosaError), open_to_read(into):  # else it is of another version
            return into
    shutil.rmtree(into, ignore_errors=True)
    into.parent.mkdir(parents=True, exist_ok=True)
    site = SETS[name]
    with scratch() as folder, nginx_of(site.folder(), folder) as server:
        run_command(crawl_command(server, site, into))
    (into / "done").touch()
    return into


def titles_of(into: Path) -> tuple[dict[str, str], int]:
    """Title → URL of pages whose title nobody else has, and the bytes of text that the index is of."""
    found: Counter[str] = Counter()
    urls: dict[str, str] = {}
    text_bytes = 0
    with open_to_read(into) as collection:
        contents = StoredDocuments(collection)
        for key, packed in collection.state.walk(Family.PAGE):
            row = unpack_page(packed)
            if not is_searchable(row, row.fetched_s) or row.original or (content := contents.read(row)) is None:
                continue
            fields, body = content
            text = extract_readable(body, url=url_from_key(key), content_type=fields.get("content-type")).text
            text_bytes += len(" ".join(text.split()).encode())
            if asked := " ".join(split_words(row.title)):
                found[asked] += 1
                urls[asked] = url_from_key(key)
    return {title: url for title, url in urls.items() if found[title] == 1}, text_bytes


def ask(view: SearchView, titles: dict[str, str], weights: Weights) -> KnownItems:
    first = ten = 0
    reciprocal = 0.0
    for title, url in titles.items():
        hits = view.find(title, most=10, weights=weights)
        place = hits.index(url) + 1 if url in hits else 0
        first += place == 1
        ten += place > 0
        reciprocal += 1 / place if place else 0.0
    count = max(1, len(titles))
    return KnownItems(100 * first / count, 100 * ten / count, reciprocal / count)


def measure(run: Run) -> None:
    sets = [QUICK_SET] if run.quick else run.chosen
    rows: list[tuple[str | int | float, ...]] = []
    with run.progress(len(sets), "sets") as step:
        for name in sets:
            into = collection_of(name)
            usage = run_command(lycosa("index", into, "--rebuild", "--json"))
            made = json.loads(usage.out)
            titles, text_bytes = titles_of(into)
            count = min(QUICK_TITLES if run.quick else TITLES, len(titles))
            chosen = dict(random.Random(1).sample(sorted(titles.items()), count))
            with SearchView(into) as view:
                for way, weights in WAYS.items():
                    found = ask(view, chosen, weights)
                    rows.append((name, way, len(chosen), *(round(value, 3) for value in found)))
                    if weights is OWN:
                        run.figure(f"{name}: found first", found.first, "%")
                        run.figure(f"{name}: found among ten", found.ten, "%")
            run.figure(f"{name}: index beside its text", 100 * made["size_bytes"] / text_bytes, "%")
            run.figure(f"{name}: made anew", made["documents"] / made["seconds"], "documents/s")
            run.figure(f"{name}: made anew, CPU", usage.cpu_s, "s")
            step.advance()
    for bar in BARS:
        if bar.figure.partition(":")[0] not in sets:
            run.leave_out(bar.figure, "not in this run")
    run.table(["set", "way", "titles", "first %", "in ten %", "mean 1/place"], rows)


BARS = (
    *(Bar("the page that was meant", f"{name}: found first", ">=", 80.0) for name in SETS),
    *(Bar("and if not first, near", f"{name}: found among ten", ">=", 95.0) for name in SETS),
    *(Bar("a small index", f"{name}: index beside its text", "<=", 55.0) for name in SETS),
    Bar("quickly made", f"{RATE_SET}: made anew", ">=", 1_500.0),
)
EXPERIMENT = Experiment(
    name="search",
    summary="known-item search on three sets of documentation, size of the index and how fast it is made",
    run=measure,
    choices=tuple(SETS),
    bars=BARS,
)
