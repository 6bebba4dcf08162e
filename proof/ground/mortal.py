"""Crawls that die at a named write point: a fork server for the campaign of kills (`make chaos`).

    python -m proof.ground.mortal     reads a line of JSON for each life, answers with its process, then with its end

A life is a whole `lycosa crawl` in a forked child: the libraries are imported once, so a kill costs a tenth of a second
and not a whole start. Nothing is open when the child is forked. The child kills itself with SIGKILL at the n-th passage
of its point; without a point the campaign kills it from outside. The index is written by a process of its own: at the
point `index-commit` that process kills the crawl, and then itself.
"""

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from lycosa.api import Crawl  # noqa: F401 -- imported here so that no life has to
from lycosa.cli import crawl as crawl_command  # noqa: F401 -- likewise
from lycosa.cli.commands import main as run_lycosa
from lycosa.crawl import Engine
from lycosa.graph import index as link_index
from lycosa.processes import start_helper
from lycosa.search import follower, text_log
from lycosa.search.index import IndexWriter
from lycosa.store import CollectionStore, State
from lycosa.store.warc_file import WarcWriter

INDEX_COMMIT = "index-commit"


class Life(msgspec.Struct):
    """One life: the words of the command, the point at which it dies and at which passage of it ("": it is killed
    from outside, or lives), and the file that takes what it says."""

    words: list[str]
    said: str
    point: str = ""
    nth: int = 1


class LifeEnd(msgspec.Struct):
    """How a life ended: its exit code (-9 for SIGKILL), and when, by the clock of the web's log."""

    code: int
    ended_s: float


class WritePoint(NamedTuple):
    """A place in the code, and whether the process dies before or after it."""

    owner: Any
    name: str
    is_before: bool = False


POINTS: dict[str, WritePoint] = {
    "fetch-done": WritePoint(Engine, "_on_response", is_before=True),
    "page-settled": WritePoint(Engine, "_handle"),
    "warc-before": WritePoint(WarcWriter, "append", is_before=True),
    "warc-after": WritePoint(WarcWriter, "append"),
    "warc-torn": WritePoint(WarcWriter, "_write", is_before=True),
    "fsync-before": WritePoint(WarcWriter, "sync", is_before=True),
    "fsync-after": WritePoint(WarcWriter, "sync"),
    "commit-before": WritePoint(CollectionStore, "commit", is_before=True),
    "commit-state": WritePoint(State, "write"),
    "commit-after": WritePoint(CollectionStore, "commit"),
    "rotation": WritePoint(WarcWriter, "_rotate"),
    "rotation-new-file": WritePoint(WarcWriter, "_open"),
    "state-compaction": WritePoint(CollectionStore, "commit"),
    "checkpoint": WritePoint(CollectionStore, "commit"),
    "text-log": WritePoint(text_log.TextLog, "_write"),
    "link-segment": WritePoint(link_index, "write_segment"),
    "link-list-before": WritePoint(link_index, "write_list", is_before=True),
    "link-list-after": WritePoint(link_index, "write_list"),
    INDEX_COMMIT: WritePoint(IndexWriter, "commit"),
    # while it recovers from the kill before
    "recovery-state": WritePoint(State, "reopen"),
    "recovery-warc-before": WritePoint(WarcWriter, "recover", is_before=True),
    "recovery-warc-cut": WritePoint(WarcWriter, "_recover_file"),
    "recovery-warc-after": WritePoint(WarcWriter, "recover"),
}
RECOVERY = tuple(name for name in POINTS if name.startswith("recovery-"))
# What is passed a few times in a life, or once: the passage at which a life ends is drawn from so many.
PASSAGES = {"fetch-done": 60, "page-settled": 60, "warc-torn": 4, "recovery-warc-cut": 2} | dict.fromkeys(
    ("recovery-state", "recovery-warc-before", "recovery-warc-after", "rotation-new-file", "rotation"), 1
)


def arm(point: str, nth: int) -> None:
    """From now on this process dies at the nth passage of the point."""
    place, left = POINTS[point], [nth]
    act: Callable[..., Any] = getattr(place.owner, place.name)

    def passing(*args: Any, **named: Any) -> Any:
        left[0] -= 1
        if left[0]:
            return act(*args, **named)
        if point == "warc-torn":  # half of the members get there, and half of the next one
            writer, members = args
            torn = len(members) // 2
            act(writer, [*members[:torn], members[torn][: len(members[torn]) // 2]])
        elif not place.is_before:
            act(*args, **named)
        if point == "state-compaction":
            args[0].state.compact()
        elif point == "checkpoint":
            args[0].state.checkpoint(args[0].path / "copy-of-chaos")
        return die()

    setattr(place.owner, place.name, passing)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def arm_index(nth: int) -> None:
    """The index is written elsewhere: whoever writes it gets this module, and the point."""
    start = start_helper

    def started(_: str, *words: str | Path) -> Any:
        return start("proof.ground.mortal", "index", str(nth), str(os.getpid()), *words)

    follower.start_helper = started  # type: ignore[attr-defined, assignment]


def follow_and_kill(nth: int, crawl: int) -> None:
    """The process that writes the index, up to its nth commit."""
    commit, left = IndexWriter.commit, [nth]

    def committed(*args: Any, **named: Any) -> None:
        commit(*args, **named)
        left[0] -= 1
        if not left[0]:
            os.kill(crawl, signal.SIGKILL)
            die()

    IndexWriter.commit = committed  # type: ignore[method-assign]
    # lazy: only the index's process needs it
    from lycosa.search.follower_process import main as follow

    follow()


def live(life: Life) -> None:
    """The child: never returns."""
    os.setsid()
    said = os.open(life.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    nothing = os.open(os.devnull, os.O_RDWR)
    for old, new in ((nothing, 0), (nothing, 1), (said, 2)):
        os.dup2(old, new)
    if life.point == INDEX_COMMIT:
        arm_index(life.nth)
    elif life.point:
        arm(life.point, life.nth)
    sys.argv = ["lycosa", *life.words]
    code = 1
    try:
        run_lycosa()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def main() -> None:
    if sys.argv[1:2] == ["index"]:
        _, _, nth, crawl, *words = sys.argv
        sys.argv = ["", *words]
        follow_and_kill(int(nth), int(crawl))
        return
    for line in sys.stdin:
        life = msgspec.json.decode(line, type=Life)
        child = os.fork()
        if not child:
            live(life)
        _answer(child)
        _, status = os.waitpid(child, 0)
        _answer(LifeEnd(os.waitstatus_to_exitcode(status), time.monotonic()))


def _answer(what: object) -> None:
    sys.stdout.write(msgspec.json.encode(what).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
