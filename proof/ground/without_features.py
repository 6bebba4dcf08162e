"""A crawl without the seams of features that are off: `python -m proof.ground.without_features FOLDER INTO PAGES`.

For the benchmark `features`. As each module is loaded, the lines that only serve sessions, rendering, requisites,
`--keep`, `--external`, preferences or identity are taken out of its source; what is not found there as it is named here
is an error, so that this list cannot fall behind the tree. What stays is that rows and counters have fields for them.
With `--whole` nothing is taken out, but modules are loaded in the same way, so that both take as long to start.

So many pages of a folder are crawled from memory on virtual time: the same requests and commits in the same order every
time, however slow the machine is, so that instructions and calls can be counted. Prints one JSON object: the pages, and
with `--calls` how many functions of Python were called, and how many of those in the rooms of the features.
"""

import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, FrameType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lycosa.fetch import DownloaderStats
    from lycosa.records import Request, Response

ROOMS = tuple(f"/lycosa/{room}/" for room in ("sessions", "render", "identity", "notify", "recrawl"))
ORIGIN = "http://127.0.0.1:9/"
ANSWERS_AFTER_S = 0.01
CONNECTIONS = 8

# module → what stands there, and what a tree without the features would have in its place
TAKEN_OUT: dict[str, list[tuple[str, str]]] = {
    "lycosa.crawl.loop": [
        (
            "        converter = self.features.converter\n"
            "        if converter is None or not converter.take(answer):\n"
            "            self._readers.arrived(answer)",
            "        self._readers.arrived(answer)",
        ),
    ],
    "lycosa.crawl.progress": [
        ("in_flight - (self.converter.waiting if self.converter is not None else 0)", "in_flight"),
        ("        if self.converter is not None and self.converter.is_full:\n            return False\n", ""),
        ("        if self._frontier.holds_pages or has_pages:\n            self._hold_pages(in_flight)\n", ""),
        ("if has_pages and not self._frontier.counts.requisites:", "if has_pages:"),
        ("        if not may_ask and not self._frontier.holds_pages:\n            self._hold_pages(in_flight)\n", ""),
        (
            "        if self._frontier.holds_pages:\n"
            "            return self._other_shards is None or self._other_shards.may_ask(-1)\n",
            "",
        ),
    ],
    "lycosa.crawl.pages": [
        ("self.prepared(request, lease.kind) if self.hooks else request", "request"),
        ("        elif verdict := self.drop_verdict(answer):\n            self._drop(answer, verdict)\n", ""),
    ],
    "lycosa.crawl.reading": [
        (
            "        if not self.is_kept(response.url, media.essence):\n            return None\n",
            "",
        ),
        (
            "    if lines := answer_statements(lease, response, agent):\n"
            '        fields["preferences"] = "; ".join(lines)\n',
            "",
        ),
    ],
    "lycosa.crawl.keeper": [
        (
            "        if not (self._reader.keeps_all or self._is_kept(response, prepared)):\n"
            "            made = HttpExchange([], prepared.payload_sha1, answer.fetched_s)\n"
            "            return self._store(lease, response, prepared, made, is_known=False)\n",
            "",
        ),
        (
            "        is_kept = self._reader.keeps_all or self._is_kept(response, prepared)\n"
            "        if not is_kept:\n"
            '            made, copied = HttpExchange([], made.payload_sha1, made.fetched_s), ""\n',
            "",
        ),
        ("        row.preferences = document_statements(lease, response, page, self._reader.rules.agent)\n", ""),
        ("row.original, row.is_followed_only = copied, not is_kept", "row.original = copied"),
        ("        if is_kept:\n            if self.text_taker", "        if True:\n            if self.text_taker"),
        ("if not self.listeners or read.row.is_followed_only:", "if not self.listeners:"),
        (
            '        of_page = (line for line in original.preferences.split("\\n") '
            "if line.startswith(StatementPlace.PAGE))\n"
            "        row.preferences = pack_statements((*answer_statements(lease, response, agent), *of_page))\n",
            "",
        ),
    ],
    "lycosa.crawl.stats": [
        ("        self.totals.followed_only += row.is_followed_only\n", ""),
    ],
    "lycosa.frontier.scheduler": [
        (
            "        if rules is not None and rules.speaks_of_use and self._forbids_use(rules, entry):\n"
            "            return Reason.PREFERENCES\n",
            "",
        ),
        (
            "        if entry.kind is RequestKind.REQUISITE or entry.kind is RequestKind.EXTERNAL:\n"
            "            return None\n"
            "        if self.holds_pages:  # a retry, or one that was postponed\n"
            "            return HELD_S\n",
            "",
        ),
    ],
    "lycosa.frontier.frontier": [
        (
            "            if kind is RequestKind.REQUISITE:\n"
            "                queues.enqueue_requisite("
            "host, key, url.path, depth=depth, hops=hops, now=now, now_unix=now_unix)\n"
            "            else:\n"
            "                queues.enqueue(host, key, url.path, credit",
            "            if True:\n                queues.enqueue(host, key, url.path, credit",
        ),
    ],
    "lycosa.frontier.queues": [
        (
            "        if entry.kind is RequestKind.REQUISITE:\n"
            "            host.row.requisites -= 1\n"
            "            self.counts.requisites -= not host.row.gave_up\n",
            "",
        ),
    ],
}


class _Loader(SourceFileLoader):
    """Loads a module from its source, of which parts are taken out; what is compiled is not kept."""

    def __init__(self, name: str, path: str, parts: Sequence[tuple[str, str]]) -> None:
        super().__init__(name, path)
        self._parts = parts

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path).decode()
        return compile(without(source, self._parts, fullname), self.path, "exec", dont_inherit=True)


class _Finder(MetaPathFinder):
    def __init__(self, *, takes_out: bool) -> None:
        self._takes_out = takes_out

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in TAKEN_OUT:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        assert spec is not None and spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, TAKEN_OUT[fullname] if self._takes_out else ())
        return spec


def without(source: str, parts: Sequence[tuple[str, str]], name: str) -> str:
    """A source without these parts, each of which has to be there once."""
    for there, instead in parts:
        if source.count(there) != 1:
            raise LookupError(f"{name} has this {source.count(there)} times, not once: {there.strip()}")
        source = source.replace(there, instead)
    return source


class FolderSite:
    """Answers requests with the files of a folder, which are in memory; each takes a moment."""

    def __init__(self, files: "Mapping[str, bytes]") -> None:
        self._files, self._loop = files, asyncio.get_running_loop()

    def start(self, request: "Request", done: "Callable[[Response], None]") -> None:
        from lycosa.records import Response  # lazy: as it is loaded, parts are taken out

        body = self._files.get(request.url)
        now = self._loop.time()
        answer = Response(
            request.url,
            status=200 if body is not None else 404,
            header_block=b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "1"\r\n\r\n',
            headers={"content-type": "text/html", "etag": '"1"'},
            body=body or b"",
            started_s=now,
            ended_s=now + ANSWERS_AFTER_S,
        )
        self._loop.call_later(ANSWERS_AFTER_S, done, answer)

    def stats(self) -> "DownloaderStats":
        raise NotImplementedError  # nobody watches this crawl

    def cancel_all(self) -> None: ...

    async def close(self) -> None: ...


def crawl(folder: Path, into: Path, pages: int) -> int:
    """Crawls so many pages of a folder; returns how many there were."""
    from lycosa import Crawl  # lazy: as above
    from lycosa.simweb import run_virtual  # lazy: as above

    files = {ORIGIN + path.name: path.read_bytes() for path in sorted(folder.glob("*.html"))}

    async def main() -> int:
        site = FolderSite(files)
        options: Any = {"delay_s": 0.0, "per_host": CONNECTIONS, "per_ip": CONNECTIONS, "threads": 0, "pages": pages}
        now = asyncio.get_running_loop().time
        async with Crawl(f"{ORIGIN}index.html", into=into, downloader=site, now=now, **options) as running:
            return (await running.finish()).pages

    return run_virtual(main())


def main() -> None:
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    sys.meta_path.insert(0, _Finder(takes_out="--whole" not in sys.argv))
    calls = [0, 0]

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            calls[0] += 1
            calls[1] += any(room in frame.f_code.co_filename for room in ROOMS)

    if "--calls" in sys.argv:
        sys.setprofile(count)
    pages = crawl(Path(words[0]), Path(words[1]), int(words[2]))
    sys.setprofile(None)
    print(json.dumps({"pages": pages, "calls": calls[0], "in_rooms": calls[1]}))


if __name__ == "__main__":
    main()
