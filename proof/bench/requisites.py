"""Requisites: documentation crawled with `--requisites` looks in pywb as it does on its server.

python3.11-doc is served by nginx on loopback, crawled, and its archive replayed by pywb in an environment of its own.
Chromium opens pages of both; the share of pixels that differ counts, the worst page for the bar. The same crawl without
requisites stands beside it, to show that the comparison sees what is missing.
"""

import contextlib
import json
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image, ImageChops

from lycosa.errors import LycosaError
from proof import Bar, Experiment, Run
from proof.ground.browser import Browser, browser
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.peers import pywb
from proof.ground.servers import Nginx, await_server, free_port, nginx_of
from proof.ground.sites import CONNECTIONS, PYTHON

COMPARED, DIFFERENT_LEVEL = 12, 16  # pages; how much a colour of a pixel may differ and be the same to the eye
WORST, BARE = "pixels that differ, worst page", "pixels that differ without requisites, mean"
FIRST = ("/index.html", "/library/functions.html", "/genindex.html")


def crawl(server: Nginx, into: Path, pages: int, *words: str) -> dict[str, int]:
    manners = ["--delay", "0", "--per-host", str(CONNECTIONS), "--pages", str(pages), "--json", "--quiet"]
    done = run_command(lycosa("crawl", server.origin + PYTHON.start, "--into", into, *manners, *words))
    found: dict[str, int] = json.loads(done.out)
    return found


def pages_served(server: Nginx) -> set[str]:
    """The pages that were sent since the last call."""
    return {each.path for each in server.served() if each.status == 200 and each.path.endswith(".html")}


@contextlib.contextmanager
def replayed(collection: Path, folder: Path) -> Iterator[str]:
    """pywb on loopback, with the archive of a collection; gives the beginning of its URLs."""
    programs, port = pywb().parent, free_port()
    folder.mkdir()
    (folder / "config.yaml").write_text("framed_replay: false\nenable_wombat: true\n")
    (folder / "templates").mkdir()
    (folder / "templates" / "banner.html").write_text("")  # it would cover the page
    run_command([programs / "wb-manager", "init", "c"], cwd=folder)
    run_command([programs / "wb-manager", "add", "c", *sorted((collection / "warc").glob("*.warc.gz"))], cwd=folder)
    command = [str(programs / "wayback"), "-b", "127.0.0.1", "-p", str(port), "-d", str(folder)]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        await_server(port, server)
        yield f"http://127.0.0.1:{port}/c/"
    finally:
        server.terminate()
        server.wait(20)


def difference(one: Path, other: Path) -> float:
    """The share of pixels, in per cent, that are not the same to the eye."""
    with Image.open(one) as first, Image.open(other) as second:
        if first.size != second.size:
            raise LycosaError(f"{one.name} and {other.name} have different sizes: {first.size}, {second.size}")
        delta = ImageChops.difference(first.convert("RGB"), second.convert("RGB"))
    levels = [band.point(lambda level: 255 * (level > DIFFERENT_LEVEL)) for band in delta.split()]
    any_level = ImageChops.lighter(ImageChops.lighter(levels[0], levels[1]), levels[2])
    return 100 * any_level.histogram()[255] / (any_level.width * any_level.height)


def looks(page: Browser, server: Nginx, start: str, paths: Sequence[str], folder: Path) -> Iterator[float]:
    for path in paths:
        page.open(server.origin + path)
        page.screenshot(folder / "live.png")
        page.open(start + server.origin + path)
        page.screenshot(folder / "replay.png")
        yield difference(folder / "live.png", folder / "replay.png")


def measure(run: Run) -> None:
    pages = 30 if run.quick else 500
    run.setting("site", PYTHON.package)
    with scratch() as folder, nginx_of(PYTHON.folder(), folder) as server, browser() as page:
        counts = crawl(server, folder / "whole", pages, "--requisites")
        kept = pages_served(server)
        crawl(server, folder / "bare", pages)
        kept &= pages_served(server)  # with a limit of pages each has some that the other has not
        others = sorted(kept - set(FIRST))
        chosen = [*(path for path in FIRST if path in kept), *random.Random(run.seed).sample(others, COMPARED)]
        found: dict[str, list[float]] = {}
        for name in ("whole", "bare"):
            with replayed(folder / name, folder / f"pywb-{name}") as start:
                found[name] = list(looks(page, server, start, chosen, folder))
    run.figure("pages kept", counts["pages"])
    run.figure("requisites kept", counts["requisites"])
    run.figure(WORST, max(found["whole"]), "%")
    run.figure("pixels that differ, mean", sum(found["whole"]) / len(chosen), "%")
    run.figure(BARE, sum(found["bare"]) / len(chosen), "%")
    rows: list[list[str | float]] = [
        [path, round(a, 3), round(b, 1)] for path, a, b in zip(chosen, found["whole"], found["bare"], strict=True)
    ]
    run.table(["page", "with requisites %", "without %"], rows)


EXPERIMENT = Experiment(
    name="requisites",
    summary="whether an archive with requisites looks in pywb as the site does",
    run=measure,
    bars=(Bar("looks the same", WORST, "<=", 1.0), Bar("the comparison sees styles", BARE, ">=", 1.0)),
)
