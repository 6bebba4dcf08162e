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

_YEAR_1000 = -30_610_224_000.0
_DAY = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?", re.ASCII)
_SLASHED_DAY = re.compile(r"(\d{4})[/.](\d\d?)[/.](\d\d?)(?![\d/.])", re.ASCII)
_NAMED_DAY = re.compile(
    r"(?:[a-z]{3,9}\.?,? )?(?:(?P<month>[a-z]{3,9})\.? (?P<day>\d\d?)(?:st|nd|rd|th)?,?"
    r"|(?P<day2>\d\d?)(?:st|nd|rd|th|\.)? (?P<month2>[a-z]{3,9})\.?,?) (?P<year>\d{4})",
    re.ASCII | re.IGNORECASE,
)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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


def iso_date(text: str) -> str:
    """A date of a page by ISO 8601: a day (`2024-05-01`) or less as such, a time in UTC (`2024-05-01T10:00:00Z`). Days
    may also be written `2024/05/01`, `May 1, 2024` and `1 May 2024`; empty for all else."""
    text = " ".join(text[: 2 * MAX_DATE_CHARS].split())
    if (slashed := _SLASHED_DAY.match(text)) is not None:
        text = "-".join((slashed[1], slashed[2].zfill(2), slashed[3].zfill(2))) + text[slashed.end() :]
    elif (named := _NAMED_DAY.fullmatch(text)) is not None:
        month = (named["month"] or named["month2"])[:3].lower()
        number = _MONTHS.index(month) + 1 if month in _MONTHS else 0
        text = f"{named['year']}-{number:02}-{(named['day'] or named['day2']).zfill(2)}"
    when = parse_date(text)
    if when is None or when < _YEAR_1000:  # a slip, and more than some calendars can hold
        return ""
    return text if _DAY.fullmatch(text) else format_timestamp(when)


def format_timestamp(unix_s: float) -> str:
    """A time as programs read it: `2026-01-31T12:00:00Z`."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(unix_s))


def format_capture_time(unix_s: float) -> str:
    """A time as web archives name captures, in UTC: `20260131120000`."""
    return time.strftime("%Y%m%d%H%M%S", time.gmtime(unix_s))


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
