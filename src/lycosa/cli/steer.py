"""`lycosa steer`: orders for a crawl that is running somewhere else on this machine."""

from typing import Annotated, Any

import typer

from lycosa.cli.options import CommandTable, Folder
from lycosa.cli.wording import note
from lycosa.crawl import Action, steer
from lycosa.errors import SettingsError
from lycosa.settings import DEFAULTS, SETTINGS

app = CommandTable()


@app.command(
    "steer",
    epilog="""
        lycosa steer my-crawl pause
        lycosa steer my-crawl resume
        lycosa steer my-crawl set delay=2 pages=5000
        lycosa steer my-crawl set 'exclude=/calendar/* *.zip'
    """,
)
def steer_command(
    into: Folder,
    action: Annotated[Action, typer.Argument(metavar="ACTION", help="What to do: pause, resume, stop or set.")],
    values: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME=VALUE", help="With set: settings by name or option; lists have spaces."),
    ] = None,
) -> None:
    """Pause, resume or stop a running crawl, or change its settings.

    New settings take effect within seconds: the crawl commits and continues with them. A crawl that is not running
    uses them when it continues. What was done is written to log.jsonl in the collection.
    """
    if values and action != "set":
        raise SettingsError(f"{action} takes no settings: lycosa steer {into} set {values[0]}")
    note(steer(into, action, dict(map(_setting, values or [])), origin="command line"))


def _setting(text: str) -> tuple[str, Any]:
    """`delay=2` as the name and value of a setting."""
    name, equals, value = text.partition("=")
    if not equals:
        raise SettingsError(f"{text!r} is no setting: write NAME=VALUE, such as delay=2")
    by_option = {(SETTINGS[each].option or "").removeprefix("--"): each for each in SETTINGS}
    name = by_option.get(name.replace("_", "-"), name.replace("-", "_"))
    is_list = name in SETTINGS and isinstance(DEFAULTS[name], tuple)
    return name, value.split() if is_list else value
