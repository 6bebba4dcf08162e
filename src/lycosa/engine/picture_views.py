"""A picture that changed, for the eye: both versions with their sizes, values (Y11) and digests of their pixels.

Reads the history of the picture and the archive. Called by `engine.change_views`.
"""

import msgspec

from lycosa.change.image import image_value
from lycosa.change.kinds import Kind, Picture
from lycosa.engine.versions import document_at
from lycosa.engine.visit_rows import ChangeRow, history
from lycosa.store import Collection
from lycosa.web.url import url_key


class PictureVersion(msgspec.Struct, frozen=True):
    """One version of a picture. `value` is written out in digits, it may be longer than any number elsewhere; it, the
    `digest` of the pixels in hexadecimal and the sides are empty where the picture cannot be decoded."""

    at_s: float
    kind: Kind
    status: int
    content_type: str
    size_bytes: int
    archived: bool
    width: int = 0
    height: int = 0
    value: str = ""
    digest: str = ""


class PictureChange(msgspec.Struct, frozen=True):
    """A picture before and after a change; None where its history has no such version."""

    url: str
    before: PictureVersion | None
    after: PictureVersion | None


def picture_change(collection: Collection, picture: Picture) -> PictureChange:
    rows = [row for row in history(collection.state, url_key(picture.url)) if row[0] <= picture.at_s]
    before = next((row for row in reversed(rows[:-1]) if row[1].size_bytes), None)  # what stood there, archived or not
    return PictureChange(
        picture.url,
        _version(collection, *before) if before else None,
        _version(collection, *rows[-1]) if rows else None,
    )


def _version(collection: Collection, at_s: float, row: ChangeRow) -> PictureVersion:
    document = document_at(collection, row.place) if row.place else None
    if document is None:
        return PictureVersion(at_s, row.kind, row.status, row.essence, row.size_bytes, archived=False)
    body, found = document[1], image_value(document[1])
    seen = (found.width, found.height, str(found.value), found.digest.hex()) if found else ()
    return PictureVersion(at_s, row.kind, row.status, row.essence, len(body), True, *seen)
