"""The command: `make lab` lists the experiments of the papers, `make bench` the benchmarks; NAME=… runs one.

Standard output carries the answer (a readable one, or one JSON object), standard error everything else.
"""

import argparse
import io
import sys
from pathlib import Path

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from lycosa.errors import LycosaError
from proof import registry, report
from proof.experiment import Experiment, Table
from proof.progress import view_on
from proof.result import DEFAULT_SEED, Result, Verdict, as_json, perform
from proof.wording import cell

BAR_NOT_HELD = 3
INTERRUPTED = 130
PIPE_COLUMNS = 200  # a table in a file or pipe is cut by nobody's window

HELP = """make lab                       list the experiments of the papers
make lab NAME=tol              run one; results go to docs/results/
make lab NAME=all              run all of them, one after the other
make bench NAME=site           run a benchmark
  ARGS=--quick                 a small run to see that it works: printed, not written
  ARGS=--json                  one JSON object on standard output, everything else on standard error
  ARGS='--seed 7 --out DIR'    another seed; results to DIR

Exit codes: 0 all bars hold, 2 bad usage, 3 a bar does not hold, 4 results could not be written, 130 interrupted."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ≥ gets a ?, not a traceback
    try:
        sys.exit(_command(_arguments()))
    except LycosaError as error:
        print(f"proof: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="proof", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=registry.KINDS)
    parser.add_argument("name", nargs="?", help="what to run; without one they are listed, `all` runs every one")
    parser.add_argument("--quick", action="store_true", help="a small run with rough numbers")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="where all randomness comes from")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--out", type=Path, help="folder for the results")
    return parser.parse_args()


def _command(options: argparse.Namespace) -> int:
    if options.name is None:
        _list(options.kind, is_json=options.json)
        return 0
    names = registry.names(options.kind) if options.name == "all" else [options.name]
    results = [_run(options, registry.find(options.kind, name)) for name in names]
    return 0 if all(result.held for result in results) else BAR_NOT_HELD


def _run(options: argparse.Namespace, experiment: Experiment) -> Result:
    folder = options.out if options.out is not None or options.quick else report.usual_folder(Path.cwd())
    if folder is not None:
        report.check_can_publish(folder)
    result = perform(experiment, seed=options.seed, quick=options.quick, view=view_on(sys.stderr))
    try:
        written = report.publish(result, folder) if folder is not None else []
    finally:  # what was found is shown even if the disk refuses it
        if options.json:
            _put_json(as_json(result))
        else:
            _show(result)
    note = f"written: {', '.join(map(str, written))}" if written else "a quick run: nothing written"
    print(note, file=sys.stderr)
    return result


def _list(kind: str, *, is_json: bool) -> None:
    if is_json:
        found = registry.catalogue(kind)
        rows = [{"name": e.name, "summary": e.summary, "claim_id": e.claim_id, "claim": e.claim} for e in found]
        _put_json(msgspec.json.encode({"experiments": rows}))
        return
    names = registry.names(kind)
    for name in names:
        print(f"{name:<{max(map(len, names))}}  {registry.find(kind, name).summary}")


def _put_json(text: bytes) -> None:
    """JSON is UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def _show(result: Result) -> None:
    """The result for a reader: claim, table, figures, and each bar with its mark."""
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


def _print_table(console: Console, table: Table) -> None:
    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for i, column in enumerate(table.columns):
        is_text = any(isinstance(row[i], str) for row in table.rows)
        grid.add_column(column, justify="left" if is_text else "right")
    for row in table.rows:
        grid.add_row(*map(cell, row))
    console.print(grid)


def _print_verdict(console: Console, verdict: Verdict) -> None:
    good, bad = ("ok", "FAIL") if console.options.ascii_only else ("✓", "✗")
    mark, colour = (good, "green") if verdict.held else (bad, "red")
    sentence = f" {verdict.bar.name}: {verdict.bar.figure} {verdict.measured}, wanted {verdict.wanted}"
    console.print(Text.assemble((mark, f"bold {colour}"), sentence))


if __name__ == "__main__":
    main()
