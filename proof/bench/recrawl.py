"""The second visit to a site: nothing has changed, then one page in twenty has, beside crawlers that can make one.

Each crawls a copy of real documentation first, which is not counted, then visits it twice more: by `recrawl --all`,
by Scrapy with its HTTP cache, which is told to ask for every page whether it has changed, and by wget2 with time
stamps. A request is what nginx logged; bytes are those of bodies. Every changed page has to be fetched whole, and
Lycosa has to tell of exactly these.
"""

import json
import os
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.commands import CommandUsage, lycosa, run_command, scratch
from proof.ground.peer_crawls import OURS, PEERS, run_peer, scrapy_command, wget2_command
from proof.ground.servers import Nginx, ServedPage, nginx_of
from proof.ground.sites import POSTGRESQL, PYTHON, RealSite

EVERY = 20  # one page in so many changes
NOTHING, SOME = "nothing", "5 % of the pages"
FALSE_ALARMS, FOUND = "changes told where nothing changed", "changes told of those made"
# The cache would hold pages fresh that were last modified long ago, and ask for none: it is told to ask for each.
ASKING = {
    "HTTPCACHE_ENABLED": True,
    "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
    "DEFAULT_REQUEST_HEADERS": {"Cache-Control": "max-age=0"},
}
HEADING_END = re.compile(rb"</h[12]>")
NOT_TRIED = {
    "Heritrix": "its default profile has no history of fetches; processors that keep one were not tried",
    "katana, spider, Crawlee, Colly": "they ask for every page whole",
}


class Visit(NamedTuple):
    """One visit of the whole site."""

    served: list[ServedPage]
    usage: CommandUsage

    def whole(self) -> set[str]:
        return {each.path for each in self.served if each.status == 200}


def lycosa_again(_server: Nginx, _site: RealSite, folder: Path) -> list[str | Path]:
    return lycosa("recrawl", folder / "crawl", "--all", "--json", "--quiet")


def scrapy_again(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    return scrapy_command(server, site, folder, ASKING | {"HTTPCACHE_DIR": str(folder / "cache")})


def wget2_again(server: Nginx, site: RealSite, folder: Path) -> list[str | Path]:
    return [*wget2_command(server, site, folder), "--timestamping"]


Start = Callable[[Nginx, RealSite, Path], list[str | Path]]
VISITORS: dict[str, tuple[Start, Start]] = {  # how the first crawl is started, and the visits after it
    OURS: (PEERS[OURS].command, lycosa_again),
    "Scrapy": (scrapy_again, scrapy_again),
    "wget2": (wget2_again, wget2_again),
}


def measure(run: Run) -> None:
    site = PYTHON if run.quick else POSTGRESQL
    run.setting("site", site.package)
    rows: list[list[str | int | float]] = []
    with scratch() as folder, run.progress(len(VISITORS), "crawlers") as step:
        for name in VISITORS:
            if name == OURS or name in run.chosen:
                try:
                    rows += _visit(run, name, site, folder / name)
                except LycosaError as error:
                    if name == OURS:
                        raise
                    run.absent(name, str(error))
            step.advance()
    columns = ["", "changed", "command s", "CPU s", "requests", "answered 304", "MB of bodies", "changed pages fetched"]
    run.table(columns, rows)
    for name, why in NOT_TRIED.items():
        run.absent(name, why)


def _visit(run: Run, name: str, site: RealSite, folder: Path) -> list[list[str | int | float]]:
    """The rows of a crawler: it has a copy of the site of its own, which is edited between its visits."""
    root, home, rows = folder / "site", folder / "home", []
    shutil.copytree(site.folder(), root, copy_function=os.link if _may_link(site.folder(), folder) else shutil.copy2)
    home.mkdir()
    first, again = VISITORS[name]
    with nginx_of(root, folder / "nginx") as server:

        def visit(start: Start) -> Visit:
            usage = run_peer(start(server, site, home), home, server, may=PEERS[name].may)
            return Visit(server.served(), usage)

        fetched = sorted(path for path in visit(first).whole() if path.endswith(".html"))
        pages = [path for path in fetched if HEADING_END.search((root / path.lstrip("/")).read_bytes())]
        run.setting(f"pages of {name}", len(fetched))
        for what, edited in ((NOTHING, []), (SOME, pages[::EVERY])):
            for path in edited:
                edit(root / path.lstrip("/"))
            began_s = time.time()
            found = visit(again)
            rows.append(_row(name, what, found, edited))
            if name == OURS:
                told = _told(home / "crawl", since_s=began_s)
                if not edited:
                    run.figure(FALSE_ALARMS, len(told))
                else:
                    made = {server.origin + path for path in edited}
                    run.figure(FOUND, 100 * len(told & made) / len(made | told), "%")
    return rows


def _row(name: str, what: str, visit: Visit, edited: list[str]) -> list[str | int | float]:
    fetched = len(visit.whole() & set(edited))
    return [
        name,
        what,
        round(visit.usage.wall_s, 1),
        round(visit.usage.cpu_s, 2),
        len(visit.served),
        sum(each.status == 304 for each in visit.served),
        round(sum(each.size_bytes for each in visit.served) / 1e6, 2),
        f"{fetched} of {len(edited)}" if edited else "",
    ]


def _told(collection: Path, *, since_s: float) -> set[str]:
    """The URLs of the changes that `lycosa changes` tells of since then."""
    said = run_command(lycosa("changes", collection, "-n", "100000", "--json")).out
    changes = [json.loads(line) for line in said.splitlines()]
    return {each["url"] for each in changes if each["at_s"] >= since_s}


def edit(file: Path) -> None:
    """A new sentence below the heading, where every page has its content, unlike at its end.

    The file is made anew: the old one may be a link to the original.
    """
    body = file.read_bytes()
    file.unlink()
    file.write_bytes(HEADING_END.sub(rb"\g<0><p>This sentence was added since the last visit.</p>", body, count=1))


def _may_link(source: Path, target: Path) -> bool:
    target.mkdir(parents=True, exist_ok=True)
    return source.stat().st_dev == target.stat().st_dev


EXPERIMENT = Experiment(
    name="recrawl",
    summary="a second visit to a site, nothing or one page in twenty changed, beside Scrapy and wget2",
    run=measure,
    choices=tuple(VISITORS),
    bars=(
        Bar("nothing is told where nothing changed", FALSE_ALARMS, "<=", 0),
        Bar("every change is told, and nothing else", FOUND, ">=", 100.0),
    ),
)
