"""Each document once: real files with copies among them, and which of them Lycosa keeps a second time, or wrongly not.

The files are those of Debian documentation packages, of whatever kind; some are there twice by themselves, and copies
of others are planted under new names. nginx serves them, the crawl gets every URL from a list and follows no links.
Which files are equal is found by comparing their bytes. A WARC has a `revisit` record for a URL whose document was
known and a `response` for every other: the revisits must be exactly the copies, and each must refer to a file that is
equal to its own. Empty files have no document and are left out.
"""

import json
import random
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from warcio.archiveiterator import ArchiveIterator  # type: ignore[import-untyped]

from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.peers import package
from proof.ground.servers import nginx_of
from proof.ground.sites import CONNECTIONS

PACKAGES = (
    "openjdk-17-doc",
    "postgresql-doc-15",
    "python3.11-doc",
    "apache2-doc",
    "cmake-doc",
    "git-doc",
    "sqlite3-doc",
)
COPIES = 2_000  # planted
FILES = "files without the planted ones"
QUICK_PACKAGES = ("postgresql-doc-15", "git-doc")
SEED = 6


def lay_out(root: Path, packages: tuple[str, ...], copies: int) -> dict[str, Path]:
    """The files under `root` by the path they are served at: those of the packages, and copies with other names."""
    for name in packages:
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


def measure(run: Run) -> None:
    packages, copies = (QUICK_PACKAGES, COPIES // 10) if run.quick else (PACKAGES, COPIES)
    with scratch(beside=package(packages[0]).parent) as folder:
        (folder / "root").mkdir()
        files = lay_out(folder / "root", packages, copies)
        run.say(f"comparing {len(files):,} files byte by byte")
        classes = equals(files)
        with nginx_of(folder / "root", folder / "nginx") as server:
            (folder / "urls").write_text("".join(f"{server.origin}{path}\n" for path in files))
            run.say("crawling them")
            manners = ["--depth", "0", "--delay", "0", "--per-host", str(CONNECTIONS), "--allow-private"]  # loopback
            lists: list[str | Path] = ["-i", folder / "urls", "--into", folder / "crawl"]
            usage = run_command(lycosa("crawl", *lists, *manners, "--json", "--quiet"))
        found = [
            (url.removeprefix(server.origin), original.removeprefix(server.origin))
            for url, original in revisits(folder / "crawl" / "warc")
        ]
    done, count = json.loads(usage.out), len(classes)
    really = count - len(set(classes.values()))
    if run.quick:
        run.leave_out(FILES, "quick")
    else:
        run.figure(FILES, count - copies)
    run.figure("files that were not fetched", count - done["pages"])
    run.figure("copies by comparing bytes", really)
    run.figure("copies that were missed, or are too many", abs(really - len(found)))
    wrong = sum(classes.get(path) != classes.get(original, -1) for path, original in found)
    run.figure("copies that are none", wrong)
    run.figure("time for a file, start included", usage.wall_s / count * 1e6, "µs")
    run.figure("CPU for a file, start included", usage.cpu_s / count * 1e6, "µs")


EXPERIMENT = Experiment(
    name="documents",
    summary="real files with copies among them: is each document kept once, and no other",
    run=measure,
    bars=(
        Bar("files enough", FILES, ">=", 16_544),
        Bar("every file fetched", "files that were not fetched", "within", (0, 0)),
        Bar("every copy found", "copies that were missed, or are too many", "<=", 0),
        Bar("nothing else", "copies that are none", "<=", 0),
    ),
)
