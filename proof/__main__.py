"""The command: `make lab` runs the experiments of the papers, `make bench` lists the benchmarks; NAME=… runs one.

Standard output carries the answer (a readable one, or one JSON object), standard error everything else.
"""

import argparse
import io
import signal
import sys
from pathlib import Path

import msgspec

from lycosa.errors import LycosaError
from proof import pages, registry, report
from proof.experiment import DEFAULT_SEED, Experiment, ExperimentResult, as_json, extent_of, perform
from proof.progress import ProgressSteps

BAR_NOT_HELD = 3
INTERRUPTED, TERMINATED = 130, 143

HELP = """make lab                       run all experiments of the papers, into docs/results/ and docs/papers.md
make lab NAME=tol              run one
make lab NAME=list             list them
make bench                     list the benchmarks
make bench NAME=site           run one
  ARGS=--quick                 a small run to see that it works: printed, not written
  ARGS=--json                  one JSON object on standard output, everything else on standard error
  ARGS='--seed 7 --out DIR'    another seed; results to DIR
  ARGS='--runs 5 --only a,b'   what is measured, so often; only these parts
  ARGS='--site rust-doc'       another site, for benchmarks that serve a real one

Exit codes: 0 all bars hold, 2 bad usage, 3 a bar does not hold, 4 results could not be written, 130 interrupted,
143 terminated."""


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ≥ gets a ?, not a traceback
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))  # servers and folders go with the blocks they are of
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
    parser.add_argument("name", nargs="?", help="what to run; `all` runs every one, `list` or none lists them")
    parser.add_argument("--quick", action="store_true", help="a small run with rough numbers")
    parser.add_argument("--seed", type=int, default=DEFAULT_SEED, help="where all randomness comes from")
    parser.add_argument("--runs", type=int, help="how often to repeat what is measured")
    parser.add_argument("--minutes", type=float, help="how long each part of a campaign takes (fuzz, soak)")
    parser.add_argument("--only", default="", help="the parts to run, with commas between them")
    parser.add_argument("--site", default="", help="the real site to serve, by its package (peers, tls and others)")
    parser.add_argument("--json", action="store_true", help="one JSON object on standard output")
    parser.add_argument("--out", type=Path, help="folder for the results")
    return parser.parse_args()


def _command(options: argparse.Namespace) -> int:
    if options.name in (None, "list"):
        _list(options.kind, is_json=options.json)
        return 0
    names = registry.names(options.kind) if options.name == "all" else [options.name]
    results = [_run(options, registry.find(options.kind, name)) for name in names]
    if report.usual_folder(Path.cwd()) == pages.RESULTS:
        pages.write()
    return 0 if all(result.held for result in results) else BAR_NOT_HELD


def _run(options: argparse.Namespace, experiment: Experiment) -> ExperimentResult:
    is_published = options.kind == "lab" and not options.quick
    folder = options.out or (report.usual_folder(Path.cwd()) if is_published else None)
    if folder is not None:
        report.check_can_publish(folder)
    seed, quick, kind = options.seed, options.quick, options.kind
    former = report.published(folder, experiment.name, kind=kind, seed=seed, quick=quick) if folder else None
    only = [name.strip() for name in options.only.split(",") if name.strip()]
    if former is not None and not quick:
        extent = extent_of(experiment, runs=options.runs, minutes=options.minutes, only=only)
        if extent.is_less_than(former.extent(experiment)):
            print(
                f"{folder} keeps what {former.command} found, which measured more: what is found now is only shown, "
                "unless another folder is named with --out",
                file=sys.stderr,
            )
            folder = former = None
    result = perform(
        experiment,
        view=ProgressSteps(sys.stderr),
        seed=seed,
        quick=quick,
        runs=options.runs,
        only=only,
        kind=kind,
        minutes=options.minutes,
        site=options.site,
        former=former.tables if former is not None else (),
    )
    try:
        written = report.publish(result, folder) if folder is not None else []
    finally:  # what was found is shown even if the disk refuses it
        if options.json:
            _put_json(as_json(result))
        else:
            report.show(result)
    result.close()
    print(f"written: {', '.join(map(str, written))}" if written else "nothing written", file=sys.stderr)
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
    if kind == "bench":
        print(f"\nscenarios: {', '.join(f'{name} ({bench})' for name, bench in registry.SCENARIOS.items())}")


def _put_json(text: bytes) -> None:
    """JSON is UTF-8 whatever the terminal speaks."""
    sys.stdout.flush()
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
