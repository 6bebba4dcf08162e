"""Orders for a running crawl: pause, resume, stop, other settings. They are files in the collection's folder.

Whoever may write the folder may steer: the live page does, and the command `lycosa steer`. `steer` leaves an order as a
file that appears whole; the `OrderTaker` of the loop looks several times a second, obeys orders as they were given,
writes each into `log.jsonl` with its origin, and removes it. Orders that were given while no crawl was running are void
when the next one begins. Where no crawl is running, `steer` changes the settings of the collection itself.

Other settings do not reach into a running loop. The crawl stops as for Ctrl-C, commits, and its runner (`cli.run`)
continues with the settings that the collection then has: the same way as a second command, which is tested best.
"""

import contextlib
import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

from lycosa.crawl.events import log_order
from lycosa.errors import SettingsError, StoreError
from lycosa.files import replace_file
from lycosa.settings import SETTINGS, CrawlSettings, merge, save_settings, settings_of_folder, to_toml
from lycosa.store import CollectionStore, is_written, shard_paths

if TYPE_CHECKING:
    from lycosa.crawl.progress import ProgressReporter
    from lycosa.crawl.seams import Shard

STEERING_FOLDER = "steering"
NEW_SETTINGS = "settings"  # what ends a loop that is to be continued with other settings

Action = Literal["pause", "resume", "stop", "set"]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One order. `settings` are values as a TOML file has them, for `set`; `origin` says who gave it."""

    action: Action
    settings: dict[str, Any] = {}
    origin: str = ""
    at_unix: float = 0.0


class Steering:
    """The orders for the crawl of the collection at `path`."""

    def __init__(self, path: Path) -> None:
        self._folder = path / STEERING_FOLDER

    def give(self, action: Action, *, origin: str, settings: dict[str, Any] | None = None) -> None:
        """Leaves an order for the running crawl."""
        order = Order(action=action, settings=settings or {}, origin=origin, at_unix=time.time())
        try:
            self._folder.mkdir(exist_ok=True)
            name = f"{time.time_ns():020}-{uuid.uuid4().hex}.json"
            replace_file(self._folder / name, msgspec.json.encode(order))
        except OSError as error:
            raise StoreError(f"cannot write to {self._folder}: {error.strerror}") from error

    def take(self) -> Iterator[Order]:
        """The orders given since the last look. Each is removed before it is obeyed: an order that ends the process
        must not be waiting for the next one."""
        try:
            paths = sorted(path for path in self._folder.iterdir() if path.suffix == ".json")
        except OSError:  # nobody has ever given one
            return
        for path in paths:
            with contextlib.suppress(OSError, msgspec.MsgspecError):  # a file that is no order is removed, too
                data = path.read_bytes()
                path.unlink()
                yield msgspec.json.decode(data, type=Order)

    def discard(self) -> None:
        """Removes orders that were meant for a crawl of before."""
        for _ in self.take():
            pass


def is_crawled(path: Path) -> bool:
    """Is a crawl writing this collection now, in one process or in several on this machine?"""
    return any(is_written(each) for each in (path, *shard_paths(path)))


def steer(path: Path, action: Action, settings: Mapping[str, Any] | None = None, *, origin: str) -> str:
    """Has the crawl of a collection do something, or changes the settings of one that is not running. Returns what
    will happen, in a sentence; raises `SettingsError` where that cannot be."""
    wanted = dict(settings or {})
    if action == "set":
        changed = _checked(path, wanted)
        if not is_crawled(path):
            _save(path, changed)
            log_order(path, "steered", origin=origin, action=action, settings=wanted)
            return "the next run uses these settings"
    elif not is_crawled(path):
        if settings_of_folder(path) is None:
            raise SettingsError(f"there is no collection at {path}")
        raise SettingsError(f"no crawl of {path} is running, so there is nothing to {action}")
    shards = shard_paths(path)
    if shards and action not in ("pause", "resume"):
        then = ", set this, and continue it" if action == "set" else ""
        raise SettingsError(f"{path} is crawled by several processes: end it with Ctrl-C where it runs{then}")
    for each in shards or [path]:
        Steering(each).give(action, origin=origin, settings=wanted)
    return {
        "pause": "it pauses within a second; requests under way end",
        "resume": "it continues within a second",
        "stop": "it ends what is under way, commits and exits",
        "set": "it commits and continues with these settings within a few seconds",
    }[action]


def _save(path: Path, settings: CrawlSettings) -> None:
    if shard_paths(path):  # the shards are given those of the whole when they begin
        save_settings(path, settings)
        return
    with CollectionStore.open(path) as collection:
        collection.save_settings(to_toml(settings))


def _checked(path: Path, wanted: Mapping[str, Any]) -> CrawlSettings:
    kept = settings_of_folder(path)
    if kept is None:
        raise SettingsError(f"{path} is no collection: it has no settings")
    if not wanted:
        raise SettingsError("there is nothing to set: give a setting and its value")
    for name in wanted:
        if name in SETTINGS and not SETTINGS[name].is_steered:
            can = ", ".join(sorted(name for name, about in SETTINGS.items() if about.is_steered))
            raise SettingsError(f"{name} cannot be changed here; these can: {can}")
    return merge(kept).replace(**wanted)


class SteeredRun(Protocol):
    """What orders do to a run: the loop."""

    @property
    def stopped_by(self) -> str: ...

    def stop(self, reason: str = ...) -> None: ...

    def wake(self) -> None: ...


class OrderTaker:
    """Has a run obey the orders for its collection. `new_settings` are those with which the runner continues, after an
    end by `NEW_SETTINGS`."""

    def __init__(self, shard: "Shard", reporter: "ProgressReporter", run: SteeredRun) -> None:
        self._shard, self._reporter, self._run = shard, reporter, run
        self._steering = Steering(shard.collection.path)
        self._is_continued = False
        self.new_settings: dict[str, Any] = {}

    @property
    def is_paused(self) -> bool:
        """Whether somebody has paused the run."""
        return self._reporter.is_paused

    def continue_run(self, *, is_paused: bool) -> None:
        """Has this run continue one that ended for other settings: it is paused if that was, and obeys what was ordered
        meanwhile. To be called before the run begins."""
        self._is_continued, self._reporter.is_paused = True, is_paused

    def begin(self) -> None:
        """The run begins: orders for the one before are void, unless it continues that."""
        if not self._is_continued:
            self._steering.discard()

    def obey(self) -> None:
        """Obeys the orders given since the last look; those after one that ends the run are left to a run that
        continues."""
        orders = self._steering.take()
        while not self._run.stopped_by and (order := next(orders, None)):
            self._obey(order)

    def _obey(self, order: Order) -> None:
        events = self._shard.events
        events.write("steered", action=order.action, origin=order.origin, settings=order.settings)
        if order.action == "stop":
            self._run.stop("stopped")
        elif order.action == "set":
            try:
                self._shard.settings.replace(**order.settings)
            except SettingsError as error:  # whoever gave it has checked it; it may be of another version
                events.write("not-steered", reason=str(error))
                return
            self.new_settings = order.settings
            self._run.stop(NEW_SETTINGS)
        else:
            self._reporter.is_paused = order.action == "pause"
            self._run.wake()
