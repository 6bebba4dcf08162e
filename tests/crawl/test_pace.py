"""What sets the pace of several shards, told in one line; how much of the limits is used up."""

import pytest

from lycosa.crawl import CrawlStats, LimitUse, sum_of_shards
from lycosa.settings import CrawlSettings

POLITE = "{} hosts at one request a second each: this is as fast as politeness allows"
BUSY = "1.0 processor cores are busy: this is as fast as one process crawls on this machine"
PAUSED = "paused: it continues when it is resumed"


@pytest.mark.parametrize(
    ("paces", "said"),
    [
        ([POLITE.format(17), POLITE.format(8)], "2 of 2 shards: this is as fast as politeness allows"),
        (
            [POLITE.format(17), BUSY, POLITE.format(8), ""],
            "2 of 4 shards: this is as fast as politeness allows; "
            "1 of 4 shards: this is as fast as one process crawls on this machine",
        ),
        ([PAUSED, PAUSED], PAUSED),
        ([PAUSED, POLITE.format(8)], f"1 of 2 shards: {PAUSED}; 1 of 2 shards: this is as fast as politeness allows"),
        (["", ""], ""),
        ([], ""),
    ],
)
def test_pace_of_shards_says_how_many_of_them_are_held_by_what(paces: list[str], said: str) -> None:
    assert sum_of_shards([CrawlStats(queued=5, pace=pace) for pace in paces]).pace == said


def test_shard_with_nothing_to_do_has_no_say() -> None:
    idle = CrawlStats(pace="")
    assert sum_of_shards([idle, CrawlStats(queued=5, pace=BUSY)]).pace.startswith("1 of 1 shards: ")


@pytest.mark.parametrize(
    ("limits", "use"),
    [
        ({}, LimitUse(None, None)),
        ({"pages": 100}, LimitUse(0.4, 30.0)),  # 20 pages in 10 s, 60 are left
        ({"pages": 100, "time_s": 60.0}, LimitUse(0.75, 15.0)),
        ({"pages": 20}, LimitUse(1.0, 0.0)),
        ({"bytes": 4_000}, LimitUse(0.25, None)),
    ],
)
def test_nearest_limit_is_the_one_that_is_told(limits: dict[str, float], use: LimitUse) -> None:
    settings = CrawlSettings(**limits)  # type: ignore[arg-type]
    assert LimitUse.of(settings, pages=40, size_bytes=1_000, seconds=45.0, run_pages=20, run_s=10.0) == use
