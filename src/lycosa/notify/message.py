"""What is said of changes: the JSON of webhooks, the signature over it, and the words of notifications. Pure.

The form is that of Standard Webhooks, for which receivers have libraries: the fields `webhook-id`, `webhook-timestamp`
and `webhook-signature`, the last one `v1,` and the base64 of HMAC-SHA256 over `id.timestamp.body`.
"""

import hmac
from base64 import b64encode
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from uuid import NAMESPACE_URL, uuid5

import msgspec

from lycosa.notify.outbox import Notice
from lycosa.web import format_timestamp

MOST_PIECES, MOST_CHARS = 10, 300  # of text that came or went, told of one change
SHOWN_IN_FULL = 10  # changes of a notification; of the others only the URL is named


def notice_id(url: str, at_s: float) -> str:
    """The id of a change: the same whenever and by whomever it is told."""
    return str(uuid5(NAMESPACE_URL, f"{url}#change-{int(at_s * 1000)}"))


def pieces_between(before: Sequence[str], after: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The pieces of text that came and those that went, in order, a few of them and shortened."""
    old, new = Counter(before), Counter(after)
    return _some(new - old), _some(old - new)


def _some(pieces: Counter[str]) -> tuple[str, ...]:
    return tuple(shortened(piece) for piece in list(pieces)[:MOST_PIECES])


def shortened(piece: str) -> str:
    return piece if len(piece) <= MOST_CHARS else f"{piece[: MOST_CHARS - 1]}…"


def webhook_body(notices: Sequence[Notice], *, collection: str, now_s: float) -> bytes:
    """The body of a webhook."""
    changes = [
        {
            "id": notice.id,
            "url": notice.url,
            "time": format_timestamp(notice.at_s),
            "change": notice.word,
            "kind": notice.kind,
            "also": notice.also,
            "where": notice.where,
            "parts": notice.size,
            "title": notice.title,
            "status": notice.status,
            "added": notice.added,
            "removed": notice.removed,
        }
        for notice in notices
    ]
    data = {"collection": collection, "changes": changes}
    return msgspec.json.encode({"type": "pages.changed", "timestamp": format_timestamp(now_s), "data": data})


def webhook_fields(
    body: bytes, notices: Sequence[Notice], *, secret: bytes, now_s: float
) -> tuple[tuple[str, str], ...]:
    """The header fields that belong to a body. The id is the same when the same changes are sent again."""
    message_id = f"msg_{uuid5(NAMESPACE_URL, ' '.join(notice.id for notice in notices)).hex}"
    timestamp = str(int(now_s))
    signed = f"{message_id}.{timestamp}.".encode() + body
    signature = b64encode(hmac.new(secret, signed, sha256).digest()).decode()
    return (
        ("Content-Type", "application/json"),
        ("webhook-id", message_id),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", f"v1,{signature}"),
    )


def notification(notices: Sequence[Notice], *, collection: str) -> tuple[str, str]:
    """The title and the text of a notification."""
    first = notices[0]
    title = f"{first.word}: {first.title or first.url}"
    if len(notices) > 1:
        title = f"{len(notices)} changes in {collection}"
    lines = list[str]()
    for number, notice in enumerate(notices):
        lines.append(f"{notice.word} {notice.url}" + (f" ({notice.kind})" if notice.kind != notice.word else ""))
        if number < SHOWN_IN_FULL:
            lines += excerpt(notice)
    return title, "\n".join(lines)


def excerpt(notice: Notice) -> list[str]:
    """Lines that show what is different."""
    lines = [*(f"+ {piece}" for piece in notice.added), *(f"- {piece}" for piece in notice.removed)]
    return lines or ([notice.where] if notice.where else [])
