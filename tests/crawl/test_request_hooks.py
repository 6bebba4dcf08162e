"""Hooks on requests: they are asked for every request of a crawl, and what they add is sent and archived."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from lycosa import Crawl
from lycosa.frontier import RequestKind
from lycosa.records import Request
from lycosa.simweb.memory import run_virtual
from lycosa.store.warc_read import WarcReader
from tests.crawl.small_site import FIRST, SmallSite, links


class NamedKind:
    """A hook that says in a header field what kind of request it is."""

    def prepare(self, request: Request, kind: RequestKind) -> Request:
        return msgspec.structs.replace(request, headers=(*request.headers, ("X-Kind", kind.name)))


class SmallSiteWithHeaders(SmallSite):
    def __init__(self, answer: Any) -> None:
        super().__init__(answer)
        self.kinds: list[tuple[str, str]] = []

    def start(self, request: Request, done: Any) -> None:
        self.kinds.append((request.url.removeprefix(FIRST), dict(request.headers)["X-Kind"]))
        super().start(request, done)


def test_hooks_see_every_request_and_the_archive_has_what_they_add(tmp_path: Path) -> None:
    pages = {"": links("a"), "a": links()}

    def answer(url: str) -> str | None:
        return pages.get(url.removeprefix(FIRST))

    async def main() -> list[tuple[str, str]]:
        site = SmallSiteWithHeaders(answer)
        now = asyncio.get_running_loop().time
        async with Crawl(FIRST, into=tmp_path / "c", downloader=site, now=now, allow_private=True, mine="off") as crawl:
            crawl.engine.features.prepare_requests(NamedKind())
            await crawl.finish()
        return site.kinds

    assert run_virtual(main()) == [("robots.txt", "ROBOTS"), ("", "PAGE"), ("a", "PAGE")]
    (archive,) = (tmp_path / "c" / "warc").iterdir()
    requests = [record.block for record in WarcReader(archive) if record.type == "request"]
    assert [b"X-Kind: PAGE" in block for block in requests] == [False, True, True]
