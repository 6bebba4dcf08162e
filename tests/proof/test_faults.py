"""The campaign of cluster faults goes on where it was interrupted. The faults themselves are tried in tests/cluster."""

import io
import sys
from pathlib import Path

import pytest

from lycosa.errors import StoreError
from proof import report
from proof.__main__ import main
from proof.bench import faults
from proof.bench.faults import FaultedCrawl
from proof.experiment import perform
from proof.ground.ledger import FOLDER
from proof.progress import ProgressSteps


def crawl(fault: str, missing: int = 0) -> FaultedCrawl:
    return FaultedCrawl(fault, code=0, missing=missing, strange=0, broken=0, again=0, again_most=0, takeover_s=None)


def test_interrupted_campaign_goes_on_and_remembers_what_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # where its ledger goes
    tried: list[str] = []

    def trial(fault: str, *_: object) -> FaultedCrawl:
        tried.append(fault)
        if len(tried) == 4:
            raise KeyboardInterrupt
        return crawl(fault, missing=int(len(tried) == 1))

    monkeypatch.setattr(faults, "trial", trial)
    words = {"only": ["agent", "node"], "runs": 2, "view": ProgressSteps(io.StringIO())}
    with pytest.raises(KeyboardInterrupt):
        perform(faults.EXPERIMENT, **words)  # type: ignore[arg-type]
    result = perform(faults.EXPERIMENT, **words)  # type: ignore[arg-type]
    assert tried == ["agent", "agent", "node", "node", "node"]
    assert {verdict.bar.name for verdict in result.verdicts if verdict.held} == {"node"}
    result.close()
    assert list(FOLDER.iterdir()) == []


def test_campaign_whose_results_cannot_be_written_is_not_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tried: list[str] = []

    def trial(fault: str, *_: object) -> FaultedCrawl:
        tried.append(fault)
        return crawl(fault)

    def refuse(*_: object) -> None:
        raise StoreError("results could not be written: disk full")

    def ends() -> object:
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(faults, "trial", trial)
    monkeypatch.setattr(
        sys, "argv", ["proof", "bench", "faults", "--only", "agent", "--runs", "2", "--out", str(tmp_path / "kept")]
    )
    with monkeypatch.context() as full_disk:
        full_disk.setattr(report, "publish", refuse)
        assert ends() == 4
    assert "disk full" in capsys.readouterr().err
    assert ends() == 0
    assert tried == ["agent", "agent"]
    assert (tmp_path / "kept" / "faults.json").is_file()
    assert list(FOLDER.iterdir()) == []
