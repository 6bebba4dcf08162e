"""docs/reliability.md is what the results say, and campaigns of several seeds are added up."""

from proof import reliability


def test_page_is_what_its_results_say() -> None:
    assert reliability.PAGE.read_text() == reliability.page(), "run: .venv/bin/python -m proof.reliability"


def test_kills_of_several_campaigns_are_added_up() -> None:
    def campaign(seed: int, kills: int, lost: int) -> dict[str, object]:
        figures = {"kills": {"value": kills, "unit": ""}, "lost URLs": {"value": lost, "unit": ""}}
        recovery = {"recovery": {"value": 0.5, "unit": "s"}}
        return {"seed": seed, "tables": [{"rows": [["random", kills]]}], "figures": figures | recovery}

    lines = reliability.kills_together([campaign(1, 7, 0), campaign(2, 5, 1)]).splitlines()
    assert "## Kills of all campaigns, seeds 1, 2" in lines
    assert {"| random | 12 |", "| kills | 12 |", "| lost URLs | 1 |"} <= set(lines)
    assert not any("recovery" in line for line in lines)
