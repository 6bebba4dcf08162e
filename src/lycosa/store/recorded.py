"""Responses whose bodies are held packed: as the records that were made of them, which are to be written anyway.

Whoever asks for such a body gets it whole; it is unpacked each time. The crawl holds long documents in this way.
"""

from isal import isal_zlib

from lycosa.records import Response
from lycosa.store.warc_record import HttpExchange

_GZIP_MEMBER = 31  # zlib's way to say that there is a gzip header
_END = b"\r\n\r\n"  # of a record, behind the body


class RecordedResponse(Response, frozen=True, weakref=True):
    """A response of which `member`, its record, is held in place of the body."""

    member: bytes = b""
    body_bytes: int = 0

    @property  # type: ignore[misc]  # a field of responses that hold it
    def body(self) -> bytes:
        record: bytes = isal_zlib.decompress(self.member, _GZIP_MEMBER)
        return record[len(record) - len(_END) - self.body_bytes : -len(_END)]

    @property
    def size_bytes(self) -> int:
        return self.body_bytes


def recorded_response(response: Response, made: HttpExchange) -> Response:
    """The response with its record in place of its body."""
    fields = {name: getattr(response, name) for name in Response.__struct_fields__ if name != "body"}
    return RecordedResponse(**fields, member=made.members[made.RESPONSE], body_bytes=response.size_bytes)
