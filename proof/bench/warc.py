"""CPU time to build, append and read back the records of a page: request, response and metadata.

python -m proof.bench.warc [--kilobytes 26] [--pages 2000]
"""

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lycosa.records import Request, Response
from lycosa.store.warc_file import WarcWriter
from lycosa.store.warc_read import WarcReader
from lycosa.store.warc_record import response_exchange

ROUNDS = 5


def page(size_bytes: int, number: int) -> bytes:
    """HTML that compresses about five times, as generated documentation does: much markup, few words."""
    choose = random.Random(number)
    words = ["".join(choose.choices("etaoinshrdlu", k=choose.randint(2, 9))) for _ in range(200)]
    rows, size = [], 0
    while size < size_bytes:
        name, other = choose.choice(words), choose.choice(words)
        rows.append(
            f'<tr class="alternate"><td class="first"><code><a href="{other}.html" title="class in {other}">{other}'
            f'</a></code></td>\n<th class="second" scope="row"><code><span class="member"><a href="#{name}">{name}</a>'
            f'</span>()</code></th>\n<td class="last"><div>{" ".join(choose.choices(words, k=8))}</div></td></tr>\n'
        )
        size += len(rows[-1])
    return "".join(rows).encode()[:size_bytes]


def fetched(size_bytes: int, number: int) -> tuple[Request, Response]:
    url = f"https://docs.example.org/api/java/util/page{number}.html?lang=en"
    sent = (("User-Agent", "lycosa (+https://example.org/bot)"), ("Accept", "*/*"), ("Accept-Encoding", "gzip, br"))
    body = page(size_bytes, number % 20)
    block = (
        b"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\n"
        b"Content-Type: text/html\r\nContent-Length: %d\r\nConnection: keep-alive\r\n"
        b'Last-Modified: Mon, 01 Jan 2024 00:00:00 GMT\r\nETag: "65920080-6590"\r\nAccept-Ranges: bytes\r\n\r\n'
    ) % len(body)
    request = Request(url=url, host="docs.example.org", port=443, address="192.0.2.1", headers=sent)
    return request, Response(url=url, status=200, header_block=block, body=body, address="192.0.2.1")


def build(fetches: list[tuple[Request, Response]]) -> list[list[bytes]]:
    metadata = {"fetchTimeMs": "120", "via": "https://docs.example.org/", "hopsFromSeed": "LL"}
    return [
        response_exchange(request, response, fetched_s=1.7e9, metadata=metadata).members
        for request, response in fetches
    ]


def best_us(work: Callable[[], object], pages: int) -> float:
    """CPU microseconds a page, best of some rounds."""
    spent_s = []
    for _ in range(ROUNDS):
        started_s = time.process_time()
        work()
        spent_s.append(time.process_time() - started_s)
    return min(spent_s) / pages * 1e6


def read(path: Path) -> int:
    with WarcReader(path) as reader:
        return sum(len(record.block) for record in reader)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kilobytes", type=int, default=26)
    parser.add_argument("--pages", type=int, default=2000)
    arguments = parser.parse_args()
    fetches = [fetched(arguments.kilobytes * 1000, number) for number in range(arguments.pages)]
    built = build(fetches)
    stored_bytes = sum(len(member) for members in built for member in members)
    with tempfile.TemporaryDirectory(prefix="lycosa-bench-") as folder:
        writer = WarcWriter(Path(folder), info={"software": "lycosa"})
        writer.recover({})
        appending_us = best_us(lambda: [writer.append(members) for members in built], arguments.pages)
        writer.close()
        reading_us = best_us(lambda: read(writer.path(1)), arguments.pages * ROUNDS)
    print(f"build, µs CPU/page   {best_us(lambda: build(fetches), arguments.pages):8.1f}")
    print(f"append, µs CPU/page  {appending_us:8.1f}")
    print(f"read, µs CPU/page    {reading_us:8.1f}")
    print(f"stored, bytes/page   {stored_bytes / arguments.pages:8.0f}  of {arguments.kilobytes * 1000}")


if __name__ == "__main__":
    main()
