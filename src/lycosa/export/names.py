"""Names of files from URLs: the same for the same URL, never outside their folder, valid on every file system.

A name keeps the letters, digits, dots, hyphens and underscores of the URL, in lower case and at most `PART_BYTES` long
a part. Whatever had to be changed for that (capital letters too, which some file systems do not tell apart) adds `~`
and a digest of the URL, which no unchanged name has: so two URLs never share a name, without any list of those in use.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b
from urllib.parse import unquote

from lycosa.web import split_url

PART_BYTES = 80
PATH_BYTES = 200  # the whole of it; longer ones would not fit everywhere
_OTHER = re.compile(r"[^\w.-]+")
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|com\d|lpt\d)(\..*)?")
_FRONT, _DIGEST_BYTES = "index", 5
_USUAL_PORTS = {"http": 80, "https": 443}


def file_name(url: str, suffix: str, mark: str = "") -> str:
    """The path of the file of a page, below the folder of an export, with slashes: `example.org/docs/index.md`. `mark`
    tells several files of one URL apart; it is no part of a URL's name."""
    parts = split_url(url)
    folders = [origin_name(url)]
    path, _, query = parts.path.partition("?")
    *above, last = path.removeprefix("/").split("/")
    folders += [_part(name, name, is_folder=name.endswith(suffix)) for name in above]
    raw = f"{last}?{query}" if query or parts.path.endswith("?") else last
    name = _part(raw, url, is_folder=raw == _FRONT) if raw else _FRONT
    found = "/".join([*folders, name])
    if len(found.encode()) > PATH_BYTES:
        found = f"{folders[0]}/{_digested('', url, 16)}"
    return f"{found}~{mark}{suffix}" if mark else found + suffix


def origin_name(url: str) -> str:
    """The folder of a host: its name, with scheme and port where they are not the usual ones."""
    parts = split_url(url)
    return _origin_name(parts.scheme, parts.host, parts.port)


@lru_cache(1_024)
def _origin_name(scheme: str, host: str, port: int) -> str:
    name = _part(host, host)
    if scheme != "https":
        name += f"~{scheme}"
    return name if port == _USUAL_PORTS[scheme] else f"{name}~{port}"


@lru_cache(1_024)
def _part(raw: str, url: str, *, is_folder: bool = False) -> str:
    """One part of a path. `is_folder`: it could be taken for the name of a file, or of the front page."""
    text = _shortened(_OTHER.sub("-", unicodedata.normalize("NFC", unquote(raw, errors="replace"))).lower())
    text = text.strip(".") or "-"
    if _RESERVED.fullmatch(text) or is_folder or text != raw:
        return _digested(text.rstrip("."), url)
    return text


def _shortened(text: str) -> str:
    return text.encode()[:PART_BYTES].decode(errors="ignore")


def _digested(text: str, url: str, size: int = _DIGEST_BYTES) -> str:
    return f"{text}~{blake2b(url.encode(), digest_size=size).hexdigest()}"
