"""docs/reliability.md, made from the results of the campaigns: no figure in it is typed by hand.

`make chaos`, `make fuzz` and `make soak` put their results into docs/results, and `proof.pages` writes the page.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from proof import registry

RESULTS = Path(__file__).parents[1] / "docs" / "results"
CAMPAIGNS = ("chaos", "machine", "faults", "fuzz", "hostile-web", "soak")
HEAD = """# Reliability

Nothing on the web may crash a crawl, hang it, fill it or lead it astray, and nothing that the machine does may cost
it what it has acknowledged. These
campaigns try. Each is judged from outside the process, by the truth of the simulated web and by the log of its
server, and has a short form that
runs with the tests. The figures below are what the commands printed; the commands write them here.

| campaign | command | short form |
|---|---|---|
| kills: at random moments, at every write point, during recovery | `make chaos` | `tests/proof/test_chaos.py` |
| faults of the machine: disks, limits, servers, clocks | `make bench NAME=machine` | `tests/proof/test_machine.py` |
| faults of a cluster: killed, frozen, cut off, out of disk | `make bench NAME=faults` | `tests/cluster` |
| random input for all that reads foreign bytes | `make fuzz`, `ARGS='--minutes 1'` | `tests/proof/test_fuzz.py` |
| [hosts that mean harm](hostile.md), one and all | `make bench NAME=hostile-web` | `tests/simweb/test_hostile.py` |
| an hour on a web of which nearly a third is bad | `make soak`, `ARGS='--minutes 5'` | `tests/proof/test_soak.py` |

With another seed (`ARGS='--seed 2'`) a campaign has results of its own; the kills of all seeds are added up: a
campaign, or all of them together, should have a thousand. A run that
is shorter than what stands here is only shown; it is written with `--out` to another folder.
`make chaos`, `make soak` and `make bench NAME=faults` go on where they were interrupted (`.proof/`) if the code is the
same; the first and the last end there with fewer `--runs`. `make fuzz` goes on from its results, and after a `kill -9`
from what it had done: the minutes of sessions that were interrupted add up, whatever the code was, since no input is
tried twice.
Those of a soak do, too, and so does what its processes have grown by, so that starting anew hides no leak; a process of
which there are fewer than eight samples is too short to be judged, and its minutes do not count.

A kill may cost a second: a URL is fetched again only if its request had not ended, or ended less than a second before
the kill. When the disk is full a
crawl pauses, says so and tries again every second; after ten tries it ends with exit code 4, and the same command
goes on when there is room.

Exit codes: 0 done, 1 nothing could be fetched, 2 wrong usage, 3 a limit with `--fail-on-limit`, 4 storage,
130 interrupted (Ctrl-C, SIGTERM, a closed terminal); `serve` and `replay` are done when they are told to end.
"""


def section(result: dict[str, Any]) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in result["settings"].items())
    load, cores = result["environment"]["load"], result["environment"]["cores"]
    day = result["environment"].get("day", "")  # earlier results do not say
    took = f"the last run of the command took {result['seconds']:.0f} s, load {load:.1f} on {cores} cores"
    under = f"{day}; {took}" if day else took
    lines = [
        f"## {result['name']}, seed {result['seed']}",
        "",
        f"{result['summary'][:1].upper()}{result['summary'][1:]} ({settings}; {under}).",
        "",
    ]
    for table in result["tables"]:
        lines += _table(table["columns"], table["rows"])
    figures = [(name, f"{each['value']:.6g} {each['unit']}".strip()) for name, each in result["figures"].items()]
    lines += _table(["figure", "value"], figures)
    rows = [(bar["name"], _verdict(bar)) for bar in result["bars"]]
    return "\n".join(lines + _table(["bar", "held"], rows))


def kills_together(results: list[dict[str, Any]]) -> str:
    """What the campaigns of kills with several seeds come to."""
    points, figures = Counter[str](), Counter[str]()
    for result in results:
        points.update({point: count for table in result["tables"] for point, count in table["rows"]})
        figures.update({name: each["value"] for name, each in result["figures"].items() if not each["unit"]})
    seeds = ", ".join(str(result["seed"]) for result in results)
    lines = [f"## Kills of all campaigns, seeds {seeds}", ""]
    lines += _table(["killed at", "kills"], points.most_common())
    lines += _table(["figure", "value"], list(figures.items()))
    bars = [bar for bar in registry.find("bench", "chaos").bars if bar.figure == "kills"]
    rows = [(f"{bar.name}, all together", "yes" if bar.holds(figures[bar.figure]) else "**no**") for bar in bars]
    return "\n".join(lines + _table(["bar", "held"], rows))


def _verdict(bar: dict[str, Any]) -> str:
    why = bar.get("left_out")
    return "yes" if bar["held"] else f"not measured: {why}" if why else "**no**"


def _table(columns: list[str], rows: list[Any]) -> list[str]:
    cells = [[" ".join(str(cell).split()).replace("|", "\\|") for cell in row] for row in [columns, *rows]]
    lines = [f"| {' | '.join(row)} |" for row in cells]
    return [lines[0], "|" + "---|" * len(columns), *lines[1:], ""]


def results_of(name: str) -> list[dict[str, Any]]:
    """What a campaign found, seed by seed; quick runs show only that it works."""
    paths = [RESULTS / f"{name}.json", *RESULTS.glob(f"{name}.seed-*.json")]
    found = [json.loads(path.read_bytes()) for path in paths if path.is_file()]
    return sorted((each for each in found if not each["quick"]), key=lambda each: int(each["seed"]))


def page() -> str:
    found = {name: results_of(name) for name in CAMPAIGNS}
    sections = [section(result) for results in found.values() for result in results]
    return "\n".join([HEAD, kills_together(found["chaos"]), *sections])
