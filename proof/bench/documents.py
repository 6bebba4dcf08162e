"""Each document once: real files with copies among them, and which of them Lycosa keeps a second time, or wrongly not.

    python -m proof.bench.documents [--copies 2000]

The files are those of Debian documentation packages, of whatever kind; some are there twice by themselves, and copies
of others are planted under new names. nginx serves them, the crawl gets every URL from a list and follows no links.
Which files are equal is found by comparing their bytes. A WARC has a `revisit` record for a URL whose document was
known and a `response` for every other: the revisits must be exactly the copies, and each must refer to a file that is
equal to its own. Empty files have no document and are left out.
"""

import argparse
import json
import random
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from proof.bench.ground import package, say
from proof.bench.measure import Ran, Verdict, load, lycosa, run
from proof.bench.server import nginx_of

PACKAGES = (
    "openjdk-17-doc",
    "postgresql-doc-15",
    "python3.11-doc",
    "apache2-doc",
    "cmake-doc",
    "git-doc",
    "sqlite3-doc",
)
LEAST_FILES = 16_544  # not counting those that are planted
CONNECTIONS = 32
SEED = 6


def lay_out(root: Path, copies: int) -> dict[str, Path]:
    """The files under `root` by the path they are served at: those of the packages, and copies with other names."""
    for name in PACKAGES:
        source = package(name) / "usr" / "share"
        shutil.copytree(source, root / name, copy_function=_link, ignore=_ignore_links)
    files = [path for path in sorted(root.rglob("*")) if path.is_file() and path.stat().st_size]
    choose = random.Random(SEED)
    planted = root / "planted"
    for number, source in enumerate(choose.choices(files, k=copies)):
        target = planted / str(number % 50) / f"{number}-{choose.randrange(10**6)}{source.suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        _link(source, target)
        files.append(target)
    return {"/" + quote(str(path.relative_to(root))): path for path in files}


def _link(source: str | Path, target: str | Path) -> None:
    """The same file under a second name: no bytes are copied on disk, but two URLs serve them."""
    Path(target).hardlink_to(source)


def _ignore_links(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if (Path(folder) / name).is_symlink()]


def equals(files: dict[str, Path]) -> dict[str, int]:
    """The number of the class of equal files that each belongs to, by comparing bytes with bytes."""
    by_size: dict[int, list[str]] = defaultdict(list)
    for path, file in files.items():
        by_size[file.stat().st_size].append(path)
    classes: dict[str, int] = {}
    for paths in by_size.values():
        known: dict[bytes, int] = {}
        for path in paths:
            classes[path] = known.setdefault(files[path].read_bytes(), len(classes))
    return classes


def revisits(folder: Path) -> Iterator[tuple[str, str]]:
    """(URL, the URL it refers to) of every revisit record."""
    for file in sorted(folder.glob("*.warc.gz")):
        with file.open("rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type == "revisit":
                    headers = record.rec_headers
                    yield headers["WARC-Target-URI"], headers["WARC-Refers-To-Target-URI"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=2_000, help="planted")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-", dir=package(PACKAGES[0]).parent) as name:
        folder = Path(name)
        (folder / "root").mkdir()
        files = lay_out(folder / "root", options.copies)
        say(f"comparing {len(files):,} files byte by byte")
        classes = equals(files)
        with nginx_of(folder / "root", folder / "nginx") as server:
            (folder / "urls").write_text("".join(f"{server.origin}{path}\n" for path in files))
            say("crawling them")
            manners = ["--depth", "0", "--delay", "0", "--per-host", str(CONNECTIONS), "--allow-private"]  # loopback
            lists: list[str | Path] = ["-i", folder / "urls", "--into", folder / "crawl"]
            ran = run(lycosa("crawl", *lists, *manners, "--json", "--quiet"))
            done = json.loads(ran.out)
        found = [
            (url.removeprefix(server.origin), original.removeprefix(server.origin))
            for url, original in revisits(folder / "crawl" / "warc")
        ]
    report(classes, found, done, ran, planted=options.copies)


def report(
    classes: dict[str, int], found: list[tuple[str, str]], done: dict[str, int], ran: Ran, *, planted: int
) -> None:
    files, distinct = len(classes), len(set(classes.values()))
    wrong = sum(classes.get(path) != classes.get(original, -1) for path, original in found)
    print(f"{files:,} files, {distinct:,} different ones, so {files - distinct:,} copies; {load()}")
    print(f"Lycosa kept {done['pages']:,} pages, {done['duplicates']:,} of them as copies; failed {done['failed']:,}")
    print(f"a file took {ran.wall_s / files * 1e6:,.0f} µs, {ran.cpu_s / files * 1e6:,.0f} µs of CPU, start included")
    verdict = Verdict()
    verdict.judge(
        f"{files - planted:,} files without the planted, at least {LEAST_FILES:,}", files - planted >= LEAST_FILES
    )
    verdict.judge("every file fetched", done["pages"] == files)
    verdict.judge(f"copies found: {len(found):,} of {files - distinct:,}", len(found) == files - distinct)
    verdict.judge(f"copies that are none: {wrong}", wrong == 0)
    verdict.exit()


if __name__ == "__main__":
    main()
