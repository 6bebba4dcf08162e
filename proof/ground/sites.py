"""Real documentation as a site of its own: where it lies, the command that crawls it, and a crawl as nginx saw it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lycosa.errors import SettingsError
from proof.experiment import Run
from proof.ground.commands import CommandUsage, lycosa, scratch
from proof.ground.peers import package
from proof.ground.servers import Nginx, ServedPage, nginx_of

CONNECTIONS = 32


class RealSite(NamedTuple):
    """Documentation in a Debian package, and the page from which links reach nearly all of it."""

    package: str
    root: str
    start: str

    def folder(self) -> Path:
        return package(self.package) / self.root


OPENJDK = RealSite("openjdk-17-doc", "usr/share/doc/openjdk-17-jre-headless", "/api/index.html")
PYTHON = RealSite("python3.11-doc", "usr/share/doc/python3.11/html", "/index.html")
POSTGRESQL = RealSite("postgresql-doc-15", "usr/share/doc/postgresql-doc-15/html", "/index.html")


RUST = RealSite("rust-doc", "usr/share/doc/rust-doc/html", "/std/index.html")  # links reach 21,600 pages
SITES = {site.package: site for site in (OPENJDK, PYTHON, POSTGRESQL, RUST)}


@contextlib.contextmanager
def served_site(run: Run, *, tls: bool = False) -> Iterator[tuple[RealSite, Nginx]]:
    """The site that a run is about, or by itself openjdk-17-doc, the smaller one if it is quick, served by nginx."""
    if run.site and run.site not in SITES:
        raise SettingsError(f"--site knows {', '.join(SITES)}, not {run.site}")
    site = SITES[run.site] if run.site else POSTGRESQL if run.quick else OPENJDK
    run.setting("site", site.package)
    with scratch() as folder, nginx_of(site.folder(), folder, tls=tls) as server:
        yield site, server


class SiteCrawl(NamedTuple):
    """One crawl as nginx saw it, and what it took."""

    paths: frozenset[str]
    seconds: float  # from the first response to the last
    usage: CommandUsage

    @classmethod
    def of(cls, served: list[ServedPage], usage: CommandUsage) -> "SiteCrawl":
        ends = [each.ended_s for each in served]
        paths = frozenset(each.path for each in served if each.status == 200 and each.path != "/robots.txt")
        return cls(paths, max(ends) - min(ends), usage)

    @property
    def pages_per_s(self) -> float:
        return len(self.paths) / self.seconds

    @property
    def cpu_us(self) -> float:
        """CPU microseconds a page, of the whole command."""
        return self.usage.cpu_s / len(self.paths) * 1e6


def crawl_command(server: Nginx, site: RealSite, into: Path) -> list[str | Path]:
    manners = ["--delay", "0", "--per-host", str(CONNECTIONS), "--scope", "host"]
    return lycosa("crawl", server.origin + site.start, "--into", into, *manners, "--json", "--quiet")
