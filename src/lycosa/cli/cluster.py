"""`lycosa cluster`: nodes of a cluster, crawls on it, and how they are doing.

`start` runs one node in the foreground until Ctrl-C, and starts it again when it ends otherwise: a node that was cut
off from the others is not taken back by Ray, a new one is. Nodes know each other by a token in a file that only
its owner reads.
"""

import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import msgspec
import typer

from lycosa.cli.crawl import crawl_command
from lycosa.cli.options import AsJson, CommandTable, CrawlCommand, CrawlJob
from lycosa.cli.progress import line_of
from lycosa.cli.run import ClusterCallbacks, finish
from lycosa.cli.summary import left_out
from lycosa.cli.wording import counted
from lycosa.cluster import (
    cluster_status,
    crawl_on_cluster,
    fetch_copies,
    host_and_port,
    node_command,
    prepare_environment,
    require_own_address,
    require_ray,
    resize_crawl,
    stop_crawls,
    unpack_archive,
)
from lycosa.crawl import CrawlStats
from lycosa.errors import ClusterError, SettingsError
from lycosa.web import format_date

PORT = 6379
AGAIN_S = 3.0
HAS_RUN_S = 20.0  # a node that ended sooner on its first try will not do better on the next
TOKEN_FILE = Path("~/.lycosa/cluster-token")
DEFAULT_ADDRESS = f"127.0.0.1:{PORT}"

app = CommandTable(invoke_without_command=True)


class ClusterTarget(NamedTuple):
    """Which cluster the commands speak to."""

    address: str = DEFAULT_ADDRESS
    token_file: Path = TOKEN_FILE
    is_shared: bool = False


_cluster = ClusterTarget()


@app.callback(
    epilog="""
        lycosa cluster start --head --address 10.0.0.1                 first machine
        lycosa cluster start --join 10.0.0.1:6379 --address 10.0.0.2   the others
        lycosa cluster --at 10.0.0.1:6379 crawl example.org --into my-crawl
    """
)
def cluster(
    context: typer.Context,
    at: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the cluster's head.")] = DEFAULT_ADDRESS,
    token_file: Annotated[
        Path, typer.Option(metavar="FILE", help="Read the token that all nodes share from this file.")
    ] = TOKEN_FILE,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared", help="Let shards move between machines; all of them must see the folder of the crawl."
        ),
    ] = False,
) -> None:
    """Crawl with many machines: start a node on each, then crawl with all of them."""
    global _cluster
    _cluster = ClusterTarget(at, token_file, shared)
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def start(
    head: Annotated[bool, typer.Option("--head", help="Run the first node, which the others join.")] = False,
    join: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Run a further node of the cluster that has its head here.")
    ] = None,
    address: Annotated[
        str, typer.Option(metavar="IP", help="Listen on this address of this machine, which the other machines reach.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=1, max=65535, metavar="PORT", help="Let the head listen on this port.")
    ] = PORT,
    processors: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Use this many processors instead of all.")
    ] = None,
    place: Annotated[
        str, typer.Option(metavar="NAME", help="This machine is at this place, as --places of a crawl names it.")
    ] = "",
) -> None:
    """Run a node of a cluster until Ctrl-C."""
    require_ray("a cluster")
    if head == (join is not None):
        raise SettingsError("say --head for the first node, or --join HOST:PORT for a further one")
    if join is not None:
        host_and_port(join)
    require_own_address(address, port if head else None)
    token_file = _cluster.token_file
    prepare_environment(_token(token_file, may_make=head))
    command = node_command(
        address=address, head_port=port if head else None, join=join or "", processors=processors, place=place
    )
    if head:
        print(
            f"head of a cluster at {address}:{port}; on other machines, with a copy of {token_file}:", file=sys.stderr
        )
        print(f"  lycosa cluster start --join {address}:{port} --address IP", file=sys.stderr)
    else:
        print(f"node {address} of the cluster at {join}", file=sys.stderr)
    _keep_running(command)


def _keep_running(command: list[str]) -> None:
    """Until Ctrl-C or SIGTERM, of which Ray's own command knows how to end a node."""
    is_ending = False
    process: subprocess.Popen[bytes] | None = None

    def end(*_: object) -> None:
        nonlocal is_ending
        is_ending = True
        if process is not None:
            process.terminate()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    has_run = False
    while not is_ending:
        began = time.monotonic()
        with tempfile.TemporaryFile() as words:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=words)
            process.wait()
            words.seek(0)
            lines = [line.strip() for line in words.read().decode(errors="replace").splitlines() if line.strip()]
        has_run = has_run or time.monotonic() - began > HAS_RUN_S
        why = next((line for line in lines if "Error: " in line), lines[-1] if lines else "it did not say why")
        if is_ending:
            return
        if not has_run:
            raise ClusterError(f"the node could not be started: {why}")
        print(f"lycosa: the node ended ({why}); starting it again", file=sys.stderr)
        time.sleep(AGAIN_S)


def _crawl(job: CrawlJob) -> None:
    """A crawl on the cluster, shown and ended as one of this machine."""
    token = _token(_cluster.token_file)

    async def crawl(showing: ClusterCallbacks) -> tuple[CrawlStats, str]:
        return await crawl_on_cluster(
            job.into.absolute(),
            job.settings,
            address=_cluster.address,
            token=token,
            is_shared=_cluster.is_shared,
            show=showing.show,
            tell=showing.tell,
            on_start=showing.on_start,
        )

    finish(job, crawl)


app.command(
    "crawl",
    cls=CrawlCommand,
    help="Crawl with all machines, or continue a crawl.",
    epilog="""
        lycosa cluster crawl https://example.org --into my-crawl --pages 100000
        lycosa cluster --at 10.0.0.1:6379 crawl -i urls.txt --into my-crawl
    """,
)(crawl_command(_crawl))


def _token(file: Path, *, may_make: bool = False) -> str:
    """The token in the file; the head makes one if there is none."""
    path = file.expanduser()
    if not path.exists() and (given := os.environ.get("RAY_AUTH_TOKEN")):
        return given  # as on Kubernetes, where the operator makes it
    try:
        if not path.exists() and may_make:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            path.write_text(secrets.token_hex(32) + "\n")
        if path.stat().st_mode & 0o077:
            raise SettingsError(f"{path} can be read by others: chmod 600 {path}")
        return path.read_text().strip()
    except OSError as error:
        raise SettingsError(f"cannot read the cluster's token {path}: copy it from the head") from error


@app.command()
def status(json: AsJson = False) -> None:
    """Show the machines of a cluster and the crawls on it."""
    found = cluster_status(_cluster.address, _token(_cluster.token_file))
    if json:
        sys.stdout.buffer.write(msgspec.json.encode(found) + b"\n")
        return
    for node in found.nodes:
        print(f"node {node.address}: {'alive' if node.is_alive else 'gone'}, {counted(node.processors, 'processor')}")
    for crawl in found.crawls:
        print(f"{crawl.name}: epoch {crawl.epoch}, {line_of(crawl.stats)}")
        for name, pages, queued in crawl.shards:
            print(f"  {name}: {counted(pages, 'page')}, {queued:,} queued")
        if crawl.stored_bytes or crawl.unstored:
            print(
                f"  store: {crawl.stored_bytes:,} bytes brought there, {counted(crawl.unstored, 'file')} to be brought"
            )
        if crawl.stats.left_out:
            print(f"  not moved to the store: {left_out(crawl.stats)}")
        for trouble in crawl.troubles[-3:]:
            print(f"  {trouble}")
    if not found.crawls:
        print("no crawl is running")


@app.command()
def grow(count: Annotated[int, typer.Argument(min=1, help="Add this many shards.")] = 1) -> None:
    """Add shards to the running crawl."""
    for crawl in resize_crawl(_cluster.address, _token(_cluster.token_file), join=count):
        print(f"{crawl}: grows by {counted(count, 'shard')}", file=sys.stderr)


@app.command()
def shrink(
    names: Annotated[
        list[str], typer.Argument(metavar="SHARD", help="Take out these shards, named as in `lycosa cluster status`.")
    ],
) -> None:
    """Take shards out of the running crawl; they hand over what they have."""
    for crawl in resize_crawl(_cluster.address, _token(_cluster.token_file), leave=names):
        print(f"{crawl}: {', '.join(names)} told to hand over and end", file=sys.stderr)


@app.command()
def fetch(into: Annotated[Path, typer.Argument(metavar="DIR", help="A collection with a central store.")]) -> None:
    """Copy the shards of other machines here, to read all of them."""
    for name, at_s in fetch_copies(into).items():
        print(f"{name} as of {format_date(at_s)}", file=sys.stderr)


@app.command()
def unpack(
    store: Annotated[str, typer.Argument(metavar="DIR|URL", help="A central store, as `crawl --store` filled it.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Write the files to this folder.")],
) -> None:
    """Write the archive of a central store as .warc.gz files."""
    count = unpack_archive(store, out, tell=lambda words: print(f"lycosa: {words}", file=sys.stderr))
    print(f"{count} {'file' if count == 1 else 'files'} in {out}", file=sys.stderr)


@app.command()
def stop() -> None:
    """End the crawls of a cluster gently; its nodes keep running."""
    count = stop_crawls(_cluster.address, _token(_cluster.token_file))
    print(f"{count} {'crawl' if count == 1 else 'crawls'} told to end", file=sys.stderr)
