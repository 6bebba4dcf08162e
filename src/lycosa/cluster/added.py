"""URLs that the user adds to a shard with copies: whoever brought them keeps them until a copy of the shard has them.

They go into the shard's inbox, from there into its state, and from there into a copy, which is asked for at once.
Whoever cannot wait so long asks again with the same URLs; those that are on their way are not put a second time.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lycosa.cluster.keeper import Keeper
from lycosa.engine.inbox import FOLDER, Inbox
from lycosa.errors import ClusterError

LOOK_S = 0.1
PATIENCE_S = 8.0  # less than the limit of a call


class Added:
    """What was added to the shard in `folder` and is in no copy yet: URL → the copy that will have it."""

    def __init__(self, folder: Path, keeper: Keeper) -> None:
        self._folder, self._keeper = folder, keeper
        self._copies: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Added {len(self._copies)}>"

    async def put(self, urls: Sequence[str]) -> None:
        """Returns when a copy has them all; ClusterError if that takes too long: then the same again, later."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                new = [url for url in urls if url not in self._copies]
                if new:
                    Inbox(self._folder).put(new)
                    while any((self._folder / FOLDER).glob("*.urls")):  # noqa: ASYNC110 -- until a commit has them
                        await asyncio.sleep(LOOK_S)
                    self._copies |= dict.fromkeys(new, self._keeper.want())
                last = max((self._copies[url] for url in urls), default=0)
                while self._keeper.copies < last:  # noqa: ASYNC110 -- no event tells
                    await asyncio.sleep(LOOK_S)
        except TimeoutError as error:
            raise ClusterError("no copy of the shard has the URLs yet") from error
        for url in urls:
            self._copies.pop(url, None)
