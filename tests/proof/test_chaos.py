"""The campaign of kills: a short one holds, and the judge from outside sees what it is there to see."""

import gzip
import io
from pathlib import Path

import pytest

from lycosa.frontier.rows import UrlRow, UrlState
from lycosa.records import Family
from lycosa.simweb import LoggedRequest
from lycosa.store import Batch, CollectionStore
from lycosa.store.warc_file import WarcWriter
from lycosa.store.warc_read import intact_length
from proof.bench import chaos
from proof.bench.chaos import Acknowledged, Kill, RoundResult, damaged_records, unexplained_refetches
from proof.experiment import perform
from proof.ground import mortal
from proof.progress import ProgressSteps
from tests.crawl.small_site import FIRST, crawl_site, links

SITE = {FIRST: f"<title>Home</title>{links('a')}", f"{FIRST}a": "<title>A</title>"}


@pytest.mark.slow
def test_short_campaign_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where its ledger goes
    monkeypatch.setattr(chaos, "QUICK_PAGES", 300)
    words = {"only": ["random", "points", "recovery"], "view": ProgressSteps(io.StringIO())}
    result = perform(chaos.EXPERIMENT, seed=3, quick=True, runs=5, **words)  # type: ignore[arg-type]
    assert result.held, result.verdicts
    assert result.findings.figures["kills of a quick run"].value >= 5


@pytest.mark.parametrize(("kills", "is_enough"), [(999, False), (1_000, True)])
def test_campaign_of_fewer_kills_is_not_long_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int, is_enough: bool
) -> None:
    def round_of(*_: object) -> RoundResult:
        return RoundResult({"random": kills})

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(chaos, "round_of", round_of)
    result = perform(chaos.EXPERIMENT, only=["random"], runs=kills, view=ProgressSteps(io.StringIO()))
    assert [verdict.held for verdict in result.verdicts if verdict.bar.name == "long enough"] == [is_enough]


class InterruptedProcess(Exception):
    """In place of SIGKILL."""


@pytest.mark.parametrize("count", [1, 3, 4])
@pytest.mark.parametrize("nth", [1, 2])
def test_torn_write_ends_within_a_gzip_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nth: int, count: int
) -> None:
    def die() -> None:
        raise InterruptedProcess

    monkeypatch.setattr(WarcWriter, "_write", WarcWriter._write)  # so that it is there again after the test
    monkeypatch.setattr(mortal, "die", die)
    mortal.arm("warc-torn", nth)
    writer = WarcWriter(tmp_path, info={})
    with pytest.raises(InterruptedProcess):
        writer.append([gzip.compress(bytes(1_000))] * count)
    whole, size = intact_length(writer.path(1)), writer.path(1).stat().st_size
    assert bool(whole) == (nth > 1)  # the first write is that of the file's own record
    assert size > whole


def entry(path: str, start: float, end: float) -> LoggedRequest:
    return LoggedRequest(start=start, end=end, host="h", address="127.1.0.1", path=path, status=200, bytes=1, agent="")


def test_refetch_is_explained_by_a_kill_within_a_second_of_its_end() -> None:
    got = [entry("/early", 0.0, 1.0), entry("/early", 9.0, 9.1), entry("/late", 4.0, 4.5), entry("/late", 9.2, 9.3)]
    assert unexplained_refetches(got, [Kill(5.0, 5.1)]) == ["h/early"]


def test_refetch_is_not_explained_by_a_kill_before_the_first_fetch() -> None:
    got = [entry("/later", 6.0, 6.5), entry("/later", 9.2, 9.3), entry("/sent", 5.05, 5.2), entry("/sent", 9.4, 9.5)]
    assert unexplained_refetches(got, [Kill(5.0, 5.1)]) == ["h/later"]


def test_archive_that_changes_behind_a_kill_is_seen(tmp_path: Path) -> None:
    crawl_site(tmp_path, SITE.get)
    acknowledged = Acknowledged(tmp_path)
    acknowledged.look()
    acknowledged.look()
    assert (acknowledged.damaged, damaged_records(tmp_path)) == ([], [])
    (warc,) = (tmp_path / "warc").iterdir()
    with warc.open("r+b") as file:
        file.seek(warc.stat().st_size // 2)
        file.write(b"\xff\x00\xff\x00")
    acknowledged.look()
    assert acknowledged.damaged
    assert damaged_records(tmp_path)


def test_url_that_is_open_again_is_seen(tmp_path: Path) -> None:
    crawl_site(tmp_path, SITE.get)
    acknowledged = Acknowledged(tmp_path)
    acknowledged.look()
    with CollectionStore.open(tmp_path) as collection:
        key = next(k for k, r in collection.state.walk(Family.URL) if UrlRow.unpack(r).state is UrlState.DONE)
        batch = Batch()
        batch.delete(Family.URL, key)
        collection.commit(batch)
    acknowledged.look()
    assert acknowledged.undone == [repr(key)]
