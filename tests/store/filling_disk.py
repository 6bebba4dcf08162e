"""Fills a disk under a collection, makes room, and goes on; a script, because it needs limits or a mount of its own.

    python filling_disk.py limit|mount archive|state FOLDER   prints what the failure said and what was found afterwards

`limit` lowers the largest file size this process may write, `mount` puts a small tmpfs on FOLDER.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from lycosa.errors import StoreError
from lycosa.records import Family
from lycosa.store import Batch, CollectionStore
from lycosa.store.warc_read import WarcReader
from lycosa.store.warc_record import warcinfo

LIMIT_BYTES = 3_000_000


def fill(collection: CollectionStore, what: str, number: int) -> Batch:
    """One step: an append or a large row, and the row that counts it."""
    batch = Batch()
    if what == "archive":
        place = collection.warc.append([warcinfo({"n": os.urandom(20_000).hex()}, filename="x", created_s=0.0)])[0]
        batch.put(Family.PAGE, number.to_bytes(4), place.pack())
    else:
        batch.put(Family.PAGE, number.to_bytes(4), os.urandom(20_000))
    return batch


def until_full(collection: CollectionStore, what: str) -> tuple[int, str, Batch | None]:
    """(steps that worked, what the failure said, the batch that was not committed)"""
    for number in range(100_000):
        batch = None
        try:
            batch = fill(collection, what, number)
            collection.commit(batch)
        except StoreError as error:
            return number, str(error), batch
    raise AssertionError("the disk did not fill up")


def limit(folder: Path) -> Callable[[], None]:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, hard))
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


def mount(folder: Path) -> Callable[[], None]:
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LIMIT_BYTES}", "tmpfs", str(folder)], check=True)
    return lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(folder)], check=True) and None


def main() -> None:
    how, what, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    make_room = {"limit": limit, "mount": mount}[how](folder)
    with CollectionStore.create(folder / "crawl") as collection:
        done, said, batch = until_full(collection, what)
        readable = sum(value is not None for _, value in collection.state.walk(Family.PAGE))
        make_room()
        collection.state.reopen()
        if batch is not None:
            collection.commit(batch)
            done += 1
        for number in range(done, done + 20):
            collection.commit(fill(collection, what, number))
    with CollectionStore.open(folder / "crawl") as collection:
        rows = [int.from_bytes(key) for key, _ in collection.state.walk(Family.PAGE)]
        whole = rows == list(range(done + 20)) and collection.recovery.short == {}
    for path in (folder / "crawl" / "warc").iterdir():
        with WarcReader(path) as reader:
            whole = whole and len(list(reader)) == done + 21 and not reader.problems
    found = ("readable" if readable >= done - 1 else "unreadable", "whole" if whole else "broken")
    sys.stdout.write(f"{said}\n{' '.join(found)}\n")


if __name__ == "__main__":
    main()
