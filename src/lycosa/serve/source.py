"""The collection behind the live page, asked from many requests at once.

A `Collection` is asked from one thread at a time, so there are a few of them, opened when they are first needed; a
request borrows one. The list of hosts and the timeline are kept for some seconds: 100,000 hosts take a moment to read.
The report is made once and kept until it is asked for anew. Everything is read-only.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import LifoQueue
from typing import Any, Generic, TypeVar

import msgspec

from lycosa.api import Collection
from lycosa.crawl import CrawlStats, Sample, is_crawled, load_timeline
from lycosa.errors import SettingsError
from lycosa.inspect import HostView, open_to_read
from lycosa.settings import CrawlSettings, merge, settings_of_folder
from lycosa.store import JoinedCollection, is_collection, shard_paths

READERS = 4
HOSTS_FOR_S = 5.0
TIMELINE_FOR_S = 2.0
KEPT_TIMES = 10.0  # so many times as long as it took to make is a value kept
LOG_BYTES = 256 << 10  # of the end of log.jsonl that is looked through

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that many viewers ask for, made anew when it is `for_s` old, or later where it takes long to make."""

    def __init__(self, make: Callable[[], T], *, for_s: float) -> None:
        self._make, self._for_s = make, for_s
        self._value: T | None = None
        self._until = 0.0
        self._lock = threading.Lock()

    def value(self) -> T:
        with self._lock:
            began = time.monotonic()
            if self._value is None or began > self._until:
                self._value = self._make()
                ended = time.monotonic()
                self._until = ended + max(self._for_s, KEPT_TIMES * (ended - began))
            return self._value


class CollectionSource:
    """Answers about the collection at `path`. Close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._readers: LifoQueue[Collection | None] = LifoQueue()
        for _ in range(READERS):
            self._readers.put(None)
        self._hosts = Kept(lambda: self.ask(lambda collection: list(collection.hosts())), for_s=HOSTS_FOR_S)
        self._timeline = Kept(self._read_timeline, for_s=TIMELINE_FOR_S)

    def __repr__(self) -> str:
        return f"<CollectionSource {self.path}>"

    def close(self) -> None:
        for _ in range(READERS):
            collection = self._readers.get()
            if collection is not None:
                collection.close()

    @property
    def is_there(self) -> bool:
        """Whether there is a collection yet: a crawl that has just begun may not have made it."""
        return is_collection(self.path) or bool(self.shards)

    @contextmanager
    def reading(self) -> Iterator[Collection]:
        """A collection for one request; it sees what was committed up to now."""
        collection = self._readers.get()
        try:
            collection = collection or Collection(self.path)
            yield collection
        except BaseException:
            if collection is not None:
                collection.close()  # whatever went wrong, the next request opens it anew
            collection = None
            raise
        finally:
            self._readers.put(collection)

    def ask(self, question: Callable[[Collection], T]) -> T:
        """The answer to one question."""
        with self.reading() as collection:
            return question(collection)

    def stats(self) -> CrawlStats:
        return self.ask(lambda collection: collection.stats())

    def settings(self) -> CrawlSettings:
        """The settings of the collection; raises `SettingsError` where they cannot be read."""
        kept = settings_of_folder(self.path)
        if kept is None:
            raise SettingsError(f"{self.path} has no settings")
        return merge(kept)

    @property
    def shards(self) -> list[Path]:
        """The folders of its shards; none where it is one collection."""
        return shard_paths(self.path)

    @property
    def is_crawled(self) -> bool:
        return is_crawled(self.path)

    def timeline(self) -> list[list[Sample]]:
        """The samples of every shard, as they were a moment ago."""
        return self._timeline.value()

    def _read_timeline(self) -> list[list[Sample]]:
        with open_to_read(self.path) as store:
            stores = store.shards if isinstance(store, JoinedCollection) else [store]
            return [load_timeline(each.state).samples for each in stores]

    def hosts(self) -> list[HostView]:
        """Every host, as it was some seconds ago."""
        return self._hosts.value()

    def log(self, most: int) -> list[dict[str, Any]]:
        """The last events of the log, the newest first; of shards, those of all."""
        found = list[dict[str, Any]]()
        for folder in self.shards or [self.path]:
            for line in _last_lines(folder / "log.jsonl"):
                try:
                    event = msgspec.json.decode(line)
                except msgspec.DecodeError:  # the first line may be cut, the last on its way
                    continue
                if isinstance(event, dict):
                    found.append({**event, "shard": folder.name} if folder != self.path else event)
        return sorted(found, key=lambda event: event.get("time", 0.0), reverse=True)[:most]


def _last_lines(path: Path) -> Sequence[bytes]:
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, 2) - LOG_BYTES))
            return file.read().splitlines()
    except OSError:  # a collection may be without a log
        return ()
