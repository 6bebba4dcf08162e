"""Documents made to hurt, served on loopback and crawled: what each of them takes.

Each document is crawled by a process of its own with the settings of the command, together with some of the pages that
it links to. Seconds are CPU time of its analysis alone. Memory is the largest resident set beside that of a crawl of
ordinary pages, which is run first. The event loop should never be held: how long it was at most is the time of the
clock less what the process stood in line for a processor. The Python twin is measured beside the kernel, not judged.

What the kernel itself takes to read a document is measured apart, in a process that does nothing else: it is to be no
more than three times the document and 4 MB. Beside it stands what it takes with the main text, which a crawl without
`--index` does not ask for.
"""

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from proof import Bar, Experiment, Run
from proof.ground.commands import run_command, scratch

KERNEL, TWIN = "kernel", "twin"
ORDINARY = "ordinary"
PAGES = 5
SECONDS, MEMORY, HELD = "most seconds of analysis", "most memory above normal", "longest hold of the event loop"
SHARE, FIXED_MB = "most memory of the kernel less 4 MB, beside the document", 4.0
SMALL = b"<title>small</title><p>A page of few words."


def documents(parts: int) -> Iterator[tuple[str, bytes]]:
    """The documents, each an n-th of its size if `parts` is n."""
    yield ORDINARY, b"<title>ordinary</title>" + b"<p>Some words and <a href=/a>a link</a>.\n" * 500
    yield "nested elements", b"<div>" * (100_000 // parts)
    yield "attribute", b'<a href="/a" title="' + b"a" * (5_000_000 // parts) + b'">a</a>'
    yield "links", _links(400_000 // parts)
    yield "many links", _links(1_000_000 // parts)
    yield "open brackets", b"<" * (10_000_000 // parts)
    yield "NUL", b"\0" * (40_000_000 // parts)


def _links(count: int) -> bytes:
    return b"".join(
        b"<a href=/%d/page-%d.html>page %d</a>\n" % (number % 40, number, number) for number in range(count)
    )


@contextmanager
def served(body: bytes) -> Iterator[str]:
    """The URL of a document; every other path of its server is a small page, robots.txt is missing."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            answer = body if self.path == "/" else SMALL
            self.send_response(404 if self.path == "/robots.txt" else 200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            with suppress(ConnectionError):  # the crawler takes so much and no more
                self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


def crawl(body: bytes, kernel: str) -> dict[str, float]:
    words: list[str | Path] = ["env", f"LYCOSA_KERNEL={'native' if kernel == KERNEL else 'python'}", sys.executable]
    with scratch() as folder, served(body) as url:
        usage = run_command([*words, "-m", "proof.ground.hostile_crawl", url, folder / "crawl", str(PAGES)])
    told: dict[str, float] = json.loads(usage.out)
    return told


def kernel_mb(body: bytes, *words: str) -> float:
    """What the kernel takes to read a document, in MB."""
    with scratch() as folder:
        (folder / "document").write_bytes(body)
        return float(run_command([sys.executable, "-m", "proof.ground.kernel_memory", folder / "document", *words]).out)


def _measure_kernel(run: Run, found: list[tuple[str, bytes]]) -> None:
    rows, share = list[list[str | float]](), 0.0
    for name, body in found:
        size_mb, took_mb = len(body) / 1e6, kernel_mb(body)
        share = max(share, (took_mb - FIXED_MB) / size_mb)
        rows.append([name, *(round(each, 1) for each in (size_mb, took_mb, kernel_mb(body, "main-text")))])
    run.table(["document", "MB", "kernel MB", "with main text"], rows)
    run.figure(SHARE, share, "×")


def measure(run: Run) -> None:
    rows: list[list[str | int | float]] = []
    worst = {SECONDS: 0.0, MEMORY: 0.0, HELD: 0.0}
    found = list(documents(10 if run.quick else 1))
    with run.progress(len(run.chosen) * len(found), "documents") as step:
        for kernel in run.chosen:
            normal_mb = 0.0
            for name, body in found:
                told = crawl(body, kernel)
                normal_mb = normal_mb or told["peak_mb"]
                cost = {SECONDS: told["analysis_s"], MEMORY: told["peak_mb"] - normal_mb, HELD: 1000 * told["held_s"]}
                if kernel == KERNEL and name != ORDINARY:
                    worst = {what: max(worst[what], value) for what, value in cost.items()}
                shown = round(cost[SECONDS], 3), round(cost[MEMORY]), round(cost[HELD], 1), round(told["cpu_s"], 2)
                rows.append(
                    [kernel, name, round(len(body) / 1e6, 1), *shown, told["links"], bool(told["is_cut"]) * "cut"]
                )
                step.advance()
    columns = ["", "document", "MB", "analysis s", "MB above normal", "loop held ms", "crawl CPU s", "links", ""]
    run.table(columns, rows)
    run.setting("processors", os.cpu_count() or 1)
    for (what, value), unit in zip(worst.items(), ("s", "MB", "ms"), strict=True):
        if KERNEL in run.chosen:
            run.figure(what, value, unit)
        else:
            run.leave_out(what, "--only without the kernel")
    if KERNEL in run.chosen:
        _measure_kernel(run, found)
    else:
        run.leave_out(SHARE, "--only without the kernel")
    run.figure("documents", len(found) - 1)


EXPERIMENT = Experiment(
    name="hostile",
    summary="documents made to hurt: time, memory and the event loop",
    run=measure,
    choices=(KERNEL, TWIN),
    bars=(
        Bar("quick", SECONDS, "<=", 0.5),
        Bar("small", MEMORY, "<=", 150),
        Bar("in proportion", SHARE, "<=", 3.0),
        Bar("the loop goes on", HELD, "<=", 50),
    ),
)
