"""`lycosa identity`: makes the key that signs requests, and the directory that publishes it."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from lycosa.cli.options import CommandTable
from lycosa.cli.wording import note
from lycosa.errors import SettingsError, storage_errors
from lycosa.identity import DIRECTORY_PATH, DIRECTORY_TYPE, BotKey, key_directory

app = CommandTable()


@app.command(
    epilog="""
        lycosa identity bot.key --out public           makes key and directory
        lycosa identity new.key bot.key --out public   a new key, and the one before
        lycosa identity bot.key                        prints the directory
        lycosa crawl example.org --bot-key bot.key --bot-agent https://bot.example.org
    """
)
def identity(
    keys: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="The key, made where there is none; others are published with it."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Write the directory below this root of a web site."),
    ] = None,
) -> None:
    """Make the key that signs the requests of a crawl, and the directory to publish.

    Hosts check signed requests (Web Bot Auth) by the directory, which has to be at --bot-agent, over https.
    """
    if out is not None and not out.is_dir():
        raise SettingsError(f"there is no folder {out}: --out is the root of a web site")
    first, *others = keys
    if first.exists():
        key = BotKey.read(first)
    else:
        key = BotKey.make(first)
        note(f"made the key {first}, which only you may read")
    text = key_directory(key, *(BotKey.read(path) for path in others))
    note(f"key id: {key.key_id}")
    if out is None:
        sys.stdout.write(text.decode())
        return
    path = out / DIRECTORY_PATH.removeprefix("/")
    with storage_errors(path, doing="writing the directory"):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text)
    note(f"wrote {path}")
    note(f"serve it as https://YOUR-HOST{DIRECTORY_PATH} with Content-Type: {DIRECTORY_TYPE}")
    note(f"then: lycosa crawl URL --bot-key {first} --bot-agent https://YOUR-HOST")
