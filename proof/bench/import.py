"""How fast an archive becomes a collection: real documentation in a WARC file, imported by the command, on one core.

The file has a request, a response and a metadata record for each page, as crawlers write them. CPU time is that of the
whole command; what is imported is counted by the collection.
"""

import json
from pathlib import Path

from lycosa.records import Request, Response
from lycosa.store import response_exchange
from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.sites import OPENJDK, POSTGRESQL, RealSite

RECORDS, CAPTURES, PEAK = "records a second of CPU time", "captures a second of CPU time", "peak memory"


def write_archive(site: RealSite, target: Path) -> int:
    """Writes the pages of a site as a WARC file; returns how many there are."""
    root = site.folder()
    files = [file for file in sorted(root.rglob("*.html")) if file.is_file()]
    with target.open("wb") as out:
        for number, file in enumerate(files):
            url, body = f"http://docs.example/{file.relative_to(root)}", file.read_bytes()
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body)
            answer = Response(url, 200, head, {"content-type": "text/html"}, body)
            asked = Request(url, "docs.example", 80, "", (("User-Agent", "example"),))
            made = response_exchange(asked, answer, fetched_s=1.7e9 + number, metadata={"n": str(number)})
            out.writelines(made.members)
    return len(files)


def measure(run: Run) -> None:
    site = POSTGRESQL if run.quick else OPENJDK
    run.setting("site", site.package)
    with scratch() as folder:
        pages = write_archive(site, folder / "site.warc.gz")
        run.setting("pages", pages)
        done = run_command(lycosa("import", folder / "site.warc.gz", "--into", folder / "c", "--json"))
        found = json.loads(done.out)
    run.figure("captures imported", found["imported"])
    run.figure(RECORDS, sum(found["records"].values()) / done.cpu_s)
    run.figure(CAPTURES, found["imported"] / done.cpu_s)
    run.figure(PEAK, done.peak_mb, "MB")


EXPERIMENT = Experiment(
    name="import",
    summary="how fast a WARC file of real pages becomes a collection",
    run=measure,
    bars=(Bar("fast", RECORDS, ">=", 1_500), Bar("bounded", PEAK, "<=", 400)),
)
