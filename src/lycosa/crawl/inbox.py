"""The inbox of a collection: URLs that others ask for, as files that appear whole and are taken whole.

`lycosa add` writes here whether a crawl runs or not; the engine looks every second and at its start. A file is removed
only after its URLs are in the frontier's batch; the seen test makes taking one twice harmless.
"""

import contextlib
import os
import uuid
from collections.abc import Iterable, Iterator
from ipaddress import ip_network
from itertools import islice
from pathlib import Path

from lycosa.crawl.committer import CommitParticipant
from lycosa.errors import SettingsError, StoreError
from lycosa.mapping import AddressGuard, is_literal_host, literal_address
from lycosa.settings import CrawlSettings
from lycosa.web import Url, parse_url

INBOX_FOLDER = "inbox"
MOST_FILES = 100  # taken at a time
URLS_A_SLICE = 500


class Inbox(CommitParticipant):
    """The inbox of the collection at `path`."""

    def __init__(self, path: Path) -> None:
        self._folder = path / INBOX_FOLDER
        self._taken: list[Path] = []

    def put(self, urls: Iterable[str]) -> None:
        """Leaves URLs for the crawl."""
        try:
            self._folder.mkdir(exist_ok=True)
            name = uuid.uuid4().hex
            whole = self._folder / f"{name}.part"
            whole.write_text("".join(f"{url}\n" for url in urls))
            whole.rename(self._folder / f"{name}.urls")
        except OSError as error:
            raise StoreError(f"cannot write to {self._folder}: {error.strerror}") from error

    def holds(self, href: str) -> bool:
        """Does this URL, as it is normalised, wait here?"""
        for path in sorted(self._folder.glob("*.urls")):
            with contextlib.suppress(FileNotFoundError), path.open() as lines:  # it may be taken meanwhile
                if any(url.href == href for line in lines if (url := parse_url(line))):
                    return True
        return False

    def on_committed(self) -> None:
        """What was taken is in the frontier for good: its files can go."""
        for path in self._taken:
            path.unlink(missing_ok=True)
        self._taken = []

    def take(self) -> Iterator[list[Url]]:
        """The URLs left here since the last look, slice by slice. A file goes with the commit that holds its
        last slice; whoever stops before that gets it again, from its beginning."""
        if not self._folder.is_dir():
            return
        names = sorted(entry.name for entry in os.scandir(self._folder) if entry.name.endswith(".urls"))[:MOST_FILES]
        for path in [path for name in names if (path := self._folder / name) not in self._taken]:
            with path.open() as lines:
                while some := list(islice(lines, URLS_A_SLICE)):
                    yield [url for line in some if (url := parse_url(line))]
            self._taken.append(path)


def literal_hosts(seeds: Iterable[str]) -> tuple[str, ...]:
    """HOST:PORT of those seeds that are addresses or `localhost`."""
    urls = [url for seed in seeds if (url := parse_url(seed))]
    return tuple(f"{url.host}:{url.port}" for url in urls if is_literal_host(url.host))


def refuse_private(urls: Iterable[Url], settings: CrawlSettings, into: Path) -> None:
    """Raises SettingsError for a URL whose host is an address that the guard of this crawl would never let through."""
    guard = AddressGuard(ip_network(network) for network in settings.allow_private)
    for url in urls:
        address = literal_address(url.host)
        reason = guard.refusal(address) if address and f"{url.host}:{url.port}" not in settings.typed_hosts else None
        if reason:
            raise SettingsError(
                f"{url.href} is a special address, {reason}, which this crawl may not ask: give it as a seed, lycosa"
                f" crawl {url.href} --into {into}, or open its network with --allow-private"
            )
