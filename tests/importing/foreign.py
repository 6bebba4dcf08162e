"""WARC files as other tools write them, record by record."""

import gzip
import zipfile
from base64 import b32encode
from collections.abc import Mapping
from hashlib import sha1
from pathlib import Path


def record(kind: str, url: str, block: bytes = b"", date: str = "2024-05-01T12:00:00Z", **fields: str) -> bytes:
    """A record without compression; `fields` have _ for -."""
    named = {
        "WARC-Type": kind,
        "WARC-Target-URI": url,
        "WARC-Date": date,
        "WARC-Record-ID": f"<urn:x:{sha1(block).hexdigest()}>",
    }
    named |= {name.replace("_", "-"): value for name, value in fields.items()}
    named.setdefault("Content-Type", f"application/http; msgtype={kind}")
    lines = [f"{name}: {value}" for name, value in named.items() if value]
    return "\r\n".join(["WARC/1.0", *lines, f"Content-Length: {len(block)}", "", ""]).encode() + block + b"\r\n\r\n"


def page(words: str, *links: str) -> bytes:
    """A page with these words and links."""
    anchors = "".join(f"<a href='{link}'>to {link}</a>" for link in links)
    return f"<html lang=en><title>{words}</title><h1>{words}</h1><p>{words} and so on.</p>{anchors}</html>".encode()


def answer(body: bytes, status: str = "200 OK", **fields: str) -> bytes:
    """An HTTP message."""
    named: Mapping[str, str] = {"Content-Type": "text/html; charset=utf-8", **fields}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in named.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode() + body


def digest(body: bytes) -> str:
    return f"sha1:{b32encode(sha1(body).digest()).decode()}"


def write(path: Path, *records: bytes) -> Path:
    """A file of these records, compressed one by one if its name says so."""
    packed = [gzip.compress(each) for each in records] if path.suffix == ".gz" else records
    path.write_bytes(b"".join(packed))
    return path


def write_wacz(path: Path, **members: bytes) -> Path:
    """A ZIP file with these archives, stored."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"archive/{name}.warc.gz", data)
    return path
