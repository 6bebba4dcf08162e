"""Writes small PDF documents, whole or hostile, for tests."""

import zlib


def pdf(
    *pages: str,
    title: str = "",
    author: str = "",
    created: str = "",
    streams: dict[int, bytes] | None = None,
    is_packed: bool = True,
) -> bytes:
    """A document with these lines of text, a page each; `streams` replaces the content of a page, by its number."""
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", ""]
    kids = [3 + 2 * number for number in range(len(pages))]
    objects[1] = f"<< /Type /Pages /Count {len(pages)} /Kids [{' '.join(f'{kid} 0 R' for kid in kids)}] >>"
    made = [text.encode("latin-1") for text in objects]
    font = "<< /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >>"
    for number, text in enumerate(pages):
        content_number, box = kids[number] + 1, "/MediaBox [0 0 600 800]"
        page = f"<< /Type /Page /Parent 2 0 R {box} /Contents {content_number} 0 R /Resources {font} >>"
        lines = "".join(f"({line}) Tj 0 -14 Td " for line in text.split("\n"))
        drawn = f"BT /F1 12 Tf 50 700 Td {lines} ET".encode("latin-1")
        content = (streams or {}).get(number) or (zlib.compress(drawn) if is_packed else drawn)
        packing = "/Filter /FlateDecode" if is_packed else ""
        head = f"<< /Length {len(content)} {packing} >>\nstream\n".encode()
        made += [page.encode(), head + content + b"\nendstream"]
    said = {"Title": title, "Author": author, "CreationDate": created}
    made.append(
        ("<< " + " ".join(f"/{key} ({value})" for key, value in said.items() if value) + " >>").encode("latin-1")
    )
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(made, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(made) + 1
    trailer = b"trailer << /Size %d /Root 1 0 R /Info %d 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (size, size - 1, len(out))
    return out + b"xref\n0 %d\n0000000000 65535 f \n" % size + table + trailer


def bomb(size_bytes: int) -> bytes:
    """A content stream of some kilobytes that unpacks to so many bytes of drawing."""
    return zlib.compress(b"BT /F1 12 Tf " + b"(boom) Tj " * (size_bytes // 10) + b" ET", 1)
