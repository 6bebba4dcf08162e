"""`lycosa`, with every request that is started written to the file named by STARTED: URL and pinned address."""

import json
import os
from pathlib import Path

from lycosa.cli import main
from lycosa.fetch.curl import CurlDownloader
from lycosa.fetch.downloader import DoneCallback
from lycosa.records import Request

STARTED = Path(os.environ["STARTED"])
_start = CurlDownloader.start


def _recorded(self: CurlDownloader, request: Request, done: DoneCallback) -> None:
    with STARTED.open("a") as file:
        file.write(json.dumps([request.url, request.address, request.port]) + "\n")
    _start(self, request, done)


CurlDownloader.start = _recorded  # type: ignore[method-assign]
main()
