"""Makes a collection that knows a million URLs, all queued, and dies without closing it.

python -m tests.cli.million_urls DIR
"""

import os
import sys
from pathlib import Path

from lycosa.engine.counters import Counters
from lycosa.frontier.frontier import Frontier, Pace
from lycosa.store import Batch, Collection
from lycosa.web.url import Url, parse

URLS, HOSTS, A_COMMIT = 1_000_000, 1_000, 1_000


def url(number: int) -> Url:
    found = parse(f"http://h{number % HOSTS}.sim/section/{number // HOSTS // 100}/page-{number}.html")
    assert found is not None
    return found


def main() -> None:
    collection = Collection.create(Path(sys.argv[1]))
    frontier = Frontier(collection.state, Pace(), locate=lambda host: None, started=0.0, started_unix=0.0)
    counters = Counters.load(None)
    for first in range(0, URLS, A_COMMIT):
        batch = frontier.batch = Batch()
        frontier.admit([url(number) for number in range(first, first + A_COMMIT)], depth=1, now=0.0)
        frontier.write_hosts()
        totals = {"known": frontier.known, "queued": frontier.queued, "hosts": frontier.host_count}
        batch.put(*counters.row(**totals, seconds=1.0))
        collection.commit(batch)
        frontier.committed(0.0)
    os._exit(0)  # as `kill -9` would: nothing is closed


if __name__ == "__main__":
    main()
