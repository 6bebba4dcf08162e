"""Three crawl frontiers beside one central crawler: three sites of 150 pages, a line each, no compression on it.

Real processes over real sockets. The central crawler takes one site after the other, as in the paper; the frontiers are
the shards of `lycosa crawl --workers 3`, each of which owns one of the sites. Time is from the first request to the end
of the last answer, by the web's log, so neither side's start counts. Beside them, without a bar, one process that
crawls all three sites at once. Compressed is what travels from the frontiers to the central store, all of their
archives, requests and headers included; of the crawls without a store, what their archives hold. Once more, the
frontiers are told of a topic, that of one of the sites, and leave out of the transport what is not relevant to it.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import product
from pathlib import Path
from typing import NamedTuple

from lycosa.cluster.assignment import Member, build_table
from lycosa.errors import LycosaError
from lycosa.simweb import LoggedRequest, SimSettings, SimWeb, read_log, truth_of
from lycosa.store import STORE_WARC_FOLDER, State, left_out_counts, open_central_store, open_packed, released_files
from proof import Axis, Bar, Column, ColumnChart, Experiment, Mark, PaperFigure, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.servers import ServedWeb, simulated_web

SITES, PAGES_A_SITE = 3, 150
PAGES_SERVED = 190  # a site: some of them nobody links to
HOSTS = 24  # to choose three from that belong to three frontiers
LINE_BYTES_S, QUICK_LINE_BYTES_S = 64_000, 400_000
PAPER_SPEED_UP, PAPER_SMALLER = 2.79, 3.86
TOPIC_WORDS, LEAST_RELEVANCE = 8, 0.3
STORE, STATE = "store", "state"
UNACCOUNTED = "pages neither in the store nor counted as left out"
_OK = b"HTTP/1.1 200"


class FrontierSite(NamedTuple):
    """One site as it was crawled: by whom, in which time, how many bytes."""

    host: str
    frontier: str
    seconds: float
    pages: int
    bytes: int


class FrontierCrawl(NamedTuple):
    seconds: float
    sites: list[FrontierSite]
    archive_bytes: dict[str, int]  # of every frontier as it travelled, or of "central" as it lies on the disk
    here_bytes: int  # of the archives before they travelled
    left_pages: int = 0  # that did not travel
    left_bytes: int = 0
    brought: int = 0  # pages that are in the store


def measure(run: Run) -> None:
    line = QUICK_LINE_BYTES_S if run.quick else LINE_BYTES_S
    hosts = _hosts(run.seed)
    run.setting("sites", ", ".join(hosts.values()))
    run.setting("pages a site", PAGES_A_SITE)
    run.setting("line of a site", f"{line / 1000:g} kB/s")
    run.setting("topic", topic := _topic(run.seed, hosts))
    run.setting("least relevance", LEAST_RELEVANCE)
    with run.progress(4, "crawls") as step:
        central = _crawl(run.seed, line, hosts, [[host] for host in hosts.values()], workers=0)
        step.advance()
        frontiers = _crawl(run.seed, line, hosts, [list(hosts.values())], workers=SITES)
        step.advance()
        alone = _crawl(run.seed, line, hosts, [list(hosts.values())], workers=0)
        step.advance()
        choosing = ["--topic", topic, "--store-relevance", str(LEAST_RELEVANCE)]
        filtering = _crawl(run.seed, line, hosts, [list(hosts.values())], workers=SITES, more=choosing)
        step.advance()
    _report(run, central, frontiers, alone, filtering)


def _hosts(seed: int) -> dict[str, str]:
    """Frontier → a host that it owns, the three as equal in size as may be: the paper's sites were."""
    owners = build_table(1, [Member(f"s{number}", number + 1) for number in range(SITES)])
    web = _simulated(seed)
    by_owner: dict[str, list[tuple[int, int, str]]] = {}
    for number in range(HOSTS):
        name = web.layout.host_name(number)
        by_owner.setdefault(owners.owner(name), []).append((*_size(web, number), name))
    names = sorted(by_owner)
    best = min(product(*(by_owner[name] for name in names)), key=_unlike)
    return {frontier: host for frontier, (*_, host) in zip(names, best, strict=True)}


def _unlike(sites: Sequence[tuple[int, int, str]]) -> tuple[int, float]:
    """How far sites are from the wanted number of pages, in tens, and then from each other in bytes."""
    sizes = [size for size, _, _ in sites]
    return max(abs(pages - PAGES_A_SITE) for _, pages, _ in sites) // 10, max(sizes) / min(sizes)


def _simulated(seed: int) -> SimWeb:
    return SimWeb(SimSettings(seed=seed, hosts=HOSTS, pages=HOSTS * PAGES_SERVED, sizes="uniform", mirrors=0.0))


def _topic(seed: int, hosts: dict[str, str]) -> str:
    """Words of what the first of the sites is about."""
    layout = _simulated(seed).layout
    names = [layout.host_name(number) for number in range(HOSTS)]
    topic = layout.topic_of(names.index(next(iter(hosts.values()))), 0)
    return " ".join(layout.vocabulary.topics[topic][:TOPIC_WORDS])


def _size(web: SimWeb, host: int) -> tuple[int, int]:
    """The bytes of all pages that links lead to, and how many they are."""
    origin = web.linker.origin(host)
    pages = truth_of(web, [f"{origin}/"], scope="host", mine="off").pages
    return sum(len(web.answer(host, url.removeprefix(origin)).body) for url in pages), len(pages)


def _crawl(
    seed: int,
    line: int,
    hosts: dict[str, str],
    parts: Sequence[Sequence[str]],
    *,
    workers: int,
    more: Sequence[str] = (),
) -> FrontierCrawl:
    """Crawls each part of the sites with a command of its own, one after the other, and adds their times."""
    with scratch() as folder:
        with _web(folder, seed, line) as web:
            for number, part in enumerate(parts):
                _run(web, part, folder / f"crawl{number}", workers, more)
        entries = list(read_log(web.log)[1])
        archives, here = _archives(folder, list(hosts))
        left = _left(folder)
    windows = [_window([e for e in entries if e.host in part]) for part in parts]
    owner = {host: frontier for frontier, host in hosts.items()}
    sites = [_site(host, owner[host], [e for e in entries if e.host == host]) for host in hosts.values()]
    return FrontierCrawl(sum(windows), sites, archives, here, *left)


def _run(web: ServedWeb, sites: Sequence[str], into: Path, workers: int, more: Sequence[str]) -> None:
    seeds = [f"http://{host}:{web.port}/" for host in sites]
    words = [*seeds, "--into", str(into), "--delay", "0", "--quiet", "--mine", "off", *web.options(), *more]
    words += ["--pages-per-host", str(PAGES_A_SITE)]
    words += ["--no-sitemaps"]  # they name pages that no link leads to, and the sites are chosen by their links
    if workers:
        words += ["--workers", str(workers), "--store", str(into.with_name(STORE)), "--checkpoint", "none"]
    run_command(lycosa("crawl", *words))


def _web(folder: Path, seed: int, line: int) -> AbstractContextManager[ServedWeb]:
    shape = {"seed": seed, "hosts": HOSTS, "pages": HOSTS * PAGES_SERVED, "addresses": HOSTS, "bandwidth": line}
    words = [word for name, value in shape.items() for word in (f"--{name}", str(value))]
    words += ["--sizes", "uniform", "--no-gzip", "--robots", "rules=0", "--mirrors", "0"]
    return simulated_web(folder / "requests.jsonl", *words)


def _archives(folder: Path, frontiers: Sequence[str]) -> tuple[dict[str, int], int]:
    """Bytes of what the frontiers brought to the store, by frontier, and of the same archives before; of a crawl
    without shards, the bytes of its archives, twice."""
    before = 0
    sizes = dict.fromkeys(frontiers, 0)
    for shard in folder.glob(f"crawl*/shards/*/{STATE}"):
        with State.open_reader(shard) as state:
            held = released_files(state).values()
            sizes[shard.parent.name] += sum(one.bytes for one in held)
            before += sum(one.gzip_bytes for one in held)
    left = sum(file.stat().st_size for file in folder.glob("crawl*/**/*.warc.gz"))
    if before and left:
        raise LycosaError(f"{left} bytes of archives were not brought to the store")
    return (sizes, before) if before else ({"central": left}, left)


def _left(folder: Path) -> tuple[int, int, int]:
    """Pages that were left out of the store, bytes of their bodies, and pages that are in the store."""
    left_pages = left_bytes = brought = 0
    for shard in folder.glob(f"crawl*/shards/*/{STATE}"):
        with State.open_reader(shard) as state:
            pages, size = left_out_counts(state)
            left_pages, left_bytes = left_pages + pages.total(), left_bytes + size.total()
    store = open_central_store(str(folder / STORE))
    for name in store.names(STORE_WARC_FOLDER):
        packed = open_packed(store, f"{STORE_WARC_FOLDER}/{name}")
        answers = [one for one in packed.records() if one.type == "response"] if packed else []
        brought += sum(one.http()[0].startswith(_OK) and not (one.url or "").endswith("/robots.txt") for one in answers)
    return left_pages, left_bytes, brought


def _window(entries: Sequence[LoggedRequest]) -> float:
    return max(entry.end for entry in entries) - min(entry.start for entry in entries)


def _site(host: str, frontier: str, entries: Sequence[LoggedRequest]) -> FrontierSite:
    pages = [entry for entry in entries if entry.status == 200 and entry.path != "/robots.txt"]
    return FrontierSite(host, frontier, _window(entries), len(pages), sum(entry.bytes for entry in entries))


def _report(
    run: Run, central: FrontierCrawl, frontiers: FrontierCrawl, alone: FrontierCrawl, filtering: FrontierCrawl
) -> None:
    size = sum(site.bytes for site in frontiers.sites)
    packed = sum(frontiers.archive_bytes.values())
    run.figure("central crawler", central.seconds, "s")
    run.figure("three frontiers", frontiers.seconds, "s")
    run.figure("one process, all sites at once", alone.seconds, "s")
    run.figure("frontiers beside the central crawler", central.seconds / frontiers.seconds, "×")
    run.figure("one process beside the central crawler", central.seconds / alone.seconds, "×")
    run.figure("documents", size / 1e6, "MB")
    run.figure("compressed", packed / 1024, "KB")
    run.figure("smaller by compression", size / packed, "×")
    run.figure("smaller in the archives of the frontiers, record by record", size / frontiers.here_bytes, "×")
    chosen, fetched = sum(filtering.archive_bytes.values()), sum(site.pages for site in filtering.sites)
    run.figure("frontiers that filter", filtering.seconds, "s")
    run.figure("pages left out as not relevant", filtering.left_pages)
    run.figure("documents left out", filtering.left_bytes / 1e6, "MB")
    run.figure("compressed, of the relevant pages", chosen / 1024, "KB")
    run.figure("smaller by filter and compression", sum(site.bytes for site in filtering.sites) / chosen, "×")
    run.figure(UNACCOUNTED, abs(fetched - filtering.brought - filtering.left_pages))
    rows: list[tuple[str, str, int, str, str, str]] = []
    for site in frontiers.sites:
        kb = frontiers.archive_bytes[site.frontier] / 1024
        row = (f"frontier {site.frontier}", site.host, site.pages, f"{site.seconds:.1f}", f"{site.bytes / 1e6:.2f}")
        rows.append((*row, f"{kb:.0f}"))
    others = (("frontiers that filter", filtering), ("central crawler", central), ("one process", alone))
    for name, crawled in others:
        pages, megabytes = sum(s.pages for s in crawled.sites), sum(s.bytes for s in crawled.sites) / 1e6
        kb = sum(crawled.archive_bytes.values()) / 1024
        rows.append((name, "all", pages, f"{crawled.seconds:.1f}", f"{megabytes:.2f}", f"{kb:.0f}"))
    run.table(["crawler", "site", "pages", "seconds", "MB", "compressed KB"], rows)
    run.plot(
        ColumnChart(
            "Three sites of 150 pages, a line each",
            Axis("time", "s"),
            (
                Column("central crawler, one after the other", central.seconds),
                Column("one process, all at once", alone.seconds),
                Column("three frontiers", frontiers.seconds),
            ),
            (Mark(central.seconds / PAPER_SPEED_UP, f"the paper's {PAPER_SPEED_UP} ×"),),
        )
    )
    sizes = (
        Column("documents", size / 1e6),
        Column("compressed", packed / 1e6),
        Column("filtered and compressed", chosen / 1e6),
    )
    marks = (Mark(size / 1e6 / PAPER_SMALLER, f"the paper's {PAPER_SMALLER} ×"),)
    run.plot(ColumnChart("Documents, and what travelled to the central store", Axis("size", "MB"), sizes, marks))


EXPERIMENT = Experiment(
    name="migrating",
    summary="three crawl frontiers beside one central crawler: time, and bytes once filtered and compressed",
    claim_id="M3",
    claim="Three frontiers take 2,491 s for 3 × 150 pages, one central crawler 6,950 s; 9.87 MB become 2,616 KB.",
    bars=(
        Bar("as much faster as in the paper", "frontiers beside the central crawler", ">=", 2.7),
        Bar("as much smaller as in the paper", "smaller by compression", ">=", PAPER_SMALLER),
        Bar("only relevant pages travel, and all are counted", UNACCOUNTED, "<=", 0),
    ),
    papers=(
        PaperFigure(
            "M3",
            "three frontiers beside one central crawler, 150 pages each",
            "2.79 × (2,491 s and 6,950 s)",
            "frontiers beside the central crawler",
        ),
        PaperFigure("M3", "smaller by compression", "3.86 × (9.87 MB and 2,616 KB)", "smaller by compression"),
        PaperFigure(
            "M2",
            "only relevant pages travel: smaller by filter and compression",
            "",
            "smaller by filter and compression",
        ),
    ),
    run=measure,
)
