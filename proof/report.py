"""Shows a result on the terminal, and writes its files: NAME.md for readers, NAME.json for machines, plots.

Invariant: under their names stand whole files only. They are made in a hidden folder beside and moved into place when
all are there, so an interrupted run leaves what was there before. Those of another seed than the usual one are
called NAME.seed-N.*, those of a quick run NAME.quick.*: they never replace what is published. Called by the command
line.
"""

import os
import shlex
import tempfile
from itertools import pairwise
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lycosa.errors import SettingsError, StoreError
from proof import draw
from proof.experiment import (
    DEFAULT_SEED,
    BarVerdict,
    Cell,
    Experiment,
    ExperimentResult,
    Extent,
    ResultTable,
    as_json,
    cell,
    cores,
    extent_of,
    number,
)

PIPE_COLUMNS = 200  # a table in a file or pipe is cut by nobody's window


def show(result: ExperimentResult) -> None:
    """The result for a reader: claim, tables, figures, and each bar with its mark."""
    plain = Console(highlight=False, markup=False, emoji=False)
    console = plain if plain.is_terminal else Console(highlight=False, markup=False, emoji=False, width=PIPE_COLUMNS)
    experiment, findings = result.experiment, result.findings
    circumstances = [f"seed {result.seed}", f"{result.seconds:.1f} s", f"load {result.load:.1f} on {cores()} cores"]
    circumstances += ["quick"] * result.quick + [f"{name} {cell(value)}" for name, value in findings.settings.items()]
    console.print(f"{experiment.name}: {experiment.summary} ({', '.join(circumstances)})")
    console.print(f"{experiment.claim_id}: {experiment.claim}\n" if experiment.claim else "")
    for table in (*findings.tables, _figures(result)):
        _print_table(console, table)
    for remark in findings.remarks:
        console.print(remark)
    for verdict in result.verdicts:
        _print_verdict(console, verdict)


def _print_table(console: Console, table: ResultTable) -> None:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False, title=table.title or None, title_justify="left")
    for i, column in enumerate(table.columns):
        is_text = any(isinstance(row[i], str) and row[i] for row in table.rows)
        grid.add_column(column, justify="left" if is_text else "right")
    for row in table.rows:
        grid.add_row(*map(cell, row))
    console.print(grid)


def _print_verdict(console: Console, verdict: BarVerdict) -> None:
    good, bad, none = ("ok", "FAIL", "--") if console.options.ascii_only else ("✓", "✗", "–")
    mark, colour = (good, "green") if verdict.held else (none, "yellow") if verdict.left_out else (bad, "red")
    measured = f"left out ({verdict.left_out})" if verdict.left_out else verdict.measured
    sentence = f" {verdict.bar.name}: {verdict.bar.figure} {measured}, wanted {verdict.wanted}"
    console.print(Text.assemble((mark, f"bold {colour}"), sentence))


def _figures(result: ExperimentResult) -> ResultTable:
    figures = result.findings.figures.items()
    return ResultTable(("figure", "value", "unit"), tuple((name, each.value, each.unit) for name, each in figures))


def usual_folder(here: Path) -> Path:
    """Where results go unless told: docs/results of the project that `here` is in, if it has docs, else ./results."""
    project = next((folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()), here)
    return project / "docs" / "results" if (project / "docs").is_dir() else here / "results"


def check_can_publish(folder: Path) -> None:
    """Say now what would only fail after the run: no plotting library, a folder that cannot be written."""
    draw.check_can_draw()
    folder = folder.absolute()
    standing = next(place for place in (folder, *folder.parents) if place.exists())
    if not standing.is_dir():
        raise SettingsError(f"results cannot go to {folder}: {standing} is not a folder")
    if not os.access(standing, os.W_OK | os.X_OK):
        raise SettingsError(f"results cannot go to {folder}: {standing} may not be written to")


class PublishedResult(msgspec.Struct, frozen=True):
    """What is read of a result's file."""

    command: str
    tables: tuple[ResultTable, ...] = ()

    def extent(self, experiment: Experiment) -> Extent:
        """How much its command measured, of what the experiment has today."""
        words = [word for each in shlex.split(self.command) for word in shlex.split(each.removeprefix("ARGS="))]
        given = {name: value for name, value in pairwise(words) if name.startswith("--")}
        known = {name.lower() for name in experiment.choices}
        return extent_of(
            experiment,
            runs=int(given.get("--runs", 0)),
            minutes=float(given.get("--minutes", 0)),
            only=[name for name in given.get("--only", "").split(",") if name.lower() in known],
        )


def published(folder: Path, name: str, *, kind: str, seed: int, quick: bool) -> PublishedResult | None:
    """The results of this name and seed that stand in the folder; None where there are no such. Those of an experiment
    are not to be written over by a benchmark of its name."""
    path = folder / f"{_stem(name, seed=seed, quick=quick)}.json"
    try:
        found = msgspec.json.decode(path.read_bytes(), type=PublishedResult)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise SettingsError(f"{path} cannot be read: {error}; move it away to begin anew") from error
    if not found.command.startswith(f"make {kind} "):
        raise SettingsError(f"{path} has what {found.command} found: name another folder with --out")
    return found


def _stem(name: str, *, seed: int, quick: bool) -> str:
    return name + (f".seed-{seed}" if seed != DEFAULT_SEED else "") + (".quick" if quick else "")


def publish(result: ExperimentResult, folder: Path) -> list[Path]:
    """Write the files and say which; `StoreError` if the disk refuses."""
    stem = _stem(result.experiment.name, seed=result.seed, quick=result.quick)
    pictures: dict[str, bytes] = {}
    if charts := result.findings.charts:
        pictures = dict(zip(("svg", "png"), draw.picture(charts, name=result.experiment.name), strict=True))
    files = {
        **{f"{stem}.{ending}": content for ending, content in pictures.items()},
        f"{stem}.json": msgspec.json.format(as_json(result), indent=2) + b"\n",
        f"{stem}.md": markdown(result, picture=f"{stem}.svg").encode(),
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{stem}-", dir=folder) as making:
            for name, content in files.items():
                (Path(making) / name).write_bytes(content)
            return [(Path(making) / name).replace(folder / name) for name in files]
    except OSError as error:
        raise StoreError(f"results could not be written to {folder}: {error.strerror or error}") from error


def markdown(result: ExperimentResult, *, picture: str) -> str:
    """The report. It holds nothing that changes when the same numbers are found again: no time, no machine."""
    experiment, findings = result.experiment, result.findings
    settings = {"seed": str(result.seed), **{name: cell(value) for name, value in findings.settings.items()}}
    kind = "A quick run: smaller than the real one, its numbers are rough.\n\n" if result.quick else ""
    alt = "; ".join(chart.title for chart in findings.charts)
    return "\n".join(
        [
            f"# {experiment.name}: {experiment.summary}\n",
            *([f"Claim {experiment.claim_id}: {experiment.claim}\n"] if experiment.claim else []),
            f"{kind}Settings: {', '.join(f'{name} {value}' for name, value in settings.items())}. Again with\n",
            f"```\n{result.command}\n```\n",
            *([f"![{_escaped(alt)}]({picture})\n"] if findings.charts else []),
            *map(markdown_table, findings.tables),
            *(f"{_escaped(remark)}\n" for remark in findings.remarks),
            "## Figures\n",
            markdown_table(_figures(result)),
            "## Bars\n",
            _bars(result),
        ]
    )


def _bars(result: ExperimentResult) -> str:
    if not result.verdicts:
        return "None: this experiment only shows.\n"
    rows = tuple(
        (
            verdict.bar.name,
            verdict.bar.figure,
            verdict.measured,
            verdict.wanted,
            "✓ held" if verdict.held else f"– {verdict.left_out}" if verdict.left_out else "✗ not held",
        )
        for verdict in result.verdicts
    )
    return markdown_table(ResultTable(("bar", "figure", "measured", "wanted", "held"), rows))


def markdown_table(table: ResultTable) -> str:
    """A Markdown table; columns of numbers stand to the right."""
    numeric = [all(not isinstance(row[i], str) or not row[i] for row in table.rows) for i in range(len(table.columns))]
    rule = ["---:" if is_numeric else "---" for is_numeric in numeric]
    title = [f"{_escaped(table.title)}\n"] if table.title else []
    lines = [*title, _row(table.columns), f"| {' | '.join(rule)} |", *(_row(row) for row in table.rows)]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[Cell, ...]) -> str:
    return f"| {' | '.join(_escaped(c) if isinstance(c, str) else number(c) for c in cells)} |"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")
