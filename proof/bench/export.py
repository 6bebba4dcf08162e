"""How fast a collection is exported in each format, on one core, and in how much memory; and how fast pages are got.

The collection is a crawl of real documentation, made by the product. Each export is a command of its own on one core,
into a file or a folder; its rate is that of the export without the start of the command. CPU time is that of the whole
command. Text and Markdown are exported a second time without the page kernel. Every export must have as many pages as
`lycosa status` counts.
"""

import json
import os
import time
from pathlib import Path

from lycosa import Collection
from lycosa.inspect import KnownUrlFilter, open_to_read, url_batches
from proof import Bar, Experiment, Run
from proof.ground.commands import CommandUsage, lycosa, run_command, scratch
from proof.ground.sites import crawl_command, served_site

# what is shown → the words of the command, and the least pages a second, where there is a bar
EXPORTS: dict[str, tuple[list[str], int]] = {
    "jsonl, text and language": (["jsonl"], 0),
    "text": (["jsonl", "--like", "c4"], 2_500),
    "text without the kernel": (["jsonl", "--like", "c4"], 1_300),
    "jsonl like fineweb, zstd": (["jsonl", "--like", "fineweb"], 0),
    "jsonl, no content": (["jsonl", "--content", "none"], 20_000),
    "csv": (["csv"], 20_000),
    "markdown": (["markdown"], 1_500),
    "markdown without the kernel": (["markdown"], 600),
    "markdown in lines": (["jsonl", "--like", "c4", "--content", "markdown"], 0),
    "graph of pages": (["graph"], 0),
    "graph of hosts": (["graph", "--level", "host"], 0),
    "graph as gexf": (["graph", "--edges", "gexf"], 0),
    "sitemap": (["sitemap"], 10_000),
    "parquet with text": (["parquet"], 3_000),
    "parquet, no content": (["parquet", "--content", "none"], 0),
    "cdxj": (["cdxj"], 20_000),
    "wacz with text": (["wacz"], 5_000),
}
WITHOUT_KERNEL = "without the kernel"
TAKE_ANSWERS = ("graph", "warc", "cdxj", "wacz", "parquet")  # redirects and errors, too
GETS, QUICK_GETS = 5_000, 500
GET, URLS, MEMORY, OFF = "get in a loop", "known URLs", "largest memory", "exports whose pages are not those of status"


def on_one_core(command: list[str | Path]) -> list[str | Path]:
    core = max(os.sched_getaffinity(0))
    return ["taskset", "-c", str(core), *command]


def export(collection: Path, out: Path, words: list[str], kernel: str) -> tuple[dict[str, float], CommandUsage]:
    """The report of one export, and what the command took."""
    name = out / ("pages.zst" if "fineweb" in words else "pages")
    command = on_one_core(lycosa("export", collection, *words, "--out", name, "--json", "--restart"))
    usage = run_command(["env", f"LYCOSA_KERNEL={kernel}", *command])
    return json.loads(usage.out), usage


def gets_per_s(collection: Path, count: int) -> float:
    """How many pages a second a loop gets, with their bodies, in an order that is not that of the archive."""
    with Collection(collection) as opened:
        urls = [page.url for page in opened]
        urls = (urls[::7] + urls[3::7])[:count]
        began = time.perf_counter()
        for url in urls:
            assert opened.get(url).body
        return len(urls) / (time.perf_counter() - began)


def urls_per_s(collection: Path) -> float:
    """How many known URLs a second are listed with what `lycosa urls` shows of them, the best of three times."""
    rates = []
    with open_to_read(collection) as opened:
        for _ in range(3):
            began = time.perf_counter()
            listed = sum(map(len, url_batches(opened, KnownUrlFilter())))
            rates.append(listed / (time.perf_counter() - began))
    return max(rates)


def measure(run: Run) -> None:
    rows: list[tuple[str | int | float, ...]] = []
    largest, off = 0.0, 0
    with served_site(run) as (site, server), scratch() as folder:
        run.say("crawling")
        run_command(crawl_command(server, site, folder / "c"))
        status = json.loads(run_command(lycosa("status", folder / "c", "--json")).out)
        run.setting("pages", status["pages"])
        with run.progress(len(EXPORTS), "exports") as step:
            for number, (name, (words, _)) in enumerate(EXPORTS.items()):
                step.advance()
                if words[0] not in run.chosen:
                    run.leave_out(name, "--only")
                    continue
                (folder / str(number)).mkdir()
                kernel = "python" if WITHOUT_KERNEL in name else ""
                report, usage = export(folder / "c", folder / str(number), words, kernel)
                per_s = report["pages"] / max(0.001, report["seconds"])
                run.figure(name, per_s, "pages/s")
                rows.append(
                    (name, round(per_s), round(usage.cpu_s, 2), round(report["bytes"] / 1e6, 1), round(usage.peak_mb))
                )
                largest = max(largest, usage.peak_mb)
                off += report["pages"] != status["pages"] and words[0] not in TAKE_ANSWERS
        run.figure(GET, gets_per_s(folder / "c", QUICK_GETS if run.quick else GETS), "pages/s")
        run.figure(URLS, urls_per_s(folder / "c"), "URLs/s")
    run.table(["export", "pages/s", "CPU s", "MB", "peak MB"], rows)
    run.figure(MEMORY, largest, "MB")
    run.figure(OFF, off)


EXPERIMENT = Experiment(
    name="export",
    summary="a crawl of openjdk-17-doc exported in each format, on one core",
    run=measure,
    choices=tuple(dict.fromkeys(words[0] for words, _ in EXPORTS.values())),
    bars=(
        *(Bar(name, name, ">=", least) for name, (_, least) in EXPORTS.items() if least),
        Bar("get", GET, ">=", 2_000),
        Bar("urls", URLS, ">=", 100_000),
        Bar("memory", MEMORY, "<=", 400),
        Bar("counts", OFF, "<=", 0),
    ),
)
