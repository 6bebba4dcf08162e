"""Writes a result's files: NAME.md for readers, NAME.json for machines, NAME.svg and NAME.png to look at.

Invariant: under their names stand whole files only. They are made in a hidden folder beside and moved into place when
all four are there, so an interrupted run leaves what was there before. A quick run's files are called NAME.quick.*:
they never replace a full run's. Called by the command line.
"""

import os
import tempfile
from pathlib import Path

import msgspec

from lycosa.errors import SettingsError, StoreError
from proof import draw
from proof.experiment import Cell, Table
from proof.result import Result, as_json
from proof.wording import cell, number


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


def publish(result: Result, folder: Path) -> list[Path]:
    """Write the four files and say which; `StoreError` if the disk refuses."""
    stem = result.experiment.name + (".quick" if result.quick else "")
    svg, png = draw.picture(result.findings.charts, name=result.experiment.name)
    files = {
        f"{stem}.svg": svg,
        f"{stem}.png": png,
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


def markdown(result: Result, *, picture: str) -> str:
    """The report. It holds nothing that changes when the same numbers are found again: no time, no machine."""
    experiment, findings = result.experiment, result.findings
    settings = {"seed": str(result.seed), **{name: cell(value) for name, value in findings.settings.items()}}
    kind = "A quick run: smaller than the real one, its numbers are rough.\n\n" if result.quick else ""
    figures = Table(("figure", "value", "unit"), tuple((n, f.value, f.unit) for n, f in findings.figures.items()))
    alt = "; ".join(chart.title for chart in findings.charts)
    return "\n".join(
        [
            f"# {experiment.name}: {experiment.summary}\n",
            f"Claim {experiment.claim_id}: {experiment.claim}\n",
            f"{kind}Settings: {', '.join(f'{name} {value}' for name, value in settings.items())}. Again with\n",
            f"```\n{result.command}\n```\n",
            f"![{_escaped(alt)}]({picture})\n",
            _table(findings.table),
            *(f"{_escaped(remark)}\n" for remark in findings.remarks),
            "## Figures\n",
            _table(figures),
            "## Bars\n",
            _bars(result),
        ]
    )


def _bars(result: Result) -> str:
    if not result.verdicts:
        return "None: this experiment only shows.\n"
    rows = tuple(
        (
            verdict.bar.name,
            verdict.bar.figure,
            verdict.measured,
            verdict.wanted,
            "✓ held" if verdict.held else "✗ not held",
        )
        for verdict in result.verdicts
    )
    return _table(Table(("bar", "figure", "measured", "wanted", "held"), rows))


def _table(table: Table) -> str:
    """A Markdown table; columns of numbers stand to the right."""
    numeric = [all(not isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    rule = ["---:" if is_numeric else "---" for is_numeric in numeric]
    lines = [_row(table.columns), f"| {' | '.join(rule)} |", *(_row(row) for row in table.rows)]
    return "\n".join(lines) + "\n"


def _row(cells: tuple[Cell, ...]) -> str:
    return f"| {' | '.join(_escaped(c) if isinstance(c, str) else number(c) for c in cells)} |"


def _escaped(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("[", "\\[").replace("]", "\\]")
