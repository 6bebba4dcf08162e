"""Makes a response's header block agree with the body that is stored beside it.

A body is stored with its transfer coding undone, and sometimes cut short. A header that still says otherwise would
make readers decode twice or wait for bytes that never come, so it is renamed, not dropped: what the server said
stays readable. Everything else is kept byte for byte. Pure; called by `lycosa.store.warc_record`.
"""

import re

# The prefix archives use for headers they had to put aside.
ASIDE = b"X-Archive-Orig-"

_HTTP_1 = re.compile(rb"HTTP/1\.[01] ")
_HTTP_VERSION = re.compile(rb"HTTP/(?!1\.[01] )[0-9.]+ +")
# Also where a line begins with a space: some readers take it for a header all the same.
_FRAMING = re.compile(rb"^([ \t]*)((transfer-encoding|content-length)[ \t]*:([^\r\n]*))", re.I | re.M)
_LINE_ENDS = re.compile(rb"[\r\n]+")


def well_formed(block: bytes, *, status: int) -> bytes:
    """The block as readers need it to find the body: HTTP/1 status line, CRLF line ends, one empty line at its end."""
    if _is_well_formed(block):
        return block
    lines = [line for line in _LINE_ENDS.split(block) if line.strip()]
    first = lines[0] if lines else b""
    if version := _HTTP_VERSION.match(first):
        # Binary versions have no status line of their own; readers know the two textual ones.
        lines[0] = b"HTTP/1.1 " + first[version.end() :]
    elif not _HTTP_1.match(first):
        lines[:1] = [b"HTTP/1.1 %d " % status, *([ASIDE + b"Status: " + first] if first else [])]
    return b"\r\n".join(lines) + b"\r\n\r\n"


def _is_well_formed(block: bytes) -> bool:
    """A status line and headers, no empty line inside, and one at the end: what nearly every server sends."""
    lines = block.count(b"\r\n")
    return (
        block.startswith((b"HTTP/1.1 ", b"HTTP/1.0 "))
        and block[9:10] != b"\r"
        and block.find(b"\r\n\r\n") == len(block) - 4
        and block.count(b"\r") == lines == block.count(b"\n")
    )


def agreeing(block: bytes, *, status: int, body_bytes: int) -> bytes:
    """The well-formed block as it has to read in front of `body_bytes` bytes of body without transfer coding."""
    block = well_formed(block, status=status)
    length = b"%d" % body_bytes
    lower = block.lower()
    is_said = b"\r\ncontent-length: %b\r\n" % length in lower and lower.count(b"content-length") == 1
    if is_said and b"transfer-encoding" not in lower:
        return block  # as nearly every server has it
    framing = _FRAMING.findall(block)
    is_wrong = [name.lower() == b"transfer-encoding" or value.strip() != length for _, _, name, value in framing]
    if not any(is_wrong):
        return block
    verdicts = iter(is_wrong)
    block = _FRAMING.sub(lambda found: found[1] + (ASIDE if next(verdicts) else b"") + found[2], block)
    if all(is_wrong):
        block = block[:-2] + b"Content-Length: " + length + b"\r\n\r\n"
    return block
