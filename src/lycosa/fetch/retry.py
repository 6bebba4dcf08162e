"""The one table that says what a failed request means: how long to wait, how often to try, whether the host is lost.

Pure: counts, times and the random number are arguments. Invariant: waits never shrink from one try to the next (up to
their bound), and never fall below what the server asked for (up to a day). Called by the crawl for every request
that failed.
"""

from datetime import UTC
from email.utils import parsedate_to_datetime

import msgspec

from lycosa.records import Failure

# A backoff longer than this outlives most reasons for it.
MAX_WAIT_S = 3_600.0
# The longest Retry-After that is obeyed; further in the future, the host is asked again after this.
MAX_RETRY_AFTER_S = 86_400.0
# Waits are lengthened by up to this share, so that hosts that failed together do not come back together.
JITTER_SHARE = 0.1
# A cancelled request says nothing about its URL: it does not count.
UNCOUNTED = 1_000_000_000


class RetryRule(msgspec.Struct, frozen=True):
    """One line of the table. `tries` counts all requests, the first one too; 1 means final at once.

    `host_after`: when so many different URLs in a row have failed, the whole host waits, not only this URL; 0: it never
    does. `gives_up_on_host`: after the last try no other URL of the host is worth a try.
    """

    first_wait_s: float
    factor: float
    tries: int
    host_after: int = 0
    gives_up_on_host: bool = False


# A failure that says nothing of its URL: the host waits at once. One that may be the URL's alone: after this many.
AT_ONCE, DIFFERENT_URLS = 1, 3
# Of a host's time, retries get at most this share while it has other URLs: those go first.
RETRY_SHARE = 0.02

FINAL = RetryRule(0.0, 1.0, 1)
FINAL_FOR_HOST = RetryRule(0.0, 1.0, 1, AT_ONCE, gives_up_on_host=True)

BY_FAILURE: dict[Failure, RetryRule] = {
    Failure.NO_SUCH_HOST: FINAL_FOR_HOST,
    Failure.ADDRESS_REFUSED: FINAL_FOR_HOST,
    Failure.DNS: RetryRule(10.0, 3.0, 3, AT_ONCE, gives_up_on_host=True),
    Failure.CONNECT: RetryRule(5.0, 4.0, 3, AT_ONCE, gives_up_on_host=True),
    Failure.CONNECT_TIMEOUT: RetryRule(10.0, 3.0, 3, AT_ONCE, gives_up_on_host=True),
    Failure.TLS: RetryRule(30.0, 1.0, 2, AT_ONCE, gives_up_on_host=True),
    Failure.FIRST_BYTE_TIMEOUT: RetryRule(10.0, 3.0, 3, DIFFERENT_URLS),
    Failure.IDLE_TIMEOUT: RetryRule(10.0, 3.0, 2, DIFFERENT_URLS),
    Failure.TOTAL_TIMEOUT: RetryRule(30.0, 2.0, 2, DIFFERENT_URLS),
    Failure.RESET: RetryRule(5.0, 4.0, 3, DIFFERENT_URLS),
    Failure.PROTOCOL: RetryRule(5.0, 1.0, 2, DIFFERENT_URLS),
    Failure.HEADERS_TOO_LARGE: FINAL,
    Failure.CANCELLED: RetryRule(0.0, 1.0, UNCOUNTED),
    # the credentials were asked for, or the session was lost: the URL is asked for again with them, in its turn
    Failure.NOT_LOGGED_IN: RetryRule(0.0, 1.0, 5),
}

# The connection broke after we had let it wait for long, which may happen to a URL again and again while many large
# bodies are on their way: it has tries for most of an hour, so that those have time to end. No host waits for it.
BROKEN_WHEN_HELD = RetryRule(5.0, 2.0, 10)
RESET_WHILE_HELD = "reset-while-held"  # its name among those of what failed

# While nobody at all has answered, a host that cannot be spoken to is most likely a slip of the user, who is waiting:
# it is tried once more, soon. As soon as any host has answered, the table above holds for all of them.
FIRST_WAIT_S = 1.0
FIRST_TRIES = 2
AT_FIRST = frozenset(
    {Failure.DNS, Failure.CONNECT, Failure.CONNECT_TIMEOUT, Failure.TLS, Failure.RESET, Failure.PROTOCOL}
)
BY_FAILURE_AT_FIRST = BY_FAILURE | {
    failure: msgspec.structs.replace(BY_FAILURE[failure], first_wait_s=FIRST_WAIT_S, factor=1.0, tries=FIRST_TRIES)
    for failure in AT_FIRST
}

# "Slow down" and "not now": the host is left alone for longer and longer.
OVERLOADED = RetryRule(30.0, 2.0, 6, AT_ONCE)
SERVER_ERROR = RetryRule(10.0, 3.0, 3)

BY_STATUS: dict[int, RetryRule] = {
    408: SERVER_ERROR,
    425: SERVER_ERROR,
    429: OVERLOADED,
    503: OVERLOADED,
    # what the server does not do now it will not do in ten seconds either
    501: FINAL,
    505: FINAL,
}

_NAMES = frozenset(failure.value for failure in Failure)


def retry_rule(
    failure: Failure | None, status: int, *, is_first: bool = False, was_held: bool = False
) -> RetryRule | None:
    """The line of the table for an outcome; None when it was no failure (2xx and 3xx).

    `is_first`: nobody has answered yet. `was_held`: it is our own doing.
    """
    if was_held:
        return BROKEN_WHEN_HELD
    if failure is not None:
        return (BY_FAILURE_AT_FIRST if is_first else BY_FAILURE)[failure]
    if 200 <= status < 400:
        return None
    return BY_STATUS.get(status, SERVER_ERROR if status >= 500 else FINAL)


def failed_name(failure: Failure | None, status: int, *, was_held: bool = False) -> str:
    """What failed, as queues keep it with a URL for `describe_next_try`."""
    return RESET_WHILE_HELD if was_held else str(failure or status)


def describe_next_try(tried: int, failed: str) -> str:
    """Says in words which try of a URL is the next, and what failed before it: `try 2 of 3 after reset`."""
    rule = None  # of what failed otherwise, such as a HEAD that is refused, the table knows nothing
    if failed.isdigit():
        rule = retry_rule(None, int(failed))
    elif failed == RESET_WHILE_HELD:
        rule = BROKEN_WHEN_HELD
    elif failed in _NAMES:
        rule = retry_rule(Failure(failed), 0)
    is_counted = rule is not None and 0 < tried < rule.tries  # or the host failed, or it is tried for ever (--wait)
    which = f"try {tried + 1} of {rule.tries}" if rule and is_counted else "another try"
    return f"{which} after {failed.replace('-', ' ')}"


def retry_wait(rule: RetryRule, tried: int, *, random: float, retry_after_s: float | None = None) -> float | None:
    """How long to wait after the `tried`-th request that ended so; None when there is no other try.

    `random` is from [0, 1). A Retry-After counts for 429 and 503 and lengthens the wait, it never shortens it.
    """
    if tried >= rule.tries:
        return None
    wait_s = min(rule.first_wait_s * rule.factor ** (tried - 1), MAX_WAIT_S)
    if rule is OVERLOADED and retry_after_s is not None:
        wait_s = max(wait_s, min(retry_after_s, MAX_RETRY_AFTER_S))
    return wait_s * (1 + JITTER_SHARE * random)


def parse_retry_after(value: str, *, now_unix_s: float) -> float | None:
    """The seconds a Retry-After field asks for, from 0 to a day; None when it cannot be read."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), MAX_RETRY_AFTER_S)
    try:
        date = parsedate_to_datetime(text)
        seconds = (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError, OSError):
        return None
    return min(max(seconds - now_unix_s, 0.0), MAX_RETRY_AFTER_S)
