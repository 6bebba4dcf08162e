"""Whether archives are what others expect: a crawl of real documentation, its files and its exports, read by others.

`warcio check` reads the files of the crawl and the exported WARC and WET, py-wacz validates the WACZ, pywb replays a
sample of pages from the files of the crawl and from the export, ReplayWeb.page and `lycosa replay` show some in
Chromium. What is replayed is compared, byte for byte, with the files that the server had; in a browser, the headings.
The counts of all exports are held against `lycosa status`.
"""

import gzip
import json
import random
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from html import unescape
from pathlib import Path
from urllib.parse import urlsplit

from lycosa.errors import LycosaError
from lycosa.store import WarcReader
from proof import Bar, Experiment, Run
from proof.ground.browser import Browser, browser
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.peers import py_wacz
from proof.ground.replays import body_of, embed, replayed_by_lycosa, replayed_by_pywb, wacz_in_a_page
from proof.ground.servers import Nginx
from proof.ground.sites import RealSite, crawl_command, served_site

SAMPLE, SHOWN, QUICK_SHOWN = 100, 10, 3
SHOW_S = 60.0
FAULTS = "files that warcio check or py-wacz refuse"
COUNTS = "exports whose counts are not those of status"
OF_CRAWL, OF_EXPORT = "pages of 100 that pywb replays from the crawl", "pages of 100 that pywb replays from the export"
OURS = "pages of 100 that lycosa replay gives"
IN_WACZ, IN_OURS = "pages not shown from the WACZ by Chromium", "pages not shown by lycosa replay in Chromium"
_HEADING = re.compile(r"<(h1|h2|title)\b[^>]*>(.*?)</\1>", re.DOTALL | re.IGNORECASE)


def checked_by_warcio(paths: Sequence[Path]) -> int:
    """How many of these files `warcio check` refuses."""
    command = [sys.executable, "-c", "from warcio.cli import main; main()", "check"]
    return sum(subprocess.run([*command, path], capture_output=True, check=False).returncode != 0 for path in paths)


def validated(path: Path) -> int:
    """1 if py-wacz refuses this file."""
    words = [str(py_wacz().with_name("wacz")), "validate", "-f", str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return int(done.returncode != 0 or "is valid" not in done.stdout)


def answers_in(path: Path) -> int:
    """Answers with status 200 in a WARC file that are no robots.txt."""
    with WarcReader(path) as reader:
        answers = (each for each in reader if each.type == "response" and each.block.startswith(b"HTTP/1.1 200"))
        return sum(not (each.url or "").endswith("/robots.txt") for each in answers)


def texts_in(path: Path) -> int:
    with WarcReader(path) as reader:
        return sum(each.type == "conversion" for each in reader)


def lines_in(path: Path) -> int:
    return sum(json.loads(line.split(" ", 2)[2])["status"] == "200" for line in path.read_text().splitlines())


def index_in(path: Path) -> int:
    with zipfile.ZipFile(path) as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
    return sum(json.loads(line.split(" ", 2)[2])["status"] == "200" for line in lines)


def texts_in_pages(path: Path) -> int:
    """Pages of a WACZ file that have a text; the others are not in a WET file."""
    with zipfile.ZipFile(path) as package:
        lines = package.read("pages/pages.jsonl").splitlines()[1:]
    return sum(bool(json.loads(line)["text"].strip()) for line in lines)


# format → what counts the pages in its file
EXPORTS: dict[str, Callable[[Path], int]] = {"warc": answers_in, "wet": texts_in, "cdxj": lines_in, "wacz": index_in}


def exported(run: Run, collection: Path, folder: Path, pages: int) -> dict[str, Path]:
    """An export in each format; reports how many have other counts than `status`."""
    made, rows = {}, []
    for format, count in EXPORTS.items():
        run.say(f"exporting {format}")
        made[format] = folder / f"site.{format}{'.gz' if format in ('warc', 'wet') else ''}"
        took = run_command(lycosa("export", collection, format, "--out", made[format], "--json"))
        megabytes = round(made[format].stat().st_size / 1e6, 1)
        rows.append((format, count(made[format]), megabytes, round(took.cpu_s, 2), round(took.peak_mb)))
    run.table(["export", "pages", "MB", "CPU s", "peak MB"], rows)
    wanted = {format: texts_in_pages(made["wacz"]) if format == "wet" else pages for format in made}
    run.figure(COUNTS, sum(found != wanted[format] for format, found, *_ in rows))
    return made


def same(port: int, targets: Sequence[tuple[str, bytes]]) -> int:
    """How many answers have status 200 and these very bytes."""
    return sum(body_of(port, target) == (200, wanted) for target, wanted in targets)


def heading_of(body: bytes) -> str:
    """The first heading or the title, in words as a browser has them."""
    found = _HEADING.search(body.decode("utf-8", "replace"))
    return " ".join(unescape(re.sub(r"<[^>]*>", "", found[2])).split()) if found else ""


def shows(page: Browser, address: str, heading: str, frame: str) -> bool:
    """Whether a page has this heading in one of its frames, soon after it is opened, or is loaded again: on a busy
    machine the service worker of ReplayWeb.page may begin too late for the first frame."""
    for _ in range(2):
        page.open(address)
        deadline = time.monotonic() + SHOW_S / 2
        while time.monotonic() < deadline:
            for url, text in page.texts().items():
                words = " ".join(unescape(re.sub(r"<[^>]*>", "", text)).split())
                if frame in url and heading and heading in words:
                    return True
            page.settle(0.3)
    return False


def measure(run: Run) -> None:
    with served_site(run) as (site, server), scratch() as folder:
        collection = folder / "c"
        run.say("crawling")
        run_command(crawl_command(server, site, collection))
        pages = json.loads(run_command(lycosa("status", collection, "--json")).out)["pages"]
        run.setting("pages", pages)
        made = exported(run, collection, folder, pages)
        run.say("checking")
        files = sorted((collection / "warc").glob("*.warc.gz"))
        run.figure(FAULTS, checked_by_warcio([*files, made["warc"], made["wet"]]) + validated(made["wacz"]))
        sample = sampled(run, site, server, collection)
        for name, archives in ((OF_CRAWL, files), (OF_EXPORT, [made["warc"]])):
            run.say("replaying with pywb")
            with replayed_by_pywb(folder / f"pywb-{len(name)}", *archives) as port:
                run.figure(name, same(port, [(f"/t/20id_/{url}", body) for url, body in sample]))
        with replayed_by_lycosa(collection) as link:
            asked = urlsplit(link)
            run.figure(OURS, same(asked.port or 0, [(f"{asked.path}save/latest/{url}", body) for url, body in sample]))
            in_browser(run, folder, made["wacz"], link, sample)


def sampled(run: Run, site: RealSite, server: Nginx, collection: Path) -> list[tuple[str, bytes]]:
    """Pages of the collection with the bytes of the files that they are."""
    listed = run_command(lycosa("urls", collection, "--status", "200", "--type", "text/html", "--json")).out
    urls = sorted(json.loads(line)["url"] for line in listed.splitlines())
    root = site.folder()
    found = [(url, root / url.removeprefix(f"{server.origin}/")) for url in urls]
    files = [(url, path) for url, path in found if path.is_file()]
    return [(url, path.read_bytes()) for url, path in random.Random(run.seed).sample(files, SAMPLE)]


def in_browser(run: Run, folder: Path, wacz: Path, link: str, sample: Sequence[tuple[str, bytes]]) -> None:
    """Some pages in Chromium, from the WACZ file and from the replay of our own."""
    shown = [(url, heading_of(body)) for url, body in sample if heading_of(body)][: QUICK_SHOWN if run.quick else SHOWN]
    run.say("replaying in Chromium")
    try:
        with browser() as page:
            missing = [url for url, words in shown if not shows(page, f"{link}view/latest/{url}", words, "/page/")]
            run.figure(IN_OURS, len(missing))
        with wacz_in_a_page(folder / "page", wacz) as server, browser() as page:
            failed = 0
            for number, (url, words) in enumerate(shown):
                failed += not shows(page, embed(folder / "page", server, number, url), words, "/replay/w/")
            run.figure(IN_WACZ, failed)
    except LycosaError as error:
        for name in (IN_OURS, IN_WACZ):
            run.leave_out(name, str(error))


EXPERIMENT = Experiment(
    name="archives",
    summary="a crawl of real documentation and its exports, read and replayed by others",
    run=measure,
    bars=(
        Bar("valid", FAULTS, "<=", 0),
        Bar("counts", COUNTS, "<=", 0),
        Bar("pywb, crawl", OF_CRAWL, ">=", SAMPLE),
        Bar("pywb, export", OF_EXPORT, ">=", SAMPLE),
        Bar("lycosa replay", OURS, ">=", SAMPLE),
        Bar("Chromium, WACZ", IN_WACZ, "<=", 0),
        Bar("Chromium, replay", IN_OURS, "<=", 0),
    ),
)
