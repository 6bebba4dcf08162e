"""Crawls of one site by Lycosa and by other crawlers, as nginx saw them: how each is started, and what it took.

All get 32 connections to one host without a delay and follow the same links to the end. Pages are the distinct paths
that nginx answered with 200. Pages a second are from nginx's first response to its last; CPU and memory are those of
the whole command, with its start. Lycosa runs as it does by default, and its collection has to hold what that means.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lycosa.errors import LycosaError
from lycosa.graph.index import LinkIndex
from lycosa.inspect.status import open_to_read
from lycosa.records import Family
from lycosa.store.page_rows import unpack_page
from lycosa.web.document import text_digest
from proof.ground import launch, peers
from proof.ground.commands import CommandUsage, run_command, scratch
from proof.ground.servers import Nginx
from proof.ground.sites import CONNECTIONS, RealSite, SiteCrawl, crawl_command

OURS, IN_PYTHON, SPIDER = "Lycosa", "Lycosa in Python", "spider"
MOST_S = 600  # a crawl that takes longer is ended
UNLIMITED = "1000000"  # requests a second, and links from the first page to the last


class PageWork(NamedTuple):
    """What a crawler does for a page, as it is started here; empty: nothing."""

    robots: str = ""
    dedupe: str = "URLs"
    archive: str = ""
    resume: str = ""
    parse: str = "links"
    indexes: str = ""


class Peer(NamedTuple):
    """A crawler: how it is started in a folder of its own, and what it does for a page."""

    command: Callable[[Nginx, RealSite, Path], list[str | Path]]
    does: PageWork
    may: int = 0  # an exit code that is no failure


class PeerTurn(NamedTuple):
    """One crawl of one peer."""

    crawl: SiteCrawl
    disk_bytes: int


def lycosa_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    return crawl_command(server, site, folder / "crawl")


def python_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    """The crawl without the page kernel."""
    return ["env", "LYCOSA_KERNEL=python", *crawl_command(server, site, folder / "crawl")]


def heritrix_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    job = peers.HeritrixJob(server.origin + site.start, CONNECTIONS, per_host=CONNECTIONS, seconds=MOST_S)
    java, *options = peers.heritrix_command(job, folder)
    return [java, *(java_trust(server.ca, folder) if server.ca else []), *options]


def java_trust(ca: Path, folder: Path) -> list[str]:
    """The options by which a Java program trusts an authority alone."""
    store, password = folder / "trust.p12", "trusted"  # no secret: keytool wants one
    new: list[str | Path] = [
        "-importcert",
        "-noprompt",
        "-alias",
        "benchmark",
        "-file",
        ca,
        "-keystore",
        store,
        "-storepass",
        password,
    ]
    run_command(["keytool", *new])
    return [f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={password}"]


def scrapy_command(
    server: Nginx, site: RealSite, _folder: Path, more: Mapping[str, object] | None = None
) -> list[str | Path]:
    connections = {"CONCURRENT_REQUESTS": CONNECTIONS, "CONCURRENT_REQUESTS_PER_DOMAIN": CONNECTIONS}
    settings = {**connections, "DOWNLOAD_DELAY": 0, **(more or {})}
    return [*peers.scrapy_command(server.origin + site.start, settings)]


def katana_command(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    limits = ["-c", str(CONNECTIONS), "-rl", UNLIMITED, "-d", UNLIMITED, "-fs", "fqdn"]
    quiet: list[str | Path] = ["-silent", "-duc", "-o", folder / "urls"]
    return ["env", f"HOME={folder}", peers.katana(), "-u", server.origin + site.start, *limits, *quiet]


def spider_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    return [peers.spider(), server.origin + site.start, str(CONNECTIONS)]


def wget2_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    follow = ["--recursive", "--level=0", "--follow-tags=a/href", f"--max-threads={CONNECTIONS}"]
    trust = [f"--ca-certificate={server.ca}"] if server.ca else []
    return [*peers.wget2(), "--quiet", *follow, *trust, server.origin + site.start]


def crawlee_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    return [peers.crawlee(), peers.CRAWLEE_SPIDER, server.origin + site.start, str(CONNECTIONS)]


def colly_command(server: Nginx, site: RealSite, _folder: Path) -> list[str | Path]:
    return [peers.colly(), server.origin + site.start, str(CONNECTIONS)]


OUR_WORK = PageWork("yes", "URLs, content, near-copies", "WARC", "yes", "links, text, change codes", "links, budgets")
PEERS = {
    OURS: Peer(lycosa_command, OUR_WORK),
    IN_PYTHON: Peer(python_command, OUR_WORK),
    "Scrapy": Peer(scrapy_command, PageWork("yes")),
    "Heritrix": Peer(heritrix_command, PageWork("yes", archive="WARC", resume="yes")),
    "katana": Peer(katana_command, PageWork(dedupe="URLs, content", archive="URLs only")),
    SPIDER: Peer(spider_command, PageWork("yes")),
    "Crawlee": Peer(crawlee_command, PageWork("yes")),
    "Colly": Peer(colly_command, PageWork("yes")),
    "wget2": Peer(wget2_command, PageWork("yes", archive="files"), may=8),  # 8: some URL was not found
}

# Crawlers that people know and that this comparison cannot have, and why.
NOT_TO_BE_HAD = {
    "Nutch": "Maven Central has its core (org.apache.nutch:nutch:1.22) and none of the plugins by which it fetches and "
    "parses: protocol-http, protocol-httpclient, lib-http and parse-html 1.22 were asked for, as was its archive `bin`",
    "BUbiNG": "it asks a host over one connection, and this is one host: the benchmark `broad` has it",
}


def run_peer(command: list[str | Path], folder: Path, server: Nginx, *, may: int = 0) -> CommandUsage:
    """Runs a crawler in its folder; it trusts the certificate of the server."""
    trust: list[str | Path] = []
    if server.ca is not None:
        trust = ["env", f"SSL_CERT_FILE={server.ca}", f"LYCOSA_CA_FILE={server.ca}"]
    with scratch() as beside:
        launched = [sys.executable, "-I", "-S", launch.__file__, beside / "usage", str(MOST_S), *trust, *command]
        usage = run_command(launched, cwd=folder, may=may)
        cpu_s, peak_mb = map(float, (beside / "usage").read_text().split())
    return usage._replace(cpu_s=cpu_s, peak_mb=peak_mb)


def take_turn(name: str, server: Nginx, site: RealSite) -> PeerTurn:
    peer = PEERS[name]
    with scratch() as folder:
        usage = run_peer(peer.command(server, site, folder), folder, server, may=peer.may)
        crawl = SiteCrawl.of(server.served(), usage)
        if len(crawl.paths) < 2:
            raise LycosaError(f"{name} got no further than the first page")
        if name in (OURS, IN_PYTHON):
            check_collection(folder / "crawl", len(crawl.paths))
        return PeerTurn(crawl, disk_bytes(folder))


def disk_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def check_collection(path: Path, pages: int) -> None:
    """LycosaError unless a collection has the archive, state, link index, codes and budgets of so many pages."""
    with open_to_read(path) as collection:
        rows = [row for _, packed in collection.state.walk(Family.PAGE) if (row := unpack_page(packed)).status == 200]
        html = [row for row in rows if row.essence == "text/html"]
        documents = len({row.payload_sha1 for row in rows})
        records = sum(record.type == "response" for _, record in collection.records())
        found = {
            "state": len(rows) == pages,
            "archive": records >= documents and all(row.place or row.original for row in rows),
            "codes": all(row.structure[0] and (row.codes[0] or row.text_digest == text_digest(b"")) for row in html),
            "link index": LinkIndex.open(path).links >= sum(row.links > 0 for row in html),
            "budgets": any(key.startswith(b"mind:") for key, _ in collection.state.walk(Family.META)),
        }
    if missing := [name for name, is_there in found.items() if not is_there]:
        raise LycosaError(f"the collection of {pages:,} pages lacks: {', '.join(missing)}")
