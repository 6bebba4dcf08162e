"""The benchmarks beside other crawlers, with made-up crawls: what they report, and who is left out."""

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lycosa.errors import LycosaError, SettingsError
from proof.bench import peers, recrawl, tls
from proof.experiment import ExperimentResult, perform
from proof.ground.commands import CommandUsage
from proof.ground.peer_crawls import IN_PYTHON, OURS, PeerTurn
from proof.ground.servers import ServedPage
from proof.ground.sites import POSTGRESQL, SiteCrawl
from proof.progress import ProgressSteps

SECONDS = {OURS: 1.0, IN_PYTHON: 2.0, "Scrapy": 24.0, "spider": 0.5}


class NoServer:
    def served(self) -> list[ServedPage]:
        return []


@contextlib.contextmanager
def no_site(_run: Any, *, tls: bool = False) -> Iterator[tuple[Any, NoServer]]:
    yield POSTGRESQL, NoServer()


def made_up(name: str, _server: object, _site: object) -> PeerTurn:
    """Each crawler fetches a hundred pages; Lycosa guesses a folder, and Heritrix misses three pages."""
    if name not in SECONDS and name != "Heritrix":
        raise LycosaError("nobody sells it")
    paths = {f"/{n}.html" for n in range(97 if name == "Heritrix" else 100)} | (
        {"/guessed/"} if name == OURS else set()
    )
    seconds = SECONDS.get(name, 10.0)
    usage = CommandUsage(seconds + 1, cpu_s=seconds, peak_mb=90.0, out="")
    return PeerTurn(SiteCrawl(frozenset(paths), seconds, usage), disk_bytes=2_000_000)


@pytest.fixture
def result(monkeypatch: pytest.MonkeyPatch) -> ExperimentResult:
    monkeypatch.setattr(peers, "served_site", no_site)
    monkeypatch.setattr(peers, "take_turn", made_up)
    return perform(peers.EXPERIMENT, kind="bench", runs=2, view=ProgressSteps(io.StringIO()))


def test_peers_ratios_are_those_of_a_round_and_bars_judge_them(result: ExperimentResult) -> None:
    figures = {name: round(figure.value, 2) for name, figure in result.findings.figures.items()}
    assert figures["pages/s beside Scrapy"] == 24.24  # 101 pages in 1 s beside 100 in 24
    assert figures["pages/s in Python beside Scrapy"] == 12.0
    assert figures["CPU a page beside spider"] == 1.98
    held = {verdict.bar.name: verdict.held for verdict in result.verdicts}
    assert held["faster than Scrapy"] and held["without the page kernel faster than Scrapy"]
    assert not held["as lean as spider"]


def test_peers_folders_that_are_guessed_do_not_count_as_other_pages(result: ExperimentResult) -> None:
    assert result.findings.figures[peers.OTHER_PAGES].value == pytest.approx(100 * 3 / 101)
    assert "pages only by Lycosa 3, only by Heritrix 0" in result.findings.remarks
    assert not any("only by Scrapy" in remark for remark in result.findings.remarks)


def test_peers_one_that_cannot_be_had_is_left_out_with_its_reason(result: ExperimentResult) -> None:
    assert result.findings.tables[-1].columns == ("left out", "why")
    assert ("katana", "nobody sells it") in result.findings.tables[-1].rows
    (katana,) = [verdict for verdict in result.verdicts if verdict.bar.name == "faster than katana"]
    assert not katana.held and katana.left_out == "nobody sells it"
    assert [row[0] for row in result.findings.tables[0].rows] == [OURS, IN_PYTHON, "Scrapy", "Heritrix", "spider"]


def test_site_that_is_not_known_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"--site knows openjdk-17-doc, .*rust-doc, not rust-docs"):
        perform(peers.EXPERIMENT, kind="bench", site="rust-docs", view=ProgressSteps(io.StringIO()))


def test_tls_runs_the_same_crawls_over_https(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []

    @contextlib.contextmanager
    def site(run: Any, *, tls: bool = False) -> Iterator[tuple[Any, NoServer]]:
        asked.append(tls)
        yield POSTGRESQL, NoServer()

    monkeypatch.setattr(peers, "served_site", site)
    monkeypatch.setattr(peers, "take_turn", made_up)
    view = ProgressSteps(io.StringIO())
    result = perform(tls.EXPERIMENT, kind="bench", runs=1, only=["scrapy"], site="rust-doc", view=view)
    assert asked == [True]
    assert result.command == "make bench NAME=tls ARGS='--runs 1 --only Scrapy --site rust-doc'"


def test_recrawl_edit_leaves_the_original_alone(tmp_path: Path) -> None:
    original, copy = tmp_path / "original.html", tmp_path / "copy.html"
    original.write_bytes(b"<h1>Title</h1>text")
    copy.hardlink_to(original)
    recrawl.edit(copy)
    assert original.read_bytes() == b"<h1>Title</h1>text"
    assert copy.read_bytes() == b"<h1>Title</h1><p>This sentence was added since the last visit.</p>text"
