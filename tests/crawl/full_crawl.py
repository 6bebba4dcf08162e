"""The crawl that completeness and nothing-lost are shown on: 50 simulated hosts, over real sockets."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import AuditRules, LoggedRequest, audit, read_log
from lycosa.simweb.truth import truth_of
from tests.crawl.consistency import problems
from tests.simweb.conftest import running_simweb

HOSTS, DELAY_S = 50, 0.02
NOT_PAGES = ("robots.txt", ".xml", ".gz")
LONGEST_S = 600  # a crawl that takes this long hangs; it takes half a minute where nothing else runs


class FullCrawl(NamedTuple):
    """A web that is served, and the words of a crawl of all of it."""

    port: int
    log: Path
    into: Path
    words: tuple[str, ...]
    pages: int

    @property
    def seed(self) -> str:
        return self.words[1]


@contextmanager
def full_crawl(folder: Path, pages: int) -> Iterator[FullCrawl]:
    log, into = folder / "log", folder / "crawl"
    with running_simweb("--hosts", str(HOSTS), "--pages", str(pages), "--log", str(log)) as (ready, _):
        seed = f"http://h0.sim:{ready.port}/"
        names = ("--dns", f"127.0.0.1:{ready.dns_port}", "--allow-private", "127.0.0.0/8")
        words = ("crawl", seed, "--into", str(into), "--scope", "any", "--delay", str(DELAY_S), *names, "--quiet")
        yield FullCrawl(ready.port, log, into, words, pages)


def pages_of_whole(crawl: FullCrawl) -> list[LoggedRequest]:
    """The requests that brought a page, after it is checked that they are the truth and were polite, and that state
    and archive are whole."""
    web = SimWeb(SimSettings(hosts=HOSTS, pages=crawl.pages, port=crawl.port))
    entries = list(read_log(crawl.log)[1])
    pages = [e for e in entries if e.status == 200 and not e.path.endswith(NOT_PAGES)]
    assert {f"http://{e.host}:{crawl.port}{e.path}" for e in pages} == truth_of(
        web, [crawl.seed], scope="any", mine="ancestors"
    ).pages
    findings = audit(web.settings, entries, AuditRules(delay_s=DELAY_S))
    assert findings.is_clean, findings.broken()[:5]
    assert problems(crawl.into) == []
    files = [str(path) for path in sorted((crawl.into / "warc").iterdir())]
    command = [sys.executable, "-m", "warcio.cli", "check", *files]
    check = subprocess.run(command, capture_output=True, text=True, check=False)
    assert check.returncode == 0, check.stdout[-2000:]
    return pages
