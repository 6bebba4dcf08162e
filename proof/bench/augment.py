"""`lycosa augment` over Debian's python3.11-doc: documents a second, a second run, and whether every table is right.

The command runs on a copy of the package's HTML, three times from nothing, then once more; then every table of links is
read back and compared with what the crawler's own analyser finds in that document: address, element, words and rel.
"""

import json
import shutil
from pathlib import Path

from lycosa.tables import Tol, parse_tol
from lycosa.web import analyse_page
from proof import Bar, Experiment, Run
from proof.ground.commands import lycosa, run_command, scratch
from proof.ground.peers import package

PACKAGE = "python3.11-doc"


def lay_out(root: Path) -> list[Path]:
    """A copy of the package's HTML documents, links followed."""
    source = package(PACKAGE) / "usr" / "share" / "doc"
    for path in sorted(source.rglob("*.html")):
        if path.is_file():
            target = root / path.relative_to(source)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
    return sorted(root.rglob("*.html"))


def without_tables(root: Path) -> None:
    for path in root.rglob("*.tol"):
        path.unlink()


def wrong_tables(documents: list[Path]) -> int:
    wrong = 0
    for path in documents:
        found = parse_tol(path.with_suffix(".tol").read_bytes())
        page = analyse_page(path.read_bytes(), url=f"http://site.example/{path.name}", content_type="text/html")
        wrong += not isinstance(found, Tol) or found.links != page.links or found.base_href != (page.base_href or "")
    return wrong


def measure(run: Run) -> None:
    with scratch() as root:
        documents = lay_out(root)
        usages = []
        for _ in range(run.runs):
            without_tables(root)
            usages.append(run_command(lycosa("augment", root, "--json")))
        before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
        again = run_command(lycosa("augment", root, "--json"))
        after = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
        run.say("comparing every table with the analyser")
        wrong = wrong_tables(documents)
        stale = json.loads(run_command(lycosa("augment", root, "--check", "--json")).out)["stale"]
    done, count = json.loads(usages[0].out), len(documents)
    run.setting("documents", count)
    run.setting("KB a document", round(done["document_bytes"] / count / 1000))
    run.figure("from nothing", count / min(usage.wall_s for usage in usages), "documents/s")
    run.figure("CPU a document, start included", min(usage.cpu_s for usage in usages) / count * 1e6, "µs")
    run.figure("a second run", count / again.wall_s, "documents/s")
    run.figure("tables beside their documents", 100 * done["table_bytes"] / done["document_bytes"], "%")
    run.figure("documents without a table", count - done["written"])
    touched = sum(before[path] != after.get(path) for path in before) + len(after.keys() - before.keys())
    run.figure("files that a second run touched", touched + json.loads(again.out)["written"])
    run.figure("tables that differ from the analyser", wrong)
    run.figure("tables that the check calls stale", len(stale))


EXPERIMENT = Experiment(
    name="augment",
    summary="lycosa augment over 530 documents: how fast, and is every table right",
    run=measure,
    runs=3,
    bars=(
        Bar("fast", "from nothing", ">=", 300),
        Bar("complete", "documents without a table", "within", (0, 0)),
        Bar("a second run touches nothing", "files that a second run touched", "<=", 0),
        Bar("every table is right", "tables that differ from the analyser", "<=", 0),
        Bar("the check finds nothing stale", "tables that the check calls stale", "<=", 0),
    ),
)
