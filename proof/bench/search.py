"""Known-item search on three real documentation sets: the title of a page as the query must find that page.

    python -m proof.bench.search [--set NAME] [--titles 1000] [--weights title=3,rank=0.1]

Each set is crawled from nginx and indexed by the command line. Of the titles that only one page has, a sample is asked
in plain words, in lower case. Beside Lycosa's own weights stand BM25 over title and text alone, without field weights,
and the same as Lycosa without anchors and without ranks, so that each shows what it adds. Also told: size of the index
as a share of the text it is of, and documents a second when it is made anew (`--rebuild`).
"""

import argparse
import contextlib
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import msgspec

from lycosa.errors import LycosaError
from lycosa.inspect.status import open_to_read
from lycosa.records import Family
from lycosa.recrawl.contents import StoredDocuments
from lycosa.search.compile import BM25_ALONE, Weights
from lycosa.search.documents import is_searchable
from lycosa.search.view import SearchView
from lycosa.store.page_rows import unpack_page
from lycosa.web.readable import extract_readable
from lycosa.web.url import url_from_key
from lycosa.web.words import split_words
from proof.bench.ground import CACHE, say
from proof.bench.measure import Ran, Verdict, load, lycosa, run, table
from proof.bench.server import nginx_of
from proof.bench.site import QUICK, WHOLE, Site, crawl_command

SETS = {
    "postgresql": QUICK,
    "python": Site("python3.11-doc", "usr/share/doc/python3.11/html", "/index.html"),
    "openjdk": WHOLE,
}
FIRST_BAR, TEN_BAR = 0.80, 0.95
SIZE_BAR = 0.55
RATE_BAR, RATE_SET = 1_500.0, "openjdk"  # the others are over before all cores have begun


class Asked(NamedTuple):
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
    say(f"crawling {SETS[name].package}")
    into.parent.mkdir(parents=True, exist_ok=True)
    site = SETS[name]
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder, nginx_of(site.folder(), Path(folder)) as server:
        run(crawl_command(server, site, into))
    (into / "done").touch()
    return into


def index(into: Path) -> tuple[Ran, dict[str, float]]:
    ran = run(lycosa("index", into, "--rebuild", "--json"))
    return ran, json.loads(ran.out)


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


def ask(view: SearchView, titles: dict[str, str], weights: Weights) -> tuple[Asked, list[str]]:
    first = ten = 0
    reciprocal, missed = 0.0, []
    for title, url in titles.items():
        hits = view.find(title, most=10, weights=weights)
        place = hits.index(url) + 1 if url in hits else 0
        first += place == 1
        ten += place > 0
        reciprocal += 1 / place if place else 0.0
        if place != 1:
            missed.append(f"{title} → {url} ({place or 'not'}; {hits[0] if hits else 'nothing'})")
    count = max(1, len(titles))
    return Asked(first / count, ten / count, reciprocal / count), missed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--set", choices=list(SETS), action="append", help="one of them; repeatable")
    parser.add_argument("--titles", type=int, default=1_000, help="asked of each set, at most")
    parser.add_argument("--weights", default="", help="others than Lycosa's own")
    parser.add_argument("--missed", action="store_true", help="show what did not come first")
    options = parser.parse_args()
    own = Weights.read(options.weights)
    ways = {
        "Lycosa": own,
        "without anchors": msgspec.structs.replace(own, anchors=0.0),
        "without ranks": msgspec.structs.replace(own, rank=0.0),
        "without both": msgspec.structs.replace(own, anchors=0.0, rank=0.0),
        "BM25 alone": BM25_ALONE,
    }
    verdict, rows = Verdict(), []
    for name in options.set or SETS:
        into = collection_of(name)
        ran, made = index(into)
        titles, text_bytes = titles_of(into)
        chosen = dict(random.Random(1).sample(sorted(titles.items()), min(options.titles, len(titles))))
        rate, share = made["documents"] / made["seconds"], made["size_bytes"] / text_bytes
        say(
            f"{name}: {made['documents']:,.0f} documents in {made['seconds']:.1f} s, {ran.cpu_s:.1f} s of CPU; {load()}"
        )
        with SearchView(into) as view:
            for way, weights in ways.items():
                asked, missed = ask(view, chosen, weights)
                rows.append([f"{name}, {way}", f"{len(chosen):,}", *(f"{value:.1%}" for value in asked)])
                if weights is own:
                    verdict.judge(
                        f"{name}: first {asked.first:.1%}, at least {FIRST_BAR:.0%}", asked.first >= FIRST_BAR
                    )
                    verdict.judge(f"{name}: in ten {asked.ten:.1%}, at least {TEN_BAR:.0%}", asked.ten >= TEN_BAR)
                    print("\n".join(missed[:60]) if options.missed else "", file=sys.stderr)
        verdict.judge(f"{name}: index {share:.1%} of its text, at most {SIZE_BAR:.0%}", share <= SIZE_BAR)
        told = f"{name}: {rate:,.0f} documents/s made anew, {text_bytes / made['documents']:,.0f} bytes of text each"
        if name == RATE_SET:
            verdict.judge(f"{told}, at least {RATE_BAR:,.0f}", rate >= RATE_BAR)
        else:
            print(f"    {told}")
    print(table(["", "titles", "first", "in ten", "mean 1/place"], rows))
    verdict.exit()


if __name__ == "__main__":
    main()
