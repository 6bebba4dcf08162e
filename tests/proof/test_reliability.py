"""Campaigns of several seeds are added up on docs/reliability.md; that it is what the results say is in test_pages."""

import json
from pathlib import Path

import pytest

from proof import reliability


def test_kills_of_several_campaigns_are_added_up() -> None:
    def campaign(seed: int, kills: int, lost: int) -> dict[str, object]:
        figures = {"kills": {"value": kills, "unit": ""}, "lost URLs": {"value": lost, "unit": ""}}
        recovery = {"recovery": {"value": 0.5, "unit": "s"}}
        return {"seed": seed, "tables": [{"rows": [["random", kills]]}], "figures": figures | recovery}

    lines = reliability.kills_together([campaign(1, 7, 0), campaign(2, 5, 1)]).splitlines()
    assert "## Kills of all campaigns, seeds 1, 2" in lines
    assert {"| random | 12 |", "| kills | 12 |", "| lost URLs | 1 |"} <= set(lines)
    assert not any("recovery" in line for line in lines)
    assert lines[-1] == "| long enough, all together | **no** |"
    lines = reliability.kills_together([campaign(1, 700, 0), campaign(2, 300, 0)]).splitlines()
    assert lines[-1] == "| long enough, all together | yes |"


def test_campaigns_of_all_seeds_are_told_in_their_order_and_quick_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reliability, "RESULTS", tmp_path)
    for name, seed in (("chaos", 1), ("chaos.seed-10", 10), ("chaos.seed-2", 2), ("chaos.seed-3.quick", 3)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"seed": seed, "quick": name.endswith("quick")}))
    (tmp_path / "chaos.quick.json").write_text(json.dumps({"seed": 1, "quick": True}))
    assert [each["seed"] for each in reliability.results_of("chaos")] == [1, 2, 10]
