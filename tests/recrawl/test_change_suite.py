"""The verdict suite over the simulated web, a smaller one of what `make lab NAME=change` runs."""

import io

import pytest

from lycosa.recrawl.change.verdict import ChangeKind
from lycosa.recrawl.versions import ChangedImage, ChangeRow
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.pages import DAY_S, PageState
from proof.experiment import perform
from proof.ground.memory_crawl import wall_s
from proof.lab.change import EXPERIMENT, Tally, follow
from proof.progress import ProgressSteps


@pytest.mark.slow
def test_verdicts_on_a_thousand_simulated_pairs_miss_nothing_and_cry_no_wolf() -> None:
    result = perform(EXPERIMENT, seed=3, quick=True, view=ProgressSteps(io.StringIO()))
    found = {name: figure.value for name, figure in result.findings.figures.items()}
    assert found["changes missed"] == 0
    assert found["false alarms"] <= 0.5
    assert min(found["volatile parts recognised, marked"], found["volatile parts recognised, not marked"]) >= 95
    assert found["changes missed by the codes"] > 0


@pytest.mark.parametrize(("seen_at", "missed"), [(2, 0), (None, 2)])
def test_picture_that_is_seen_tells_all_its_changes_so_far_and_one_that_is_not_is_missed(
    seen_at: int | None, missed: int
) -> None:
    """It changes with the text, where nobody looks at pictures, and once more before the next visit."""
    web, days = SimWeb(SimSettings(seed=1, hosts=1, pages=4)), [0.0, 1.0, 2.0, 3.0]
    states = [PageState(), PageState(text=1, image=1), PageState(text=1, image=2), PageState(text=1, image=2)]
    web.state = lambda place, at_s: states[round(at_s / DAY_S)]  # type: ignore[method-assign]
    told: list[list[ChangeRow]] = [[], [ChangeRow(ChangeKind.TEXT)], [], []]
    if seen_at is not None:
        picture = ChangedImage(url=web.url(PagePlace(0, 0, 1)), at_s=wall_s(days[seen_at]))
        told[seen_at] = [ChangeRow(ChangeKind.IMAGE, pictures=(picture,))]
    tally = Tally()
    follow(web, PagePlace(0, 0, 1), days, told, tally)
    assert tally.missed(tally.verdicts) == missed
