"""`lycosa simweb` runs the simulated web, shows its pages, tells its truth and audits its log.

The options that shape the web stand before the subcommand, so that all of them speak of the same web:
`lycosa simweb --seed 3 --hosts 10 truth http://h0.sim:8800/`.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
import uvloop

from lycosa.cli.options import CommandTable
from lycosa.cli.wording import counted
from lycosa.errors import SettingsError
from lycosa.simweb import (
    DNS,
    DOCUMENT_TROUBLE,
    HOST_TROUBLE,
    HOSTILE_ROWS,
    ROBOTS,
    ROBOTS_DEFAULTS,
    Audit,
    AuditRules,
    Finding,
    HostileWeb,
    RunningWeb,
    SimSettings,
    SimWeb,
    TruthLimits,
    audit_log,
    check_time,
    example_pages,
    hostile_page,
    serve_hostile,
    serve_web,
    summarise,
    truth_of,
)

AUDIT_ROWS = 20  # hosts or addresses in an audit before only the broken ones are shown

# Groups of the options in the help.
WEB, TROUBLE, NETWORK, SERVING = "The web", "Trouble", "Network", "Serving"

app = CommandTable(invoke_without_command=True)


def _option(group: str, metavar: str | None, help: str, *, name: str | None = None) -> Any:
    return typer.Option(*([name] if name else []), metavar=metavar, help=help, rich_help_panel=group)


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


@app.callback(
    help="Run a simulated web to test crawlers on: hosts, names, change and trouble from one seed, on loopback only.",
    epilog="""
        lycosa simweb --hosts 10 --log requests.jsonl
        lycosa simweb --hosts 10 truth http://h0.sim:8800/
        lycosa simweb audit requests.jsonl
    """,
)
def simweb(
    context: typer.Context,
    seed: Annotated[int, _option(WEB, "N", "The same seed makes the same web, byte for byte.")] = 1,
    hosts: Annotated[int, _option(WEB, "N", "Make this many hosts: h0.sim, h1.sim, …")] = 50,
    pages: Annotated[int, _option(WEB, "N", "Make this many pages in all.")] = 20_000,
    addresses: Annotated[
        int, _option(WEB, "N", "Let the hosts share this many addresses; 0 is a quarter of the hosts.")
    ] = 0,
    sizes: Annotated[
        str, _option(WEB, "heavy|uniform", "Make few large hosts and many small ones, or equal ones.")
    ] = "heavy",
    mirrors: Annotated[float, _option(WEB, "SHARE", "Make this share of the articles copies of other pages.")] = 0.03,
    near_duplicates: Annotated[float, _option(WEB, "SHARE", "Make this share of the articles nearly copies.")] = 0.03,
    tables: Annotated[float, _option(WEB, "SHARE", "Let this share of the hosts publish .tol and .tvi tables.")] = 0.25,
    time_scale: Annotated[
        float, _option(WEB, "X", "Let this many simulated seconds pass in a second; 0 stops time.")
    ] = 0.0,
    trouble: Annotated[
        list[str], _option(TROUBLE, "NAME=SHARE", "Add trouble; `lycosa simweb troubles` lists it. Repeatable.")
    ] = [],  # noqa: B006
    robots: Annotated[list[str], _option(TROUBLE, "NAME=SHARE", "Add kinds of robots.txt. Repeatable.")] = [],  # noqa: B006
    dns: Annotated[list[str], _option(TROUBLE, "NAME=SHARE", "Add trouble with names. Repeatable.")] = [],  # noqa: B006
    dns_ttl: Annotated[int, _option(TROUBLE, "S", "Let addresses of names live for this many seconds.")] = 300,
    rtt: Annotated[float, _option(NETWORK, "MS", "The median round-trip time to a host is this long.")] = 0.0,
    rtt_spread: Annotated[
        float, _option(NETWORK, "SIGMA", "Spread round-trip times log-normally over hosts, with this sigma.")
    ] = 0.0,
    bandwidth: Annotated[
        float, _option(NETWORK, "BYTES/S", "The transfers of a host share this bandwidth (median); 0 is no limit.")
    ] = 0.0,
    bandwidth_spread: Annotated[
        float, _option(NETWORK, "SIGMA", "Spread bandwidths log-normally over hosts, with this sigma.")
    ] = 0.0,
    line: Annotated[float, _option(NETWORK, "BYTES/S", "All transfers share this bandwidth; 0 is no limit.")] = 0.0,
    transfer: Annotated[float, _option(NETWORK, "BYTES/S", "One transfer has this bandwidth; 0 is no limit.")] = 0.0,
    port: Annotated[
        int, _option(SERVING, "PORT", "Serve HTTP on this port of every loopback address; 0 is a free one.")
    ] = 8800,
    dns_port: Annotated[
        int, _option(SERVING, "PORT", "Serve names on this UDP port of 127.0.0.1; 0 is a free one.")
    ] = 8853,
    log: Annotated[
        Path | None, _option(SERVING, "FILE", "Write every request to this new file, one JSON object a line.")
    ] = None,
    gzip: Annotated[bool, _option(SERVING, None, "Compress for clients that accept it.")] = True,
    tls: Annotated[
        bool, _option(SERVING, None, "Serve HTTPS, with certificates of an authority made for this run.")
    ] = False,
    ca_file: Annotated[
        Path, _option(SERVING, "FILE", "Let --tls write the authority's certificate to this file.")
    ] = Path("simweb-ca.pem"),
    json: Annotated[
        bool, _option(SERVING, None, "Print one JSON object with the ports when the web is ready.", name="--json")
    ] = False,
) -> None:
    if context.invoked_subcommand in ("audit", "hostile", "troubles"):
        return

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
    settings: SimSettings,
    *,
    dns_port: int,
    log: Path | None,
    time_scale: float,
    gzip: bool,
    ca_file: Path | None,
    json: bool,
) -> None:
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


def _announce(web: RunningWeb, log: Path | None, json: bool) -> None:
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
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Show these pages instead of a few.")] = None,
    body: Annotated[bool, typer.Option("--body", help="Print the whole document instead of a summary.")] = False,
) -> None:
    """Show pages of the web without running it."""
    web = SimWeb(context.obj)
    for url in urls or example_pages(web):
        if body:
            sys.stdout.buffer.write(summarise(web, url).body)
        else:
            print(summarise(web, url))


@app.command()
def truth(
    context: typer.Context,
    seeds: Annotated[list[str], typer.Argument(metavar="URL", help="The perfect crawler starts here.")],
    scope: Annotated[str, typer.Option(metavar="host|domain|prefix|any", help="Follow links that far.")] = "host",
    robots: Annotated[bool, typer.Option(help="Obey robots.txt.")] = True,
    sitemaps: Annotated[bool, typer.Option(help="Read sitemaps.")] = True,
    mine: Annotated[str, typer.Option(metavar="off|ancestors|all", help="Guess URLs.")] = "off",
    depth: Annotated[
        int | None, typer.Option(metavar="N", help="Follow at most this many links in a row from a seed.")
    ] = None,
    at: Annotated[float, typer.Option(metavar="SECONDS", help="Look at the web at this simulated time.")] = 0.0,
) -> None:
    """Print the URLs that a perfect crawler would fetch."""
    found = truth_of(
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
    """List the names for --trouble, --robots and --dns."""
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
def hostile(
    port: Annotated[int, typer.Option(metavar="PORT", help="Serve HTTP on this port; 0 is a free one.")] = 8800,
    tls_port: Annotated[int, typer.Option(metavar="PORT", help="Serve HTTPS on this port; 0 is a free one.")] = 8843,
    dns_port: Annotated[int, typer.Option(metavar="PORT", help="Serve names on this port; 0 is a free one.")] = 8853,
    ca_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the certificate of the authority to this file.")
    ] = None,
    seeds: Annotated[bool, typer.Option("--seeds", help="Print the seeds of all hosts when the web is ready.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print docs/hostile.md and exit.")] = False,
) -> None:
    """Serve hosts that mean harm, one for each row of docs/hostile.md."""
    if markdown:
        print(hostile_page(), end="")
        return

    async def main() -> None:
        stop = asyncio.Event()
        for signum in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(signum, stop.set)
        async with serve_hostile(port=port, tls_port=tls_port, dns_port=dns_port, ca_file=ca_file) as web:
            if seeds:
                print("\n".join(web.seed(row) for row in HOSTILE_ROWS), flush=True)
            print(
                f"the hostile web: {counted(len(HOSTILE_ROWS), 'host')}, such as {web.seed(HOSTILE_ROWS[0])}\n"
                f"  names   127.0.0.1:{web.dns_port}\n"
                f"  crawl   lycosa crawl {web.seed(HOSTILE_ROWS[0])} --into out --dns 127.0.0.1:{web.dns_port}"
                f" --allow-private {HostileWeb.ALLOWED}\n"
                "  Ctrl-C ends it",
                file=sys.stderr,
                flush=True,
            )
            await stop.wait()
        print(f"served {sum(web.asked.values()):,} requests", file=sys.stderr)

    asyncio.run(main())


@app.command()
def audit(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="A log written by `lycosa simweb --log`.")],
    delay: Annotated[
        float, typer.Option(metavar="S", help="Requests to a host must be this many seconds apart.")
    ] = 1.0,
    per_host: Annotated[int, typer.Option(metavar="N", help="A host may have this many requests at a time.")] = 1,
    ip_delay: Annotated[
        float, typer.Option(metavar="S", help="Requests to an address must be this many seconds apart.")
    ] = 0.0,
    per_ip: Annotated[
        int, typer.Option(metavar="N", help="An address may have this many requests at a time, at least --per-host.")
    ] = 4,
    all_rows: Annotated[bool, typer.Option("--all", help="Show every host and address.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
) -> None:
    """Check a log for politeness and exit with 1 if a rule was broken.

    Crawl-delay and Retry-After count as rules, too.
    """
    findings = audit_log(log, AuditRules(delay_s=delay, per_host=per_host, ip_delay_s=ip_delay, per_ip=per_ip))
    if json:
        print(
            msgspec.json.encode(
                {"clean": findings.is_clean, "broken": findings.broken()} | msgspec.to_builtins(findings)
            ).decode()
        )
    else:
        _print_audit(findings, all_rows)
    if not findings.is_clean:
        raise typer.Exit(1)


def _print_audit(findings: Audit, all_rows: bool) -> None:
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


def _row(finding: Finding) -> str:
    gap = "–" if finding.smallest_gap_s is None else f"{finding.smallest_gap_s:.3f}"
    against = len(finding.robots) + finding.before_robots + finding.before_retry_after
    return (
        f"{finding.name:<18}{finding.requests:>9,}{finding.largest_overlap:>9}{gap:>10}{finding.early:>7,}{against:>8,}"
    )
