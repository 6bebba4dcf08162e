"""Dates as sitemaps and feeds write them: W3C (`2024-05`, `2024-05-01T10:00:00+02:00`) and RFC 822 (`1 May 2024`), and
as Lycosa shows them.

Pure: no clock, no local time zone; a date without a zone is taken as UTC. Anything else gives None, nothing raises.
"""

import re
import time
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

# No date is longer; the RFC 822 parser is not made for long input.
MAX_DATE_CHARS = 64

_YEAR_AND_MONTH = re.compile(r"(\d{4})(?:-(\d\d?))?", re.ASCII)


def parse_date(text: str) -> float | None:
    """The seconds since 1970 that `text` means, or None if it is not a date."""
    if not text or len(text) > MAX_DATE_CHARS:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return _epoch_of_other(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def format_timestamp(unix_s: float) -> str:
    """A time as programs read it: `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_s))


def format_date(unix_s: float) -> str:
    """A date and time of day in UTC, in a form that every option of Lycosa accepts as a date."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(unix_s))


def _epoch_of_other(text: str) -> float | None:
    """Reads the two forms that `fromisoformat` does not: less than a day, and those of mail."""
    try:
        if found := _YEAR_AND_MONTH.fullmatch(text):
            return datetime(int(found[1]), int(found[2] or 1), 1, tzinfo=UTC).timestamp()
        parts = parsedate_tz(text)
        return parts and (datetime(*parts[:6], tzinfo=UTC) - timedelta(seconds=parts[9] or 0)).timestamp()
    except (ValueError, OverflowError):  # a 13th month, a 25th hour
        return None
    except (IndexError, TypeError):  # what parsedate_tz does on some texts that are no dates
        return None
