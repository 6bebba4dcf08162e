"""What was taken out of a collection and must not come back: a list of URLs and hosts, in a file of its folder.

    forgotten      one line each: the time (UTC), and a URL, or the name of a host with or without a port

The list of a collection of several shards is in its own folder, and every shard asks there. Invariant: whatever a
removal takes out is on the list before anything else happens, so that a removal that was killed can be run again.
Written by `lycosa.removal`; asked by the frontier before it admits a URL, by imports, and by `why`.
"""

import errno
import time
from collections.abc import Collection, Iterable
from pathlib import Path

from lycosa.errors import StoreError, storage_errors
from lycosa.files import replace_file
from lycosa.store.joined import sharded_parent
from lycosa.web import Url, format_timestamp, host_key_of, parse_url, url_key

NO_SUCH_FOLDER = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG)
FORGOTTEN_FILE = "forgotten"


class Forgotten:
    """The forgotten URLs and hosts of a collection: `entries` has them as the user knows them, with the time."""

    def __init__(self, entries: Iterable[tuple[str, str]] = ()) -> None:
        self.entries = dict(entries)
        self._urls = {entry for entry in self.entries if "/" in entry}
        self._hosts = self.entries.keys() - self._urls

    def __repr__(self) -> str:
        return f"<Forgotten {len(self._urls)} URLs, {len(self._hosts)} hosts>"

    def __bool__(self) -> bool:
        return bool(self.entries)

    @classmethod
    def of(cls, collection: Path) -> "Forgotten":
        """The list of a collection; of a shard, that of the collection it belongs to."""
        path = (sharded_parent(collection) or collection) / FORGOTTEN_FILE
        try:
            lines = path.read_text().splitlines()
        except (OSError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno in NO_SUCH_FOLDER:  # whoever opens the collection says so
                return cls()
            raise StoreError(f"cannot read {path}, the list of what must not come back: {error}") from error
        pairs = (line.partition(" ") for line in lines if line.strip())
        return cls((entry.strip(), at) for at, _, entry in pairs)

    def entry_for(self, url: Url) -> str:
        """The entry that a URL is forgotten by; empty if it is not."""
        for entry in (url.href, url.host, f"{url.host}:{url.port}"):
            if entry in self.entries:
                return entry
        return ""

    def has(self, url: Url) -> bool:
        return bool(self.entries) and bool(self.entry_for(url))

    def has_href(self, href: str) -> bool:
        """As `has`, for a URL as some record has it."""
        url = parse_url(href) if self.entries else None
        return url is not None and bool(self.entry_for(url))

    @property
    def url_keys(self) -> list[bytes]:
        """The keys of the URLs, in order."""
        return sorted(url_key(url) for url in self._urls)

    @property
    def host_ranges(self) -> list[tuple[bytes, bytes]]:
        """The ranges of keys of the hosts, in order: of all their ports and schemes, unless a port is named."""
        return sorted(_host_range(host) for host in self._hosts)


def read_entry(text: str) -> str:
    """A URL, normalised, or the name of a host: what a user wrote, as the list has it. Empty for what is neither."""
    word = text.strip()
    if "://" in word or "/" in word:
        url = parse_url(word if "://" in word else f"https://{word}")
        return url.href if url else ""
    url = parse_url(f"http://{word}/") if word else None
    if url is None or url.path != "/" or "@" in word:
        return ""
    return f"{url.host}:{word.rpartition(':')[2]}" if ":" in word.rpartition("]")[2] else url.host


def write_forgotten(collection: Path, entries: Collection[str], *, is_undone: bool = False) -> Forgotten:
    """Adds entries to the list of a collection, or takes them off it; returns the list. It is on the disk then."""
    known = Forgotten.of(collection).entries
    now = format_timestamp(time.time())
    if is_undone:
        kept = {entry: at for entry, at in known.items() if entry not in entries}
    else:
        kept = {**dict.fromkeys(entries, now), **known}
    path = (sharded_parent(collection) or collection) / FORGOTTEN_FILE
    with storage_errors(path, doing="writing down what must not come back"):
        replace_file(path, "".join(f"{at} {entry}\n" for entry, at in kept.items()).encode(), syncs=True)
    return Forgotten(kept.items())


def _host_range(host: str) -> tuple[bytes, bytes]:
    url = parse_url(f"http://{host}/")
    assert url is not None
    key = url_key(url.href)
    site = host_key_of(key)  # name:port:scheme, behind the bucket
    prefix = site.rsplit(b":", 1 if ":" in host.rpartition("]")[2] else 2)[0]
    return prefix + b":", prefix + b";"
