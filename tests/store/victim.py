"""A process to be killed: makes collections or fills one, in forked children that are shot after a while.

    python victim.py create|fill|churn   reads lines "FOLDER SECONDS", answers each with "last" when the child is dead

Children are forked from a process that has never opened RocksDB, whose threads do not survive a fork. `fill` commits
page after page and acknowledges each one over a pipe only after its commit returned; "last" is the last acknowledged.
`churn` changes the same rows of two families again and again and makes RocksDB rewrite its files meanwhile.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from lycosa.records import Family, Request, Response
from lycosa.store import Batch, CollectionStore, HttpExchange, response_exchange

WARC_BYTES = 100_000  # so that files are rotated within a run
PAGES_PER_COMMIT = 7


def body_of(number: int) -> bytes:
    """A page of its own for every number, its length too."""
    return b"<p>%d</p>" % number * (1 + number * 7919 % 900)


def page(collection: CollectionStore, batch: Batch, number: int) -> None:
    url = f"http://host.example/{number}"
    body = body_of(number)
    request = Request(url=url, host="host.example", port=80, address="192.0.2.1")
    block = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
    response = Response(url=url, status=200, header_block=block, body=body, address="192.0.2.1")
    members = response_exchange(request, response, fetched_s=float(number), metadata={"n": str(number)}).members
    place = collection.warc.append(members)[HttpExchange.RESPONSE]
    batch.put(Family.PAGE, number.to_bytes(4), place.pack())
    batch.put(Family.URL, number.to_bytes(4), b"done")


def fill(folder: Path, acknowledge: int) -> None:
    with CollectionStore.create(folder, warc_bytes=WARC_BYTES) as collection:
        number = sum(1 for _ in collection.state.walk(Family.PAGE))
        while True:
            batch = Batch()
            for _ in range(PAGES_PER_COMMIT):
                page(collection, batch, number)
                number += 1
            collection.commit(batch, sync=number % 3 == 0)
            os.write(acknowledge, b"%d\n" % number)


def churn(folder: Path) -> None:
    with CollectionStore.create(folder) as collection:
        number = 0
        while True:
            batch = Batch()
            for row in range(number, number + 50):
                for family in (Family.URL, Family.QUEUE):
                    batch.put(family, (row * 7919 % 1_000_003).to_bytes(4), number.to_bytes(4))
            collection.commit(batch)
            number += 50
            if not number % 1000:
                collection.state.compact()
                time.sleep(0.05)  # a reader gets its turn on one processor too; a crawl flushes every few seconds


WORKS: dict[str, Callable[[Path, int], None]] = {
    "create": lambda folder, _: CollectionStore.create(folder).close(),
    "fill": fill,
    "churn": lambda folder, _: churn(folder),
}


def shot(work: str, folder: Path, after_s: float) -> str:
    heard, acknowledge = os.pipe()
    child = os.fork()
    if not child:
        try:
            WORKS[work](folder, acknowledge)
        finally:
            os._exit(0)
    os.close(acknowledge)
    said = b""
    end_s = time.monotonic() + after_s
    while (left_s := end_s - time.monotonic()) > 0 and select.select([heard], [], [], left_s)[0]:
        if not (data := os.read(heard, 1 << 16)):
            break
        said += data
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while data := os.read(heard, 1 << 16):
        said += data
    os.close(heard)
    return said.split()[-1].decode() if said.split() else "0"


def main() -> None:
    for line in sys.stdin:
        folder, after_s = line.rsplit(" ", 1)
        sys.stdout.write(shot(sys.argv[1], Path(folder), float(after_s)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
