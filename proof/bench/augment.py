"""`lycosa augment` over Debian's python3.11-doc: documents a second, a second run, and whether every table is right.

    python -m proof.bench.augment

The command runs on a copy of the package's HTML, three times from nothing, then once more; then every table of links is
read back and compared with what the crawler's own analyser finds in that document: address, element, words and rel.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

from lycosa.tables import formats as tol
from lycosa.web.page import analyse_page
from proof.bench.ground import package, say
from proof.bench.measure import Ran, Verdict, load, lycosa, run

PACKAGE = "python3.11-doc"
RUNS = 3
LEAST_PER_S = 300


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
        found = tol.parse_tol(path.with_suffix(".tol").read_bytes())
        page = analyse_page(path.read_bytes(), url=f"http://site.example/{path.name}", content_type="text/html")
        wrong += (
            not isinstance(found, tol.Tol) or found.links != page.links or found.base_href != (page.base_href or "")
        )
    return wrong


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as name:
        root = Path(name)
        documents = lay_out(root)
        runs: list[Ran] = []
        for _ in range(RUNS):
            without_tables(root)
            runs.append(run(lycosa("augment", root, "--json")))
        before = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
        again = run(lycosa("augment", root, "--json"))
        after = {path: path.stat().st_mtime_ns for path in root.rglob("*") if path.is_file()}
        say("comparing every table with the analyser")
        wrong = wrong_tables(documents)
        check = run(lycosa("augment", root, "--check", "--json"))
    report(documents, runs, again, json.loads(check.out), touched=before != after, wrong=wrong)


def report(
    documents: list[Path], runs: list[Ran], again: Ran, check: dict[str, list[str]], *, touched: bool, wrong: int
) -> None:
    done = json.loads(runs[0].out)
    count, best = len(documents), min(ran.wall_s for ran in runs)
    cpu_s = min(ran.cpu_s for ran in runs)
    print(f"{count:,} documents of {done['document_bytes'] / count / 1000:.0f} KB on average; {load()}")
    print(f"tables of links are {100 * done['table_bytes'] / done['document_bytes']:.0f} % of their documents' size")
    print(f"from nothing: {count / best:,.0f} documents/s, {cpu_s / count * 1e6:,.0f} µs of CPU each, start included")
    print(f"again: {count / again.wall_s:,.0f} documents/s, {again.cpu_s / count * 1e6:,.0f} µs of CPU each")
    verdict = Verdict()
    verdict.judge(f"{count / best:,.0f} documents/s, at least {LEAST_PER_S}", count / best >= LEAST_PER_S)
    verdict.judge("every document has a table", done["written"] == count)
    verdict.judge("a second run touches nothing", not touched and json.loads(again.out)["written"] == 0)
    verdict.judge(f"tables that differ from the analyser: {wrong}", wrong == 0)
    verdict.judge("the check finds nothing stale", not check["stale"])
    verdict.exit()


if __name__ == "__main__":
    main()
