"""What the documentation takes out of docs/results is what is there."""

import json
from pathlib import Path

import pytest

from proof import pages, registry


@pytest.mark.parametrize("path", [path for path, _ in pages.made()], ids=lambda path: path.name)
def test_page_is_what_its_results_say(path: Path) -> None:
    assert path.read_text() == dict(pages.made())[path], "run: .venv/bin/python -m proof.pages"


def test_papers_name_figures_that_their_experiments_found() -> None:
    for experiment in registry.catalogue("lab"):
        result = pages.result_of(experiment.name)
        assert result is not None
        assert {claim.figure for claim in experiment.papers} <= result["figures"].keys(), experiment.name
        assert {claim.claim_id[0] for claim in experiment.papers} <= pages.PAPERS.keys()


def test_papers_page_a_new_figure_is_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = pages.result_of("tol")
    assert result is not None
    result["figures"]["less time with tables"]["value"] = 12.5
    (tmp_path / "tol.json").write_text(json.dumps(result))
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    assert "| 15.1 % | 12.5 % | `make lab NAME=tol` |" in pages.papers_page()
    assert "| not measured | `make lab NAME=tvi` |" in pages.papers_page()


def test_tables_between_marks_are_replaced_and_the_rest_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = {
        "columns": ["", "pages/s", "Lycosa ×", "CPU µs/page", "peak MB", "MB on disk"],
        "rows": [["Lycosa", 2000, "1.00", 400, 90, 21.5], ["Other", 70, "28.57 (27.01–30.20)", 14000, 300, 0]],
        "title": "",
    }
    work = {
        "columns": ["", "robots", "dedupe", "archive", "resume"],
        "rows": [["Lycosa", "yes", "URLs", "WARC", "yes"], ["Other", "yes", "URLs", "no", "no"]],
        "title": "",
    }
    (tmp_path / "race.json").write_text(json.dumps({"tables": [measured, work]}))
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    page = pages.with_tables("before\n<!-- from results: race:short -->\nold\n<!-- end -->\nafter\n")
    assert page.startswith("before\n<!-- from results: race:short -->\n|  | pages/s |")
    assert "| Lycosa | 2,000 | 1.00 | 400 | 90 | yes | WARC | yes |" in page
    assert "| Other | 70 | 28.57 | 14,000 | 300 | yes | no | no |" in page
    assert "old" not in page and page.endswith("<!-- end -->\nafter\n")
    assert "make bench NAME=none" in pages.with_tables("<!-- from results: none -->\n<!-- end -->\n")


def test_benchmarks_with_results_are_in_their_table_and_in_no_other() -> None:
    page = (pages.PROJECT / "docs" / "proof.md").read_text()
    by_hand = pages.MARKED.sub("", page)
    kept = [path.stem for path in pages.RESULTS.glob("*.json") if "." not in path.stem]
    benchmarks = [name for name in kept if name in registry.names("bench") and name not in registry.names("lab")]
    assert benchmarks
    for name in benchmarks:
        assert f"| `make bench NAME={name}" in page
        assert f"| `make bench NAME={name}`" not in by_hand, f"docs/results has {name}: its row is made"


def test_row_of_a_benchmark_tells_its_bars_and_which_were_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = json.loads((pages.RESULTS / "peers.json").read_bytes())
    for number, bar in enumerate(result["bars"]):
        bar |= {"name": f"bar {number}", "limit": 2, "relation": ">=", "value": 3, "unit": "s", "held": True}
    result["bars"] = result["bars"][:3]
    result["bars"][1] |= {"value": 1, "held": False}
    result["bars"][2] |= {"value": None, "held": False, "left_out": "--only"}
    (tmp_path / "peers.json").write_text(json.dumps(result))
    (tmp_path / "peers.quick.json").write_text(json.dumps(result))
    monkeypatch.setattr(pages, "RESULTS", tmp_path)
    made = pages.with_tables("<!-- from results: benchmarks -->\n<!-- end -->\n")
    assert made.count("make bench") == 1
    assert "| bar 0: 3 s (≥ 2 s); bar 1: 1 s (≥ 2 s); bar 2: not measured (≥ 2 s) | no: bar 1 |" in made
    result["bars"][1]["held"] = True
    (tmp_path / "peers.json").write_text(json.dumps(result))
    assert "| yes, where measured |" in pages.with_tables("<!-- from results: benchmarks -->\n<!-- end -->\n")
