"""Times of day in the sentences of a crawl: where it runs, they are local; on pages they are in UTC."""

import time
from collections.abc import Iterator

import pytest

from lycosa.serve.times import in_utc
from lycosa.wording import clock


@pytest.fixture
def _in_kolkata(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Asia/Kolkata")  # five and a half hours before UTC
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_in_kolkata")
def test_times_of_a_sentence_are_given_in_utc() -> None:
    now = time.time()
    for at in (now + 60, now + 90_000):
        said = f"waiting until {clock(at, now_unix=now)}: 3 hosts after 503"
        told = time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(at))
        assert in_utc(said) == f"waiting until {told}: 3 hosts after 503"


@pytest.mark.parametrize(
    "said", ["asked 2026-01-31 12:00:00Z: status 200", "until 99:99:99", "gone since 2026-01-31 12:00:00Z", "at 12:00"]
)
def test_what_is_no_local_time_stays_as_it_is(said: str) -> None:
    assert in_utc(said) == said
