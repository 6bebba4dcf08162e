"""The retry table: what each outcome means, and how long to wait."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.fetch.retry import (
    BY_FAILURE,
    JITTER_SHARE,
    MAX_RETRY_AFTER_S,
    MAX_WAIT_S,
    describe_next_try,
    parse_retry_after,
    retry_rule,
    retry_wait,
)
from lycosa.records import Failure

NOW_UNIX_S = 784_111_777.0  # Sun, 06 Nov 1994 08:49:37 GMT
STATUSES = st.integers(100, 599)


def test_retry_every_failure_has_its_line() -> None:
    assert set(BY_FAILURE) == set(Failure)


def waits(failure: Failure | None, status: int = 0, *, is_first: bool = False) -> list[float | None]:
    """How long to wait after each try, without jitter; ends with the last try."""
    rule = retry_rule(failure, status, is_first=is_first)
    assert rule is not None
    return [retry_wait(rule, tried, random=0.0) for tried in range(1, rule.tries + 1)]


def test_retry_failure_of_our_own_has_tries_for_most_of_an_hour_and_no_host_waits_for_it() -> None:
    rule = retry_rule(Failure.RESET, 200, was_held=True)
    assert rule is not None
    assert (rule.host_after, rule.gives_up_on_host) == (0, False)
    assert retry_rule(Failure.RESET, 200, was_held=True, is_first=True) == rule
    gaps = [retry_wait(rule, tried, random=0.0) for tried in range(1, rule.tries + 1)]
    assert gaps[-1] is None
    assert 1_800 < sum(gap for gap in gaps if gap) < 3_600


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 410, 451, 501])
def test_retry_refusal_is_final_at_once(status: int) -> None:
    assert waits(None, status) == [None]


@pytest.mark.parametrize("status", [200, 204, 206, 301, 304, 308])
def test_retry_good_answer_has_nothing_to_make_good(status: int) -> None:
    assert retry_rule(None, status) is None


@pytest.mark.parametrize("status", [429, 503])
def test_retry_overload_holds_the_host_back_longer_each_time(status: int) -> None:
    rule = retry_rule(None, status)
    assert rule is not None
    assert (rule.host_after, rule.gives_up_on_host) == (1, False)
    assert waits(None, status) == [30, 60, 120, 240, 480, None]


def test_retry_after_lengthens_the_wait_and_never_shortens_it() -> None:
    rule = retry_rule(None, 503)
    assert rule is not None
    assert retry_wait(rule, 1, random=0.0, retry_after_s=100) == 100
    assert retry_wait(rule, 1, random=0.0, retry_after_s=1) == 30


@pytest.mark.parametrize("failure", [Failure.NO_SUCH_HOST, Failure.ADDRESS_REFUSED])
def test_retry_host_that_is_not_there_is_given_up_at_once(failure: Failure) -> None:
    assert waits(failure) == [None]
    assert BY_FAILURE[failure].gives_up_on_host


def test_retry_host_that_never_connects_is_given_up_after_its_tries() -> None:
    assert waits(Failure.CONNECT) == [5, 20, None]
    assert (BY_FAILURE[Failure.CONNECT].host_after, BY_FAILURE[Failure.CONNECT].gives_up_on_host) == (1, True)


@pytest.mark.parametrize("failure", [Failure.RESET, Failure.FIRST_BYTE_TIMEOUT, Failure.IDLE_TIMEOUT])
def test_retry_host_waits_for_resets_and_time_outs_of_three_urls_only(failure: Failure) -> None:
    assert (BY_FAILURE[failure].host_after, BY_FAILURE[failure].gives_up_on_host) == (3, False)


@pytest.mark.parametrize("failure", [Failure.CONNECT, Failure.CONNECT_TIMEOUT, Failure.DNS, Failure.TLS])
def test_retry_while_nobody_has_answered_tries_once_more_and_soon(failure: Failure) -> None:
    assert waits(failure, is_first=True) == [1, None]


def test_retry_while_nobody_has_answered_obeys_what_a_server_asks_for() -> None:
    assert waits(None, 503, is_first=True) == waits(None, 503)


def test_retry_cancelled_request_never_uses_up_a_url() -> None:
    assert retry_wait(BY_FAILURE[Failure.CANCELLED], 1_000, random=0.0) == 0.0


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
    rule = retry_rule(failure, status)
    if rule is None:
        return
    wait_s = retry_wait(rule, tried, random=random, retry_after_s=retry_after_s)
    later_s = retry_wait(rule, tried + 1, random=random, retry_after_s=retry_after_s)

    if wait_s is None:
        assert later_s is None
    else:
        assert 0 <= wait_s <= max(MAX_WAIT_S, MAX_RETRY_AFTER_S) * (1 + JITTER_SHARE)
        assert later_s is None or later_s >= wait_s


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


@pytest.mark.parametrize(
    ("tried", "failed", "said"),
    [
        (1, "reset", "try 2 of 3 after reset"),
        (2, "503", "try 3 of 6 after 503"),
        (2, "reset-while-held", "try 3 of 10 after reset while held"),
        (1, "head-404", "another try after head 404"),  # a crawl ended with an error here
    ],
)
def test_next_try_is_told_after_whatever_failed(tried: int, failed: str, said: str) -> None:
    assert describe_next_try(tried, failed) == said
