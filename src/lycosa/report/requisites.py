"""Which pages and style sheets name an image, a style sheet, a script or a font that is broken.

The link index has links alone, and the state remembers one page for each requisite. So, where a crawl fetched
requisites and something is broken, the HTML pages and the style sheets of the site are read once more for what they
name. Called by `report.survey`.
"""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from lycosa.report.database import ReportDatabase, uid
from lycosa.search import reading_archive, serve, stored_message
from lycosa.web import document_requisites

AT_ONCE = 5_000  # documents


def read_requisites(folders: Sequence[Path], url: str, place: bytes) -> list[int] | None:
    """What the document needs whose record is at `place`, by the numbers of the URLs; None where it cannot be read."""
    stored = stored_message(folders, place)
    if stored is None:
        return None
    found = document_requisites(stored.body, url=url, content_type=stored.field(b"content-type"))
    return [uid(target) for target in (*found.needed, *found.imported)]


def main() -> None:
    """The worker process."""
    serve(read_requisites)


def read_broken_requisites(database: ReportDatabase, folders: Sequence[Path]) -> None:
    """Fills the table `needs`. The table `job` has the documents that are read, by their places."""
    broken = {number for (number,) in database.rows("select uid from page where state = 'broken'")}
    if not broken:
        return
    database.execute(
        "insert into job select id, url, place from page where is_style and is_internal and place not null"
    )
    count = database.value("select count(*) from job where at is not null")
    jobs = database.rows("select url, at from job where at is not null order by at, id")
    ids = (number for (number,) in database.rows("select id from job where at is not null order by at, id"))
    with reading_archive(__name__, read_requisites, list[list[int] | None], folders, count) as read:
        found = zip(ids, read(jobs), strict=True)
        while some := list(islice(found, AT_ONCE)):
            rows = [(number, target) for number, needed in some for target in needed or () if target in broken]
            database.add("needs", rows, 2)
