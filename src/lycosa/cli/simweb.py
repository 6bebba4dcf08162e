"""`lycosa simweb` runs the simulated web, shows its pages, tells its truth, audits its log; `lycosa demo` crawls one.

The options that shape the web stand before the subcommand, so that all of them speak of the same web:
`lycosa simweb --seed 3 --hosts 10 truth http://h0.sim:8800/`.
"""

import json
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lycosa.cli.options import CrawlJob
from lycosa.cli.wording import counted
from lycosa.errors import LycosaError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lycosa.simweb import Audit, Finding, RunningWeb, SimSettings


AUDIT_ROWS = 20  # hosts or addresses in an audit before only the broken ones are shown

app = typer.Typer(invoke_without_command=True, rich_markup_mode=None)


def _shares(option: str, values: list[str]) -> dict[str, float]:
    """`name=share`, repeated or separated by commas, as a mapping."""
    shares = {}
    for item in ",".join(values).split(","):
        if not item:
            continue
        name, equals, share = item.partition("=")
        try:
            shares[name.strip()] = float(share) if equals else 1.0
        except ValueError as error:
            raise SettingsError(f"{option} {item!r}: write NAME=SHARE with a share between 0 and 1") from error
    return shares


@app.callback(help="Run the simulated web: many hosts, names, change and trouble from one seed, on loopback only.")
def simweb(
    context: typer.Context,
    seed: Annotated[int, typer.Option(help="The same seed gives the same bytes, everywhere.")] = 1,
    hosts: Annotated[int, typer.Option(help="Number of hosts: h0.sim, h1.sim, …")] = 50,
    pages: Annotated[int, typer.Option(help="Number of pages in all.")] = 20_000,
    addresses: Annotated[int, typer.Option(help="Number of addresses the hosts share; 0: a quarter of the hosts.")] = 0,
    sizes: Annotated[str, typer.Option(help="Pages a host: heavy (few large, many small) or uniform.")] = "heavy",
    port: Annotated[int, typer.Option(help="HTTP port on every loopback address; 0: a free one.")] = 8800,
    dns_port: Annotated[int, typer.Option(help="UDP port of the name server on 127.0.0.1; 0: a free one.")] = 8853,
    log: Annotated[Path | None, typer.Option(help="Write every request to this new file, one JSON line each.")] = None,
    time_scale: Annotated[float, typer.Option(help="Simulated seconds a real second; 0: time stands still.")] = 0.0,
    mirrors: Annotated[float, typer.Option(help="Share of articles that are copies of another page.")] = 0.03,
    near_duplicates: Annotated[float, typer.Option(help="Share of articles that are nearly copies.")] = 0.03,
    tables: Annotated[float, typer.Option(help="Share of hosts with .tol and .tvi beside their documents.")] = 0.25,
    trouble: Annotated[
        list[str], typer.Option(metavar="NAME=SHARE", help="Trouble; see `simweb troubles`. Repeatable.")
    ] = [],  # noqa: B006
    robots: Annotated[list[str], typer.Option(metavar="NAME=SHARE", help="Kinds of robots.txt. Repeatable.")] = [],  # noqa: B006
    dns: Annotated[list[str], typer.Option(metavar="NAME=SHARE", help="Trouble with names. Repeatable.")] = [],  # noqa: B006
    dns_ttl: Annotated[int, typer.Option(help="Time to live of a name's address, in seconds.")] = 300,
    rtt: Annotated[float, typer.Option(metavar="MS", help="Median round-trip time to a host.")] = 0.0,
    rtt_spread: Annotated[float, typer.Option(metavar="SIGMA", help="Log-normal spread of it over hosts.")] = 0.0,
    bandwidth: Annotated[
        float,
        typer.Option(metavar="BYTES/S", help="Median bandwidth of a host, shared by its transfers; 0: no limit."),
    ] = 0.0,
    bandwidth_spread: Annotated[float, typer.Option(metavar="SIGMA", help="Log-normal spread of it over hosts.")] = 0.0,
    line: Annotated[
        float, typer.Option(metavar="BYTES/S", help="Bandwidth that all transfers of all hosts share; 0: no limit.")
    ] = 0.0,
    transfer: Annotated[
        float,
        typer.Option(metavar="BYTES/S", help="Bandwidth of one transfer, whatever else is under way; 0: no limit."),
    ] = 0.0,
    gzip: Annotated[bool, typer.Option(help="Compress for clients that accept it.")] = True,
    tls: Annotated[bool, typer.Option(help="Speak HTTPS with certificates of an authority made for this run.")] = False,
    ca_file: Annotated[Path, typer.Option(help="Where --tls writes the authority's certificate.")] = Path(
        "simweb-ca.pem"
    ),
    json: Annotated[bool, typer.Option("--json", help="When ready, print one JSON object with the ports.")] = False,
) -> None:
    if context.invoked_subcommand in ("audit", "troubles"):
        return
    from lycosa.simweb import SimSettings, check_time

    settings = SimSettings(
        seed=seed,
        hosts=hosts,
        pages=pages,
        addresses=addresses,
        sizes=sizes,
        scheme="https" if tls else "http",
        port=port,
        mirrors=mirrors,
        near_duplicates=near_duplicates,
        tables=tables,
        trouble=_shares("--trouble", trouble),
        robots=_shares("--robots", robots),
        dns=_shares("--dns", dns),
        dns_ttl_s=dns_ttl,
        rtt_ms=rtt,
        rtt_spread=rtt_spread,
        bandwidth_bytes_s=bandwidth,
        bandwidth_spread=bandwidth_spread,
        line_bytes_s=line,
        transfer_bytes_s=transfer,
    )
    check_time("--time-scale", time_scale)
    if port == 0 and context.invoked_subcommand:
        raise SettingsError("--port is 0: a free port is only known to a web that runs, name the one to write in URLs")
    context.obj = settings
    if context.invoked_subcommand is None:
        _serve(
            settings,
            dns_port=dns_port,
            log=log,
            time_scale=time_scale,
            gzip=gzip,
            ca_file=ca_file if tls else None,
            json=json,
        )


def _serve(
    settings: "SimSettings",
    *,
    dns_port: int,
    log: Path | None,
    time_scale: float,
    gzip: bool,
    ca_file: Path | None,
    json: bool,
) -> None:
    import asyncio
    import signal

    import uvloop

    from lycosa.simweb import serve_web

    async def main() -> None:
        stop = asyncio.Event()
        for signum in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signum, stop.set)
        async with serve_web(
            settings,
            dns_port=dns_port,
            log=log,
            time_scale=time_scale,
            gzip=gzip,
            ca_file=ca_file,
            on_failure=stop.set,
        ) as web:
            _announce(web, log, json)
            await stop.wait()
        print(f"served {web.server.log.requests:,} requests", file=sys.stderr)

    uvloop.run(main())


def _announce(web: "RunningWeb", log: Path | None, json: bool) -> None:
    import msgspec

    s = web.web.settings
    if json:
        ready = {
            "port": web.port,
            "dns_port": web.dns_port,
            "front_page": web.front_page,
            "hosts": s.hosts,
            "pages": s.pages,
        }
        print(msgspec.json.encode(ready).decode(), flush=True)
    print(
        f"simulated web, seed {s.seed}: {counted(s.hosts, 'host')}, {counted(s.pages, 'page')},"
        f" {counted(s.address_count, 'address')}\n"
        f"  pages   {web.front_page}  (that is {web.web.linker.origin(0)}/)\n"
        f"  names   127.0.0.1:{web.dns_port}  (h0.sim … h{s.hosts - 1}.sim)\n"
        f"  log     {log or 'none, --log FILE writes one'}\n"
        "  Ctrl-C ends it",
        file=sys.stderr,
        flush=True,
    )


@app.command()
def show(
    context: typer.Context,
    urls: Annotated[list[str] | None, typer.Argument(help="Pages to show; default: a few.")] = None,
    body: Annotated[bool, typer.Option("--body", help="Print the whole document instead of a summarise.")] = False,
) -> None:
    """Show pages of the web without running it: status, size, title, links."""
    from lycosa.simweb import SimWeb, example_pages, summarise

    web = SimWeb(context.obj)
    for url in urls or example_pages(web):
        if body:
            sys.stdout.buffer.write(summarise(web, url).body)
        else:
            print(summarise(web, url))


@app.command()
def truth(
    context: typer.Context,
    seeds: Annotated[list[str], typer.Argument(help="Where the perfect crawler starts.")],
    scope: Annotated[str, typer.Option(help="host, domain, prefix or any.")] = "host",
    robots: Annotated[bool, typer.Option(help="Obey robots.txt.")] = True,
    sitemaps: Annotated[bool, typer.Option(help="Read sitemaps.")] = True,
    mine: Annotated[str, typer.Option(help="Guess URLs: off, ancestors or all.")] = "off",
    depth: Annotated[int | None, typer.Option(metavar="N", help="Most links from a seed; default: any number.")] = None,
    at: Annotated[float, typer.Option(metavar="SECONDS", help="Simulated time.")] = 0.0,
) -> None:
    """Print the pages that a perfect crawler would fetch, one URL a line."""
    from lycosa.simweb import SimWeb, TruthLimits
    from lycosa.simweb import truth as find_truth

    found = find_truth(
        SimWeb(context.obj),
        seeds,
        scope=scope,
        robots=robots,
        sitemaps=sitemaps,
        mine=mine,
        limits=TruthLimits(max_depth=depth),
        time_s=at,
    )
    for url in sorted(found.pages):
        print(url)
    print(
        f"{counted(len(found.pages), 'page')}, {counted(len(found.redirects), 'redirect')},"
        f" {len(found.troubled):,} in trouble",
        file=sys.stderr,
    )


@app.command()
def troubles() -> None:
    """List the knobs of --trouble, --robots and --dns."""
    from lycosa.simweb import DNS, DOCUMENT_TROUBLE, HOST_TROUBLE, ROBOTS, ROBOTS_DEFAULTS

    groups = {
        "--trouble, shares of documents": DOCUMENT_TROUBLE,
        "--trouble, shares of hosts": HOST_TROUBLE,
        "--robots, shares of hosts": {
            k: v + (f" (default {ROBOTS_DEFAULTS[k]:g})" if k in ROBOTS_DEFAULTS else "") for k, v in ROBOTS.items()
        },
        "--dns, shares of hosts": DNS,
    }
    for title, knobs in groups.items():
        print(title)
        for name, meaning in knobs.items():
            print(f"  {name:<14} {meaning}")


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(help="A log written by `lycosa simweb --log`.")],
    delay: Annotated[float, typer.Option(metavar="S", help="Least pause between two requests to a host.")] = 1.0,
    per_host: Annotated[int, typer.Option(metavar="N", help="Most requests at a time to a host.")] = 1,
    ip_delay: Annotated[float, typer.Option(metavar="S", help="Least pause between two requests to an address.")] = 0.0,
    per_ip: Annotated[
        int, typer.Option(metavar="N", help="Most requests at a time to an address, at least --per-host.")
    ] = 4,
    all_rows: Annotated[bool, typer.Option("--all", help="Show every host and address.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
) -> None:
    """Check a log for politeness; exits 1 if a rule was broken. Crawl-delay and Retry-After count as rules too."""
    from lycosa.simweb import AuditRules, audit_log

    findings = audit_log(log, AuditRules(delay_s=delay, per_host=per_host, ip_delay_s=ip_delay, per_ip=per_ip))
    if json:
        import msgspec

        print(
            msgspec.json.encode(
                {"clean": findings.is_clean, "broken": findings.broken()} | msgspec.to_builtins(findings)
            ).decode()
        )
    else:
        _print_audit(findings, all_rows)
    if not findings.is_clean:
        raise typer.Exit(1)


def _print_audit(findings: "Audit", all_rows: bool) -> None:
    for title, rows in (("host", findings.hosts), ("address", findings.addresses)):
        shown = rows if all_rows or len(rows) <= AUDIT_ROWS else [row for row in rows if row.is_broken]
        if shown:
            print(f"{title:<18}{'requests':>9}{'overlap':>9}{'gap s':>10}{'early':>7}{'robots':>8}")
            print("".join(f"{_row(row)}\n" for row in shown), end="")
        if len(shown) < len(rows):
            print(f"{len(rows) - len(shown):,} others keep the rules; --all shows them")
    for sentence in findings.broken():
        print(sentence)
    counts = f"{counted(len(findings.hosts), 'host')}, {counted(len(findings.addresses), 'address')}"
    print(f"{counted(findings.requests, 'request')}, {counts}: {'clean' if findings.is_clean else 'BROKEN'}")


def _row(finding: "Finding") -> str:
    gap = "–" if finding.smallest_gap_s is None else f"{finding.smallest_gap_s:.3f}"
    against = len(finding.robots) + finding.before_robots + finding.before_retry_after
    return (
        f"{finding.name:<18}{finding.requests:>9,}{finding.largest_overlap:>9}{gap:>10}{finding.early:>7,}{against:>8,}"
    )


LEAST_S, MOST_S = 0.1, 86_400.0
PAGES_A_HOST = 400
DEMO_OVER = "the demo is over, and its web is gone: a larger --seconds shows more"


def register_demo(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    into: Annotated[Path, typer.Option(metavar="DIR", help="Where the collection goes.")] = Path("lycosa-demo"),
    seconds: Annotated[float, typer.Option(help="How long to crawl.")] = 15.0,
    hosts: Annotated[int, typer.Option(help="Hosts of the simulated web.")] = 200,
) -> None:
    """Crawl a simulated web for some seconds, to see what it looks like."""
    from lycosa.cli import crawl
    from lycosa.settings import CrawlSettings
    from lycosa.simweb import SimSettings

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
        crawl.run(CrawlJob(settings, _fresh(into), rest=DEMO_OVER))


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
