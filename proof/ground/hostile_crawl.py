"""One crawl of the benchmark `hostile`, in a process of its own: `python -m proof.ground.hostile_crawl URL INTO PAGES`.

Crawls so many pages from a URL as the command does, and times the analysis of the same document alone. How long the
event loop was held is how late a task that wants to run each millisecond comes, less the time that the loop's thread
stood in line for a processor: other processes do not count, other threads that do not let Python go do. Prints one
JSON object.
"""

import asyncio
import gc
import json
import sys
import threading
import time
import urllib.request
from pathlib import Path

from lycosa.api.crawl import Crawl
from lycosa.web.kernel import kernel_name
from lycosa.web.page import analyse_page
from proof.ground.commands import memory_mb, own_cpu_s

EACH_S = 0.001


def waited_s() -> float:
    """How long this thread was ready to run and not let."""
    return int(Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_text().split()[1]) / 1e9


async def longest_hold_s() -> float:
    """Until it is cancelled; then the longest that the loop was held."""
    longest = 0.0
    try:
        while True:
            before, waited = time.monotonic(), waited_s()
            await asyncio.sleep(EACH_S)
            longest = max(longest, time.monotonic() - before - EACH_S - (waited_s() - waited))
    except asyncio.CancelledError:
        return longest


async def crawl(url: str, into: Path, pages: int) -> float:
    async with Crawl(url, into=into, delay_s=0, pages=pages) as running:
        gc.freeze()  # as the command does
        watch = asyncio.create_task(longest_hold_s())
        await running.finish()
        watch.cancel()
        return await watch


def main() -> None:
    url, into, pages = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    held_s = asyncio.run(crawl(url, into, pages))
    told = {"held_s": held_s, "cpu_s": own_cpu_s(), "peak_mb": memory_mb(peak=True), "analyser": kernel_name()}
    with urllib.request.urlopen(url) as answer:
        body = answer.read()
    began_s = time.process_time()
    page = analyse_page(body, url=url, content_type="text/html")
    told["analysis_s"] = time.process_time() - began_s
    print(json.dumps(told | {"links": len(page.links), "is_cut": page.is_cut}))


if __name__ == "__main__":
    main()
