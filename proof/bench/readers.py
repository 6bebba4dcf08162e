"""Whether other programs read the exports as they are: the URLs that pandas, Polars, DuckDB and `datasets` find there,
beside those of the pages of the collection.

The collection is a crawl of real documentation. The programs stand in an environment of their own, in the versions that
are current (`ground/table_readers.py`).
"""

import json

from lycosa import Collection
from proof import Bar, Experiment, Run
from proof.ground import table_readers
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.peers import environment
from proof.ground.sites import crawl_command, served_site

PROGRAMS = ("datasets", "duckdb", "pandas", "polars", "pyarrow")
EXPORTS = {"jsonl": ["--content", "text"], "csv": ["--content", "text"], "parquet": ["--status", "2xx"]}
OTHER = "readings of an export that have other pages than the collection"


def measure(run: Run) -> None:
    python = environment("table-readers", *PROGRAMS)
    with served_site(run) as (site, server), scratch() as folder:
        run.say("crawling")
        run_command([*crawl_command(server, site, folder / "c"), "--pages", "1000"])
        with Collection(folder / "c") as collection:
            urls = [page.url for page in collection]
        run.setting("pages", len(urls))
        files = []
        for name, words in EXPORTS.items():
            run_command(lycosa("export", folder / "c", name, *words, "--out", folder / f"pages.{name}"))
            index = folder / "pages.parquet" / "index" if name == "parquet" else folder / f"pages.{name}"
            files.append(f"{name}={index}")
        run.say("reading")
        done = run_command([python, table_readers.__file__, folder / "cache", *files])
    found: dict[str, str] = json.loads(done.out)
    expected = table_readers.digest(urls)
    run.figure("readings", len(found))
    run.figure(OTHER, sum(each != expected for each in found.values()))
    run.table(
        ["program and format", "the same pages"], [(name, str(found[name] == expected)) for name in sorted(found)]
    )


EXPERIMENT = Experiment(
    name="readers",
    summary="exports read by pandas, Polars, DuckDB and datasets",
    run=measure,
    bars=(Bar("all of them", "readings", ">=", 12), Bar("the same pages", OTHER, "<=", 0)),
)
