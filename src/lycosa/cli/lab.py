"""`lycosa lab`: list the experiments, run one, show what it found and whether its bars hold.

Standard output carries the answer (a readable one, or one JSON object), standard error everything else.
"""

import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from lycosa.lab.experiment import Table
    from lycosa.lab.result import Result, Verdict

BAR_NOT_HELD = 3
PIPE_COLUMNS = 200  # a table in a file or pipe is cut by nobody's window


def lab(
    name: Annotated[str | None, typer.Argument(help="The experiment to run; without one they are listed.")] = None,
    listing: Annotated[bool, typer.Option("--list", help="List the experiments and what each one checks.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small run with rough numbers; nothing is written unless --out is given.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Where all randomness comes from: same seed, same numbers.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the results [docs/results of the project, else results].")
    ] = None,
) -> None:
    """Run an experiment: one of the papers' claims or a limit of our own, checked and plotted.

    Writes NAME.md, NAME.json, NAME.svg and NAME.png. Ends with 0 if all its bars hold, with 3 if one does not.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without ≥ gets a ?, not a traceback
    if name is None or listing:
        _list(as_json=as_json)
        return
    result = _run(name, quick=quick, seed=seed, as_json=as_json, out=out)
    if not result.held:
        raise typer.Exit(BAR_NOT_HELD)


def _run(name: str, *, quick: bool, seed: int, as_json: bool, out: Path | None) -> "Result":
    from lycosa.lab import registry, report
    from lycosa.lab.progress import view_on
    from lycosa.lab.result import perform

    experiment = registry.find(name)
    folder = out if out is not None or quick else report.usual_folder(Path.cwd())
    if folder is not None:
        report.check_can_publish(folder)
    result = perform(experiment, seed=seed, quick=quick, view=view_on(sys.stderr))
    try:
        written = report.publish(result, folder) if folder is not None else []
    finally:  # what was found is shown even if the disk refuses it
        _show_json(result) if as_json else _show(result)
    note = f"written: {', '.join(map(str, written))}" if written else "a quick run: nothing written"
    print(note, file=sys.stderr)
    return result


def _list(*, as_json: bool) -> None:
    import msgspec

    from lycosa.errors import LycosaError
    from lycosa.lab.registry import catalogue

    rows = []
    for name, found in catalogue():
        if isinstance(found, LycosaError):
            rows.append({"name": name, "problem": str(found)})
        else:
            rows.append({"name": name, "summary": found.summary, "claim_id": found.claim_id, "claim": found.claim})
    if as_json:
        _put_json(msgspec.json.encode({"experiments": rows}))
        return
    for row in rows:
        lines = [row["problem"]] if "problem" in row else [row["summary"], f"{row['claim_id']}: {row['claim']}"]
        print(row["name"], *lines, sep="\n    ")
    if not rows:
        print("no experiments are installed", file=sys.stderr)


def _show_json(result: "Result") -> None:
    from lycosa.lab.result import as_json

    _put_json(as_json(result))


def _put_json(text: bytes) -> None:
    """JSON is UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def _show(result: "Result") -> None:
    """The result for a reader: claim, table, figures, and each bar with its mark."""
    from rich.console import Console

    from lycosa.lab.experiment import Table

    plain = Console(highlight=False, markup=False, emoji=False)
    console = plain if plain.is_terminal else Console(highlight=False, markup=False, emoji=False, width=PIPE_COLUMNS)
    experiment, findings = result.experiment, result.findings
    kind = ", quick" if result.quick else ""
    console.print(f"{experiment.name}: {experiment.summary} (seed {result.seed}{kind}, {result.seconds:.1f} s)")
    console.print(f"{experiment.claim_id}: {experiment.claim}\n")
    _print_table(console, findings.table)
    figures = tuple((name, figure.value, figure.unit) for name, figure in findings.figures.items())
    _print_table(console, Table(("figure", "value", "unit"), figures))
    for remark in findings.remarks:
        console.print(remark)
    for verdict in result.verdicts:
        _print_verdict(console, verdict)


def _print_table(console: "Console", table: "Table") -> None:
    from rich import box
    from rich.table import Table as Grid

    from lycosa.lab.wording import cell

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(table.columns):
        is_text = any(isinstance(row[i], str) for row in table.rows)
        grid.add_column(column, justify="left" if is_text else "right")
    for row in table.rows:
        grid.add_row(*map(cell, row))
    console.print(grid)


def _print_verdict(console: "Console", verdict: "Verdict") -> None:
    from rich.text import Text

    good, bad = ("ok", "FAIL") if console.options.ascii_only else ("✓", "✗")
    mark, colour = (good, "green") if verdict.held else (bad, "red")
    sentence = f" {verdict.bar.name}: {verdict.bar.figure} {verdict.measured}, wanted {verdict.wanted}"
    console.print(Text.assemble((mark, f"bold {colour}"), sentence))
