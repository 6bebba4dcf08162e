"""`lycosa recrawl`: looks at the pages of a collection again that are due, and keeps what has changed."""

from typing import Annotated

import typer

from lycosa.cli.collection import Folder
from lycosa.cli.crawl_options import ARCHIVE_HELP, PATCH_HELP


def register(app: typer.Typer) -> None:
    app.command(name="recrawl")(recrawl)


def recrawl(
    into: Folder,
    budget: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Pages looked at a day, over all runs, each once an hour at most [a tenth of all]."
        ),
    ] = None,
    visits: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N visits.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Every page, due or not, oldest first, and URLs that have failed.")
    ] = False,
    time_s: Annotated[str | None, typer.Option("--time", metavar="TIME", help="Stop after 90, 10m or 2h.")] = None,
    archive: Annotated[str | None, typer.Option(metavar="WORD", help=ARCHIVE_HELP)] = None,
    patch: Annotated[str | None, typer.Option(metavar="WORD", help=PATCH_HELP)] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output at the end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Look again at the pages that are due, and keep what has changed.

    When a page is due follows from how often it changed and how much it matters. A run makes up for a week at most; the
    same command again goes on. `lycosa changes DIR` shows what was found.
    """
    from lycosa.cli.crawl import run
    from lycosa.cli.crawl_options import CrawlOrder, gather
    from lycosa.cluster.local import require_one_process
    from lycosa.engine.orders import Recrawl
    from lycosa.engine.views import open_to_read

    with open_to_read(into):
        pass  # says so if this is no collection
    require_one_process(into)
    order = Recrawl(budget=budget, most=visits, everything=everything, time_s=_seconds(time_s))
    run(
        CrawlOrder(
            gather(
                {name: word for name, word in (("archive", archive), ("patch", patch)) if word},
                into=into,
                options={"archive": "--archive", "patch": "--patch"},
            ),
            into,
            json=json,
            quiet=quiet,
            recrawl=order,
        )
    )


def _seconds(text: str | None) -> float | None:
    """Read as the setting of the same name is."""
    from lycosa.settings import Source, merge

    return None if text is None else merge(Source({"time_s": text}, lambda _: "--time")).time_s
