"""`lycosa demo`: the simulated web, a crawl of it with the live view, the summary, and what to try on what it left."""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.cli.crawl_options import CrawlOrder
from lycosa.cli.wording import counted
from lycosa.errors import LycosaError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator


LEAST_S, MOST_S = 0.1, 86_400.0
PAGES_A_HOST = 400
OVER = "the demo is over, and its web is gone: a larger --seconds shows more"


def register(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    into: Annotated[Path, typer.Option(metavar="DIR", help="Where the collection goes.")] = Path("lycosa-demo"),
    seconds: Annotated[float, typer.Option(help="How long to crawl.")] = 15.0,
    hosts: Annotated[int, typer.Option(help="Hosts of the simulated web.")] = 200,
) -> None:
    """Crawl a simulated web for some seconds, to see what it looks like."""
    from lycosa.cli import crawl
    from lycosa.settings import CrawlSettings
    from lycosa.simweb.settings import SimSettings

    if not LEAST_S <= seconds <= MOST_S:
        raise SettingsError(f"--seconds is {seconds:g}, it must be between {LEAST_S:g} and {MOST_S:g}")
    SimSettings(hosts=hosts, pages=hosts * PAGES_A_HOST)  # says what cannot be before anything is started
    with _simulated_web(hosts) as (port, dns_port):
        settings = CrawlSettings(
            seeds=(f"http://h0.sim:{port}/",),
            scope="any",
            delay_s=0.2,
            time_s=seconds,
            dns=(f"127.0.0.1:{dns_port}",),
            allow_private=("127.0.0.0/8",),
        )
        crawl.run(CrawlOrder(settings, _fresh(into), rest=OVER))


def _fresh(into: Path) -> Path:
    """`into`, or the next free name beside it: every demo has a web of its own."""
    number, path = 1, into
    while path.exists():
        number += 1
        path = into.with_name(f"{into.name}-{number}")
    return path


@contextmanager
def _simulated_web(hosts: int) -> "Iterator[tuple[int, int]]":
    """The simulated web in a process of its own; (port, DNS port)."""
    shape = ["--hosts", str(hosts), "--pages", str(hosts * PAGES_A_HOST), "--rtt", "30", "--rtt-spread", "0.5"]
    command = [sys.executable, "-m", "lycosa", "simweb", *shape, "--port", "0", "--dns-port", "0", "--json"]
    process = subprocess.Popen(  # in a session of its own: Ctrl-C is for the crawl
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    )
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        if not ready:
            raise LycosaError("the simulated web did not start: try `lycosa simweb` to see why")
        ports = json.loads(ready)
        print(f"a simulated web of {counted(hosts, 'host')} and {hosts * PAGES_A_HOST:,} pages is up", file=sys.stderr)
        yield ports["port"], ports["dns_port"]
    finally:
        process.terminate()
        process.wait(timeout=10)
