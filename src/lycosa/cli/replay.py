"""`lycosa replay`: the archive of a collection in a browser.

The pages are those of `lycosa.replay`; here the token is made, the link is printed, and the server runs until Ctrl-C.
"""

import asyncio
import re
import secrets
from typing import Annotated

import typer

from lycosa.cli.options import CommandTable, Folder
from lycosa.cli.wording import note
from lycosa.errors import SettingsError
from lycosa.processes import on_end
from lycosa.replay import HttpServer, Replay

LOOPBACK = "127.0.0.1"
PORT = 8470
TOKEN = re.compile(r"[A-Za-z0-9_-]{8,128}")

app = CommandTable()


@app.command(
    epilog="""
        lycosa replay my-crawl               prints the link to open
        lycosa replay my-crawl --port 0      on any free port
        ssh -L 8470:127.0.0.1:8470 HOST      for the link of another machine
    """
)
def replay(
    into: Folder,
    port: Annotated[
        int, typer.Option(metavar="N", min=0, max=65535, help="Listen on this port; 0 is a free one.")
    ] = PORT,
    token: Annotated[
        str, typer.Option(metavar="TOKEN", help="The secret part of the link.", show_default="a new one each time")
    ] = "",
    bind: Annotated[
        str,
        typer.Option(metavar="ADDRESS", help="Listen on this address. Beyond loopback the link is sent in the clear."),
    ] = LOOPBACK,
) -> None:
    """Show the archived pages of a collection in a browser, as they were.

    Nothing is loaded from the live web, and scripts of pages do not run. Only who has the link can read.
    """
    if token and TOKEN.fullmatch(token) is None:
        raise SettingsError("--token takes 8 to 128 letters, digits, - and _, since it is a part of the link")
    prefix = f"/{token or secrets.token_urlsafe(24)}/"
    made = Replay(into, prefix=prefix)
    try:
        asyncio.run(_serve(made, bind, port))
    finally:
        made.close()


async def _serve(made: Replay, bind: str, port: int) -> None:
    server = HttpServer(made.answer, name=bind)
    await server.start(bind, port)
    ended = asyncio.Event()
    on_end(ended.set)
    shown = f"[{bind}]" if ":" in bind else LOOPBACK if bind == "0.0.0.0" else bind
    print(f"http://{shown}:{server.port}{made.prefix}", flush=True)
    note(f"open this link to read {made.path}; Ctrl-C ends it")
    try:
        await ended.wait()
    finally:
        await server.close()
