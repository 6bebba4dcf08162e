"""Viewers: each gets the same counts, and one that does not keep up is dropped."""

import asyncio
from pathlib import Path

import pytest

from lycosa.serve import live
from lycosa.serve.live import MOST_BEHIND, Broadcast
from lycosa.serve.source import CollectionSource


def test_slow_viewer_is_dropped_and_the_others_go_on(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.001)

    async def main() -> None:
        broadcast = Broadcast(CollectionSource(collection))
        slow, quick = broadcast.view(), broadcast.view()
        await anext(slow)  # it connects, and reads no more
        await anext(quick)
        assert broadcast.viewers == 2
        while broadcast.viewers == 2:
            assert (await anext(quick)).startswith(b"event: status\ndata: {")
        assert (await anext(quick)).startswith(b"event: status")
        left = [message async for message in slow]
        assert len(left) <= MOST_BEHIND, "it is told of its end, not of what it missed"
        await broadcast.close()
        assert [message async for message in quick] == []

    asyncio.run(main())


def test_viewer_gets_charts_with_the_first_message_and_when_it_comes_later(
    collection: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "EVERY_S", 0.001)

    async def main() -> None:
        broadcast = Broadcast(CollectionSource(collection))
        first = broadcast.view()
        assert await anext(first) == b"retry: 2000\n\n"
        assert b"event: timeline\ndata: [" in await anext(first)
        assert b"event: timeline" not in await anext(first)
        second = broadcast.view()
        assert b"event: timeline" in await anext(second)
        await broadcast.close()

    asyncio.run(main())
