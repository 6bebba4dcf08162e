"""The campaign of cluster faults goes on where it was interrupted. The faults themselves are tried in tests/cluster."""

import io
from pathlib import Path

import pytest

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
    assert list(FOLDER.iterdir()) == []
