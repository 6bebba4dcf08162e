"""The Atom feed of changes: a file that holds the latest ones, the newest first, and is replaced as a whole.

An entry is known by its id, so that a change which comes twice stands there once. Whoever writes holds a lock on the
folder and adds to what is there: the shards of a collection on one machine share one feed. A file that is no Atom feed
is never overwritten.
"""

import asyncio
import fcntl
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from uuid import uuid4
from xml.etree import ElementTree

from lycosa.errors import SettingsError
from lycosa.files import replace_file
from lycosa.notify.message import excerpt
from lycosa.notify.notifier import NotDelivered
from lycosa.notify.outbox import Notice

ENTRIES_MOST = 200
FEED_BYTES_MOST = 16 << 20  # a larger file is none of ours
NAMESPACE = "http://www.w3.org/2005/Atom"
_DOCTYPE = b"<!DOCTYPE"
# What XML cannot hold.
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

ElementTree.register_namespace("", NAMESPACE)


class AtomTarget:
    """The feed in a file, of the collection named `collection`."""

    def __init__(self, path: Path, *, collection: str) -> None:
        self._path, self._collection = path, collection
        self.id = f"atom:{sha256(os.fsencode(path)).hexdigest()[:16]}"
        self.name = f"the feed {path.name}"
        if not path.parent.is_dir():
            raise SettingsError(f"the feed {path} cannot be written: there is no folder {path.parent}")
        try:
            _read(path)
        except NotDelivered as error:
            raise SettingsError(f"{error}: name another file with --atom") from error

    def __repr__(self) -> str:
        return f"<AtomTarget {self._path}>"

    async def send(self, notices: Sequence[Notice]) -> None:
        try:
            await asyncio.to_thread(self._add, notices)
        except OSError as error:
            raise NotDelivered(f"{self._path}: {error.strerror}") from error

    def _add(self, notices: Sequence[Notice]) -> None:
        """Adds entries to the feed, which is there whole, as before or as after, whatever happens."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            feed = _read(self._path)
            new = ElementTree.tostring(self._feed(feed, notices), encoding="utf-8", xml_declaration=True)
            replace_file(self._path, new + b"\n", syncs=True)
        finally:
            os.close(folder)

    def _feed(self, old: ElementTree.Element | None, notices: Sequence[Notice]) -> ElementTree.Element:
        before = [] if old is None else old.findall(_name("entry"))
        known = {entry.findtext(_name("id"), ""): entry for entry in before}
        known |= {f"urn:uuid:{notice.id}": _entry(notice) for notice in notices}
        entries = sorted(known.values(), key=lambda entry: entry.findtext(_name("updated"), ""), reverse=True)
        feed = ElementTree.Element(_name("feed"))
        identity = old.findtext(_name("id")) if old is not None else None
        _add_text(feed, "id", identity or f"urn:uuid:{uuid4()}")
        _add_text(feed, "title", f"Changes in {self._collection}")
        _add_text(feed, "updated", entries[0].findtext(_name("updated"), ""))
        _add_text(feed, "generator", "Lycosa")
        _add_text(ElementTree.SubElement(feed, _name("author")), "name", "Lycosa")
        feed.extend(entries[:ENTRIES_MOST])
        ElementTree.indent(feed)
        return feed


def _read(path: Path) -> ElementTree.Element | None:
    """The feed in a file, None if there is no file; raises NotDelivered for any other file."""
    if not path.exists():
        return None
    try:
        if path.stat().st_size > FEED_BYTES_MOST:
            raise ValueError
        data = path.read_bytes()
        if _DOCTYPE in data:  # ours has none, and those of others may expand without end
            raise ValueError
        found = ElementTree.fromstring(data)
        if found.tag != _name("feed"):
            raise ValueError
    except (OSError, ValueError, ElementTree.ParseError):
        raise NotDelivered(f"{path} is no Atom feed, and is not overwritten") from None
    return found


def _entry(notice: Notice) -> ElementTree.Element:
    entry = ElementTree.Element(_name("entry"))
    at = datetime.fromtimestamp(notice.at_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    _add_text(entry, "id", f"urn:uuid:{notice.id}")
    _add_text(entry, "title", f"{notice.word}: {notice.title or notice.url}")
    ElementTree.SubElement(entry, _name("link"), href=_FORBIDDEN.sub("", notice.url))
    _add_text(entry, "updated", at)
    _add_text(entry, "published", at)
    for kind in (notice.kind, *notice.also):
        ElementTree.SubElement(entry, _name("category"), term=kind)
    _add_text(entry, "content", "\n".join([notice.url, *excerpt(notice)]))
    return entry


def _add_text(parent: ElementTree.Element, name: str, text: str) -> None:
    ElementTree.SubElement(parent, _name(name)).text = _FORBIDDEN.sub("", text)


def _name(name: str) -> str:
    return f"{{{NAMESPACE}}}{name}"
