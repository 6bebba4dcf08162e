"""`lycosa serve`: the live page of a collection, its API and its metrics."""

import os
import re
import signal
import sys
import threading
from typing import Annotated

import typer

from lycosa.cli.options import CommandTable, Folder
from lycosa.cli.wording import note
from lycosa.errors import SettingsError
from lycosa.inspect import open_to_read
from lycosa.serve import ServeOptions, serve_collection

TOKEN = re.compile(r"[A-Za-z0-9_-]{8,128}")

app = CommandTable()


@app.command(
    epilog="""
        lycosa serve my-crawl                      prints the link to open
        lycosa crawl URL --into my-crawl --serve   watches a crawl while it runs
        lycosa serve my-crawl --port 0             on any free port
        curl -H 'Authorization: Bearer TOKEN' http://127.0.0.1:8480/api/v1/status
    """
)
def serve(
    into: Folder,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Listen on this port; 0 is a free one.")
    ] = ServeOptions().port,
    token: Annotated[
        str, typer.Option(metavar="TOKEN", help="Use this token.", show_default="a new one each time")
    ] = "",
    bind: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Listen on this address. Beyond loopback it needs TLS.")
    ] = ServeOptions().bind,
    certificate: Annotated[str, typer.Option(metavar="FILE", help="Use this TLS certificate (PEM).")] = "",
    key: Annotated[str, typer.Option(metavar="FILE", help="The private key of the certificate (PEM).")] = "",
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines in without TLS: the token is sent in the clear.")
    ] = False,
    beside: Annotated[bool, typer.Option("--beside", hidden=True)] = False,
) -> None:
    """Show a collection in a browser: its crawl live, hosts, URLs, changes, search, report; and steer it.

    It also serves a JSON API (/api/v1/openapi.json describes it) and metrics for Prometheus (/metrics). Only who has
    the link, or sends its token, can read and steer.
    """
    if token and TOKEN.fullmatch(token) is None:
        raise SettingsError("--token takes 8 to 128 letters, digits, - and _, since it is a part of the link")
    if beside:  # a crawl that is about to make the collection; it holds the other end of standard input
        threading.Thread(target=_end_with_crawl, daemon=True).start()
    else:
        with open_to_read(into):
            pass  # says so if this is no collection
    options = ServeOptions(port=port, bind=bind, token=token, certificate=certificate, key=key, is_waived=insecure)

    def tell(link: str) -> None:
        print(link, flush=True)
        note(f"open this link to see {into}; Ctrl-C ends it")

    serve_collection(into, options, tell)


def _end_with_crawl() -> None:
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)
