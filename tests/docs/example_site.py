"""The site docs/site in the place of the web: the commands and programs of the documentation run as they are written.

Every host that is asked for has these pages, without a network and without a pause between requests.
"""

import asyncio
import functools
import importlib
import mimetypes
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import lycosa
from lycosa.records import Request, Resolved, Response
from lycosa.settings import CrawlSettings
from tests.docs.blocks import REPOSITORY

SITE = REPOSITORY / "docs" / "site"
ADDRESS = "93.184.215.14"  # a public one, as the address guard wants it; nothing is sent there


class SiteDownloader:
    """Answers from the files of the site."""

    def start(self, request: Request, done: Any) -> None:
        loop = asyncio.get_running_loop()
        path = urlsplit(request.url).path
        root = Path("site") if Path("site/index.html").is_file() else SITE  # the tour has a copy, which it changes
        file = root / (path.lstrip("/") + ("index.html" if path.endswith("/") else ""))
        is_there = file.is_file()
        kind = mimetypes.guess_type(file.name)[0] or "text/html"
        line = "200 OK" if is_there else "404 Not Found"
        answer = Response(
            request.url,
            status=200 if is_there else 404,
            header_block=f"HTTP/1.1 {line}\r\ncontent-type: {kind}\r\n\r\n".encode(),
            headers={"content-type": kind},
            body=file.read_bytes() if is_there else b"not here",
            started_s=loop.time(),
            ended_s=loop.time(),
        )
        loop.call_soon(done, answer)

    def cancel_all(self) -> None: ...

    async def close(self) -> None: ...


class OneAddress:
    """Resolves every name."""

    async def resolve(self, name: str) -> Resolved:
        return Resolved(name, (ADDRESS,), 3600.0)

    def flush(self) -> None: ...

    async def close(self) -> None: ...


def replace_the_web(patch: pytest.MonkeyPatch) -> None:
    """Gives crawls of this process the site, and no delay, which they would spend asleep."""
    assembly = importlib.import_module("lycosa.api.assembly")
    crawls = importlib.import_module("lycosa.api.script")
    patch.setattr(assembly, "curl_downloader", lambda settings: SiteDownloader())
    patch.setattr(assembly, "cares_resolver", lambda settings: OneAddress())
    unhurried = functools.partial(lycosa.Crawl, delay_s=0)
    patch.setattr(lycosa, "Crawl", unhurried, raising=False)
    patch.setattr(crawls, "Crawl", unhurried)
    assert CrawlSettings().delay_s, "crawls have a delay by default"
