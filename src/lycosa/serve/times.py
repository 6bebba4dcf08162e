"""Times on pages: given in UTC, so that the script of a page can turn them into those of the viewer's zone.

Sentences of the crawl name times of day where it runs (`wording.clock`), which may be another zone than the viewer's.
"""

import re
import time

from lycosa.web import format_date

_TIME = re.compile(r"\b(until|since|at) (?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d:\d\d)\b(?!Z)")


def time_text(unix_s: float) -> str:
    """A time in UTC; a dash where there is none."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(unix_s)) if unix_s else "–"


def in_utc(sentence: str) -> str:
    """A sentence with its times of day, which are those of this machine, as dates and times in UTC."""
    return _TIME.sub(_utc, sentence)


def _utc(found: re.Match[str]) -> str:
    word, day, clock = found.groups()
    try:
        then = time.strptime(f"{day or time.strftime('%Y-%m-%d')} {clock}", "%Y-%m-%d %H:%M:%S")
    except ValueError:  # no time of day, whoever wrote it
        return found[0]
    return f"{word} {format_date(time.mktime(then))}"
