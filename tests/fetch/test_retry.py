"""The retry table: what each outcome means, and how long to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.fetch.retry import (
    BY_FAILURE,
    JITTER_SHARE,
    MAX_RETRY_AFTER_S,
    MAX_WAIT_S,
    Verdict,
    decide,
    parse_retry_after,
)
from lycosa.records import Failure

NOW_UNIX_S = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT
STATUSES = st.integers(100, 599)


def test_retry_every_failure_has_its_line() -> None:
    assert set(BY_FAILURE) == set(Failure)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 451, 501])
def test_retry_refusal_is_final_at_once(status: int) -> None:
    assert decide(None, status, tried=1, random=0.5) == Verdict(None)


@pytest.mark.parametrize("status", [200, 204, 206, 301, 304, 308])
def test_retry_good_answer_has_nothing_to_make_good(status: int) -> None:
    assert decide(None, status, tried=1, random=0.5) is None


@pytest.mark.parametrize("status", [429, 503])
def test_retry_overload_holds_the_host_back_longer_each_time(status: int) -> None:
    verdicts = [decide(None, status, tried=tried, random=0.0) for tried in range(1, 6)]

    assert [verdict.wait_s for verdict in verdicts if verdict] == [30, 60, 120, 240, 480]
    assert all(verdict and verdict.waits_host and not verdict.gives_up_on_host for verdict in verdicts)
    assert decide(None, status, tried=6, random=0.0) == Verdict(None, waits_host=True)


def test_retry_after_lengthens_the_wait_and_never_shortens_it() -> None:
    longer = decide(None, 503, tried=1, random=0.0, retry_after_s=100)
    shorter = decide(None, 503, tried=1, random=0.0, retry_after_s=1)

    assert longer is not None
    assert longer.wait_s == 100
    assert shorter is not None
    assert shorter.wait_s == 30


@pytest.mark.parametrize("failure", [Failure.NO_SUCH_HOST, Failure.ADDRESS_REFUSED])
def test_retry_host_that_is_not_there_is_given_up_at_once(failure: Failure) -> None:
    assert decide(failure, 0, tried=1, random=0.0) == Verdict(None, waits_host=True, gives_up_on_host=True)


def test_retry_host_that_never_connects_is_given_up_after_its_tries() -> None:
    assert decide(Failure.CONNECT, 0, tried=1, random=0.0) == Verdict(5, waits_host=True)
    assert decide(Failure.CONNECT, 0, tried=2, random=0.0) == Verdict(20, waits_host=True)
    assert decide(Failure.CONNECT, 0, tried=3, random=0.0) == Verdict(None, waits_host=True, gives_up_on_host=True)


@pytest.mark.parametrize("failure", [Failure.CONNECT, Failure.CONNECT_TIMEOUT, Failure.DNS, Failure.TLS])
def test_decide_while_nobody_has_answered_tries_once_more_and_soon(failure: Failure) -> None:
    lost = Verdict(None, waits_host=True, gives_up_on_host=True)
    assert decide(failure, 0, tried=1, random=0.0, is_first=True) == Verdict(1.0, waits_host=True)
    assert decide(failure, 0, tried=2, random=0.0, is_first=True) == lost


def test_decide_while_nobody_has_answered_obeys_what_a_server_asks_for() -> None:
    assert decide(None, 503, tried=1, random=0.0, is_first=True) == decide(None, 503, tried=1, random=0.0)


def test_retry_cancelled_request_never_uses_up_a_url() -> None:
    assert decide(Failure.CANCELLED, 0, tried=1_000, random=0.0) == Verdict(0.0)


@given(
    failure=st.one_of(st.none(), st.sampled_from(Failure)),
    status=STATUSES,
    tried=st.integers(1, 50),
    random=st.floats(0, 1, exclude_max=True),
    retry_after_s=st.one_of(st.none(), st.floats(0, 1e9)),
)
def test_retry_wait_is_bounded_and_never_shrinks(
    failure: Failure | None, status: int, tried: int, random: float, retry_after_s: float | None
) -> None:
    verdict = decide(failure, status, tried=tried, random=random, retry_after_s=retry_after_s)
    later = decide(failure, status, tried=tried + 1, random=random, retry_after_s=retry_after_s)

    assert (verdict is None) == (later is None)
    if verdict and verdict.wait_s is not None:
        assert 0 <= verdict.wait_s <= max(MAX_WAIT_S, MAX_RETRY_AFTER_S) * (1 + JITTER_SHARE)
        assert later
        assert later.wait_s is None or later.wait_s >= verdict.wait_s
    elif verdict and later:
        assert later.wait_s is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        (" 0 ", 0),
        ("99999999999999999999", MAX_RETRY_AFTER_S),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_RETRY_AFTER_S),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
    ],
)
def test_parse_retry_after_gives_bounded_seconds(value: str, seconds: float | None) -> None:
    assert parse_retry_after(value, now_unix_s=NOW_UNIX_S) == seconds


@given(st.text())
def test_parse_retry_after_any_text_gives_an_answer(value: str) -> None:
    seconds = parse_retry_after(value, now_unix_s=NOW_UNIX_S)

    assert seconds is None or 0 <= seconds <= MAX_RETRY_AFTER_S
