"""The collection behind the live page, asked from many requests at once.

A `Collection` is asked from one thread at a time, so there are a few of them, opened when they are first needed; a
request borrows one. The list of hosts and the timeline are kept for some seconds: 100,000 hosts take a moment to read.
What takes longer than a page may take is made beside (`SlowAnswers`), and whoever asks is told to come back. Everything
is read-only.
"""

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, LifoQueue
from typing import Any, Generic, TypeVar

from lycosa.api import Collection
from lycosa.crawl import CrawlStats, Sample, is_crawled
from lycosa.errors import NoPage, SettingsError
from lycosa.inspect import HostTable, samples_of
from lycosa.search import update_index
from lycosa.settings import CrawlSettings, has_settings, merge, settings_of_folder
from lycosa.store import CollectionStore, is_collection, shard_paths

READERS = 4
HOSTS_FOR_S = 5.0
TIMELINE_FOR_S = 2.0
KEPT_TIMES = 10.0  # so many times as long as it took to make is a value kept
PATIENCE_S = 0.4  # a page is to come up within a second
SLOW_FOR_S = 60.0
MOST_KEPT = 16  # slow answers

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


class Kept(Generic[T]):
    """A value that is made anew when it is `for_s` old, or later where it takes long to make."""

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


class _SlowAnswer:
    """One answer, from when it is begun; `until` says how long it counts once it is there. `former` is the one before,
    which stands for it meanwhile."""

    def __init__(self, former: Any = None) -> None:
        self.former = former
        self.future: Future[Any] = Future()
        self.until = float("inf")

    @property
    def value(self) -> Any:
        """The value, or as long as there is none the former one."""
        return self.future.result() if self.future.done() and not self.future.exception() else self.former

    def make(self, make: Callable[[], Any], turn: threading.Lock) -> None:
        with turn:
            began = time.monotonic()
            try:
                self.future.set_result(make())
            except BaseException as error:  # it belongs to whoever asks
                self.until = 0.0
                self.future.set_exception(error)
                return
            ended = time.monotonic()
            self.until = ended + max(SLOW_FOR_S, KEPT_TIMES * (ended - began))


class SlowAnswers:
    """The answers of one collection, by names that tell them apart."""

    def __init__(self) -> None:
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._answers: dict[str, _SlowAnswer] = {}

    def __repr__(self) -> str:
        return f"<SlowAnswers {len(self._answers)}>"

    def ask(self, name: str, make: Callable[[], T], *, anew: bool = False) -> T | None:
        """The answer, or None while it is made for the first time. What goes wrong is raised here."""
        with self._lock:
            answer = self._answers.get(name)
            if answer is None or time.monotonic() > answer.until or (anew and answer.future.done()):
                answer = self._answers[name] = _SlowAnswer(None if anew or answer is None else answer.value)
                while len(self._answers) > MOST_KEPT:
                    del self._answers[next(iter(self._answers))]
                # A daemon: Ctrl-C does not wait for it.
                threading.Thread(target=answer.make, args=(make, self._turn), daemon=True).start()
        try:
            found: T | None = answer.future.result(PATIENCE_S)
        except TimeoutError:
            found = answer.former
        return found
