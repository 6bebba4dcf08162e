"""The collection behind the live page, asked from many requests at once.

A `Collection` is asked from one thread at a time, so there are a few of them, opened when they are first needed; a
request borrows one. The list of hosts and the timeline are kept for some seconds: 100,000 hosts take a moment to read.
What takes longer than a page may take is made beside (`serve.kept`). Everything is read-only.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import TypeVar

from lycosa.api import Collection
from lycosa.crawl import CrawlStats, Sample, is_crawled
from lycosa.errors import NoPage, SettingsError
from lycosa.inspect import HostTable, samples_of
from lycosa.search import update_index
from lycosa.serve.kept import Kept, SlowAnswers
from lycosa.settings import CrawlSettings, has_settings, merge, settings_of_folder
from lycosa.store import CollectionStore, is_collection, shard_paths

READERS = 4
HOSTS_FOR_S = 5.0
TIMELINE_FOR_S = 2.0

T = TypeVar("T")


class CollectionSource:
    """Answers about the collection at `path`. Close it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._readers: LifoQueue[Collection | None] = LifoQueue()
        for _ in range(READERS):
            self._readers.put(None)
        self._hosts = Kept(lambda: self.ask(lambda collection: HostTable(collection.store())), for_s=HOSTS_FOR_S)
        self._timeline = Kept(lambda: self.ask(lambda collection: samples_of(collection.store())), for_s=TIMELINE_FOR_S)
        self.slow, self._indexing = SlowAnswers(), SlowAnswers()

    def __repr__(self) -> str:
        return f"<CollectionSource {self.path}>"

    def close(self) -> None:
        with suppress(Empty):  # what is lent goes with the process
            while True:
                if (collection := self._readers.get_nowait()) is not None:
                    collection.close()

    @property
    def is_there(self) -> bool:
        """Whether there is a collection yet: a crawl that has just begun may not have made it, or not all of it."""
        return has_settings(self.path) and (is_collection(self.path) or bool(self.shards))

    @contextmanager
    def reading(self) -> Iterator[Collection]:
        """A collection for one request; it sees what was committed up to now."""
        collection = self._readers.get()
        try:
            collection = Collection(self.path) if collection is None else collection
            yield collection
        except (NoPage, SettingsError):  # what was asked cannot be
            raise
        except BaseException:
            if collection is not None:
                collection.close()  # whatever went wrong, the next request opens it anew
            collection = None
            raise
        finally:
            self._readers.put(collection)

    @contextmanager
    def store(self) -> Iterator[CollectionStore]:
        """The same, one room below: to open a state anew takes longer than most questions."""
        with self.reading() as collection:
            yield collection.store()

    def ask(self, question: Callable[[Collection], T]) -> T:
        """The answer to one question."""
        with self.reading() as collection:
            return question(collection)

    def ask_slowly(self, name: str, question: Callable[[CollectionStore], T]) -> T | None:
        """The answer to a question that may take long, which `name` tells from others; None while it is being made."""

        def make() -> T:
            with self.store() as store:
                return question(store)

        return self.slow.ask(name, make)

    def has_index(self) -> bool:
        """Whether there is an index to search in. What it does not know of yet is added; where there is none, it is
        made, which takes minutes for a million pages, and until then the answer is no."""

        def make() -> bool:
            update_index(self.path)
            return True

        return self._indexing.ask("index", make) is not None

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

    def timeline(self) -> list[Sample]:
        """The samples of the collection, as they were a moment ago."""
        return self._timeline.value()

    def hosts(self) -> HostTable:
        """Every host, as it was some seconds ago."""
        return self._hosts.value()
