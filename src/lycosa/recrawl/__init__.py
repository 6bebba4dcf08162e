"""Recrawl: which pages are visited again and when, what has changed in them, and the versions that are kept.

`RevisitFeeder` puts what is due into the frontier, `Revisits` handles the requests and reads the answers; both hang on
a crawl by its seams and are put together in `api.assembly`. `rows` are what a collection keeps of visits, `versions`
reads stored documents back. `recrawl.change` is pure: content, verdicts, differences, rates and schedules.

Guarantees: a visit ends in one commit; errors and odd answers never replace a stored version; a first crawl writes
nothing here.
"""

from typing import TYPE_CHECKING

from lycosa.doors import open_lazily

if TYPE_CHECKING:
    from lycosa.recrawl.change.diff import Diff, diff_versions
    from lycosa.recrawl.change.ignored import IgnoreRules
    from lycosa.recrawl.change.image import can_decode, image_value
    from lycosa.recrawl.change.structure import structure_digest
    from lycosa.recrawl.change.verdict import UNCHANGED, ChangedImage, ChangeKind, Presence, digest_of_content
    from lycosa.recrawl.due import RevisitFeeder
    from lycosa.recrawl.plan import DAY_S
    from lycosa.recrawl.recorder import PageChange, opening
    from lycosa.recrawl.revisits import Revisits
    from lycosa.recrawl.versions import (
        BODY_CAP_BYTES,
        ChangeRow,
        Fields,
        StoredDocuments,
        VisitRow,
        document_at,
        due_key,
        history,
        history_rows,
        next_due,
        no_bodies,
        record_with_body,
        require_bodies,
        split_change_key,
        unpack_change,
        unpack_visit,
        version_at,
        version_row,
        visit_of,
    )

# Module → names. Each is imported when it is first used: whoever reads one row does not wait for the libraries of all.
__getattr__ = open_lazily(
    __name__,
    {
        "change.diff": "Diff diff_versions",
        "change.ignored": "IgnoreRules",
        "change.image": "can_decode image_value",
        "change.structure": "structure_digest",
        "change.verdict": "ChangeKind ChangedImage Presence UNCHANGED digest_of_content",
        "due": "RevisitFeeder",
        "plan": "DAY_S",
        "recorder": "PageChange opening",
        "revisits": "Revisits",
        "versions": "ChangeRow VisitRow history split_change_key unpack_change unpack_visit visit_of BODY_CAP_BYTES "
        "Fields StoredDocuments document_at due_key history_rows record_with_body no_bodies require_bodies version_at "
        "version_row next_due",
    },
)


__all__ = [
    "BODY_CAP_BYTES", "DAY_S", "UNCHANGED", "ChangeKind", "ChangeRow", "ChangedImage", "Diff", "Fields", "IgnoreRules",
    "PageChange", "Presence", "RevisitFeeder", "Revisits", "StoredDocuments", "VisitRow", "can_decode", "diff_versions",
    "digest_of_content", "document_at", "due_key", "history", "history_rows", "image_value", "next_due", "no_bodies",
    "opening", "record_with_body", "require_bodies", "split_change_key", "structure_digest", "unpack_change",
    "unpack_visit", "version_at", "version_row", "visit_of",
]  # fmt: skip
