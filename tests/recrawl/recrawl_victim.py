"""A recrawl that is killed at a chosen write: `python -m tests.recrawl.recrawl_victim DIR DAYS COMMIT MOMENT [PATCH]`.

The COMMIT-th commit kills the process with SIGKILL, "before" its records are appended, "between" records and state, or
"after" both. COMMIT 0 lets it run to its end. The web is the one of `test_recrawl`, in memory; with PATCH (store, read)
one whose hosts all have tables, and every page is looked at.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from lycosa.crawl.progress import Recrawl
from lycosa.simweb import SimSettings, SimWeb
from lycosa.store import CollectionStore
from lycosa.store.warc_file import WarcWriter
from tests.recrawl.recrawl_world import run

SETTINGS = SimSettings(seed=1, hosts=4, pages=160)
WITH_TABLES = SimSettings(seed=5, hosts=1, pages=60, tables=1.0)


def main(into: Path, days: float, commit: int, moment: str, patch: str = "") -> None:
    commits = 0

    def kill(at: str) -> None:
        if commits == commit and at == moment:
            os.kill(os.getpid(), signal.SIGKILL)

    append, write = WarcWriter.append, CollectionStore.commit

    def counted_append(self: WarcWriter, members: Any) -> Any:
        nonlocal commits
        commits += 1
        kill("before")
        places = append(self, members)
        kill("between")
        return places

    def counted_write(self: CollectionStore, *args: Any, **named: Any) -> None:
        write(self, *args, **named)
        kill("after")

    WarcWriter.append, CollectionStore.commit = counted_append, counted_write  # type: ignore[method-assign]
    if patch:
        run(SimWeb(WITH_TABLES), into, days=days, recrawl=Recrawl(everything=True), patch=patch)
    else:
        run(SimWeb(SETTINGS), into, days=days, recrawl=Recrawl(budget=100_000))


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
