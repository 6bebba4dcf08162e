"""Writes what the documentation takes out of docs/results, so that no figure of it is typed by hand.

python -m proof.pages writes docs/papers.md and docs/reliability.md whole, and in README.md, docs/peers.md,
docs/proof.md and docs/scale.md the tables between the two marks of a result. `make docs` and every run of an
experiment call it; a test compares all of it with docs/results.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proof import registry, reliability
from proof.experiment import Bar, Cell, PaperFigure, ResultTable, quantity
from proof.report import markdown_table

PROJECT = Path(__file__).parents[1]
RESULTS = PROJECT / "docs" / "results"
PAPERS = {
    "P": (
        "PARCAHYD",
        "A. K. Sharma and others, An Architecture of a Parallel Crawler based on Augmented Hypertext Documents",
    ),
    "M": (
        "Migrating crawler",
        "A. Singh, K. K. Singh, Faster and Efficient Web Crawling with Parallel Migrating Web Crawler",
    ),
    "H": (
        "Assignment by hash",
        "Y. Wan, H. Tong, URL Assignment Algorithm of Crawler in Distributed System Based on Hash",
    ),
    "Y": (
        "Change detection",
        "D. Yadav, A. K. Sharma, J. P. Gupta, Parallel Crawler Architecture and Web Page Change Detection",
    ),
    "T": ("Tarantula", "Tarantula: A Scalable and Extensible Web Spider"),
}
HEAD = """# The papers beside Lycosa

Five papers describe what Lycosa is built on ([lineage](lineage.md)). Each claim that can be measured is an experiment,
which anybody can run again. This page is written by `make lab` out of [the results](results/index.md): the paper's
figure is the one that it printed, ours is the one that the command found.
"""
BENCHMARKS = "benchmarks"
MOST_BARS = 6  # that are told in a row; of more it is told how many there are
MARKED = re.compile(r"<!-- from results: (\S+) -->\n.*?<!-- end -->\n", re.DOTALL)
Result = dict[str, Any]


def made() -> Iterator[tuple[Path, str]]:
    """Each file that comes out of docs/results, wholly or in part, and what it has to be."""
    yield PROJECT / "docs" / "papers.md", papers_page()
    yield PROJECT / "docs" / "reliability.md", reliability.page()
    for name in ("README.md", "docs/peers.md", "docs/proof.md", "docs/scale.md"):
        yield PROJECT / name, with_tables((PROJECT / name).read_text())


def write() -> None:
    for path, text in made():
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def result_of(name: str) -> Result | None:
    """The published result of an experiment; None where there is none."""
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_bytes()) if file.is_file() else None


# the papers


def papers_page() -> str:
    experiments = {each.name: each for each in registry.catalogue("lab")}
    results = {name: found for name in experiments if (found := result_of(name)) is not None}
    minutes = sum(found["seconds"] for found in results.values()) / 60
    parts = [
        HEAD,
        f"`make lab` runs all of them; the runs published here took {minutes:.0f} minutes together.\n",
    ]
    for letter, (title, paper) in PAPERS.items():
        claims = [
            _paper_row(claim, name, results.get(name))
            for name, each in experiments.items()
            for claim in each.papers
            if claim.claim_id.startswith(letter)
        ]
        table = ResultTable(("claim", "the paper", "here", "command"), tuple(claims))
        parts.append(f"## {title}\n\n{paper}.\n\n{markdown_table(table)}")
    parts.append("## What does not hold, and why\n\nWhat the experiments say of the claims in their own words.\n")
    for name, found in results.items():
        parts += [
            f"- [{name}](results/{name}.md): {remark}"
            for remark in found.get("remarks", ())
            if experiments[name].papers
        ]
    return "\n".join(parts) + "\n"


def _paper_row(claim: PaperFigure, name: str, result: Result | None) -> tuple[str, ...]:
    ours = result["figures"].get(claim.figure) if result else None
    here = quantity(ours["value"], ours["unit"]) if ours else "not measured"
    return claim.claim, claim.theirs or "none given", here, f"`make lab NAME={name}`"


# beside other crawlers


def with_tables(text: str) -> str:
    """The page with the tables between the marks `<!-- from results: NAME -->` and `<!-- end -->` as they have to be.

    NAME is that of a result, which gives its plots, all its tables and remarks, or `NAME:short`, which gives one table;
    `benchmarks` gives a row for every benchmark that has a result.
    """

    def tables(mark: re.Match[str]) -> str:
        name, _, form = mark[1].partition(":")
        result = result_of(name)
        if name == BENCHMARKS:
            body = markdown_table(_benchmarks())
        elif result is None:
            body = f"Not run yet: `make bench NAME={name} ARGS='--out docs/results'`.\n"
        else:
            body = _short(result) if form == "short" else _long(result)
        return f"<!-- from results: {mark[1]} -->\n{body}<!-- end -->\n"

    return MARKED.sub(tables, text)


def _tables(result: Result) -> list[ResultTable]:
    return [
        ResultTable(tuple(each["columns"]), tuple(map(tuple, each["rows"])), each["title"]) for each in result["tables"]
    ]


def _long(result: Result) -> str:
    machine = f"load {result['environment']['load']} on {result['environment']['cores']} cores at the start"
    facts = [", ".join(f"{name} {value}" for name, value in result["settings"].items()), machine]
    facts.append(f"{result['seconds'] / 60:.0f} minutes")
    parts = [f"`{result['command']}` ({'; '.join(filter(None, facts))})\n"]
    if (RESULTS / f"{result['name']}.svg").is_file():
        parts.append(f"![{result['summary']}](results/{result['name']}.svg)\n")
    parts += map(markdown_table, _tables(result))
    parts.append(markdown_table(_bars(result)))
    parts += [f"- {remark}" for remark in result["remarks"]]
    return "\n".join(parts) + "\n"


def _benchmarks() -> ResultTable:
    """Every benchmark that has a result, and how what it measured stands to its bars."""
    rows = []
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_bytes())
        if "." in path.stem or not result["command"].startswith("make bench "):  # quick, or with another seed; papers
            continue
        bars = _bars(result).rows
        told = [f"{name}: {measured} ({wanted})" for name, wanted, measured, _ in bars]
        missed = [str(name) for name, _, _, held in bars if held == "no"]
        when = ", ".join(filter(None, (result["environment"].get("day"), f"load {result['environment']['load']}")))
        rows.append(
            (
                f"`{result['command']}`",
                result["summary"],
                "; ".join(told) if len(told) <= MOST_BARS else f"{len(told)} bars",
                f"no: {', '.join(missed)}"
                if missed
                else "yes" + ", where measured" * any("left out" in bar for bar in bars),
                when,
            )
        )
    return ResultTable(("command", "what", "measured (must reach)", "reached", "when"), tuple(rows))


def _bars(result: Result) -> ResultTable:
    """What had to be reached, what was measured, and whether it was reached."""
    rows = []
    for each in result["bars"]:
        bar = Bar(each["name"], each["figure"], each["relation"], _limit(each["limit"]))
        measured = quantity(each["value"], each["unit"]) if each["value"] is not None else "not measured"
        wanted = f"{bar.wanted()} {each['unit']}".rstrip()
        rows.append(
            (bar.name, wanted, measured, "yes" if each["held"] else "left out" if each.get("left_out") else "no")
        )
    return ResultTable(("bar", "must reach", "measured", "reached"), tuple(rows), "bars")


def _limit(limit: float | list[float]) -> float | tuple[float, float]:
    return (limit[0], limit[1]) if isinstance(limit, list) else limit


def _short(result: Result) -> str:
    """One table for the README: what each crawler reaches, and what of its work is told in a word."""
    measured, work = _tables(result)[:2]
    figures, deeds = ("pages/s", "Lycosa ×", "CPU µs/page", "peak MB"), ("robots", "archive", "resume")
    does = {row[0]: _cells(work, row, deeds) for row in work.rows}
    rows = tuple((row[0], *_cells(measured, row, figures), *does[row[0]]) for row in measured.rows)
    return markdown_table(ResultTable(("", *figures, *deeds), rows))


def _cells(table: ResultTable, row: Sequence[Cell], columns: Sequence[str]) -> Iterator[Cell]:
    """These columns of a row, ratios without their spread."""
    for name in columns:
        found = row[table.columns.index(name)]
        yield found.partition(" (")[0] if isinstance(found, str) else found


if __name__ == "__main__":
    write()
