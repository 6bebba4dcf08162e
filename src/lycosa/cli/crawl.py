"""`lycosa crawl`, `recrawl`, `add`, `steer`, `demo` and `settings`: the commands that crawl, and what they take.

The same command on the same folder continues a crawl.
"""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from lycosa.cli.options import (
    COMMON,
    OUTPUT,
    CommandTable,
    CrawlCommand,
    CrawlJob,
    FieldsFile,
    Folder,
    PrivateNetworksCommand,
    UrlFiles,
    field_entries,
    interval_s,
    read_watched_urls,
    resolve_settings,
    with_settings,
)
from lycosa.cli.run import run
from lycosa.cli.wording import counted, folder_word, note
from lycosa.crawl import Action, AddedUrl, Inbox, Recrawl, log_added, refuse_forgotten, refuse_private, steer
from lycosa.errors import LycosaError, SettingsError
from lycosa.settings import DEFAULTS, SETTINGS, CrawlSettings, SettingsSource, merge, reference, to_toml
from lycosa.web import parse_url

MIN_DEMO_S, MAX_DEMO_S = 0.1, 86_400.0
PAGES_A_HOST = 400  # of the demo
DEMO_OVER = "the demo is over, and its web is gone: a larger --seconds shows more"
# The options of `lycosa recrawl` that are settings.
RECRAWL_SETTINGS = ("visits_per_day", "time_s", "archive", "patch", "keep_versions", "keep_days", "allow_private")

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on standard output at the end.", rich_help_panel=OUTPUT)
]
Quiet = Annotated[
    bool, typer.Option("--quiet", "-q", help="Show neither progress nor a summary.", rich_help_panel=OUTPUT)
]

app = CommandTable()


def crawl_command(run: Callable[[CrawlJob], None]) -> Callable[..., None]:
    """The command `crawl`, which hands a finished job to `run`; register it with `cls=CrawlCommand`."""

    def crawl(
        seeds: Annotated[
            list[str] | None, typer.Argument(metavar="URL", help="Start at these URLs; without a scheme it is https.")
        ] = None,
        into: Annotated[
            str | None,
            typer.Option(
                metavar="DIR",
                help="Keep the pages in this folder. A new one is made; a crawl that is there is continued.",
                rich_help_panel=COMMON,
            ),
        ] = None,
        url_files: UrlFiles = None,
        config: Annotated[
            str | None,
            typer.Option(
                metavar="FILE",
                help="Read settings from this TOML file; options override it. `lycosa settings` prints one.",
                rich_help_panel=OUTPUT,
            ),
        ] = None,
        fields_file: FieldsFile = None,
        json: Json = False,
        quiet: Quiet = False,
        serve: Annotated[
            bool,
            typer.Option("--serve", help="Show the crawl in a browser while it runs.", rich_help_panel=OUTPUT),
        ] = False,
        **typed: Any,
    ) -> None:
        if not into:
            raise SettingsError("say where to keep the pages: --into DIR")
        typed["fields"] = field_entries(typed["fields"], fields_file)
        if typed["places"]:
            # lazy: the cluster takes 0.03 s to import, and most crawls have none
            from lycosa.cluster import read_places_file

            typed["places"] = [line for file in typed["places"] for line in read_places_file(Path(file))]
        settings = resolve_settings(
            {"seeds": seeds, **typed}, into=Path(into), config=Path(config) if config else None, url_files=url_files
        )
        bare = tuple(url for url in seeds or () if "://" not in url)
        run(CrawlJob(settings, Path(into), json=json, quiet=quiet, serves=serve, bare_seeds=bare))

    return with_settings(crawl)


CRAWL_HELP = """\
Crawl from URLs into a folder, or continue a crawl.

The crawl obeys robots.txt and sends each host one request at a time, at most one a second. It may be stopped at any
moment: the same command on the same folder continues where it stopped."""
CRAWL_EXAMPLES = """
    lycosa crawl https://example.org --into my-crawl --pages 1000
    lycosa crawl --into my-crawl --pages 5000      continue, up to 5,000
    lycosa crawl example.org --into docs --scope prefix --include '/docs/*'
    lycosa crawl -i urls.txt --into many --scope domain --contact me@example.org
    lycosa crawl shop.example --into shop --field 'price=.price'
    lycosa crawl example.org --into fresh --keep-fresh --budget 5000
"""


app.command("crawl", cls=CrawlCommand, help=CRAWL_HELP, epilog=CRAWL_EXAMPLES)(crawl_command(run))


def recrawl(
    into: Folder,
    urls: Annotated[
        list[str] | None, typer.Argument(metavar="URL", help="Revisit these URLs now and no others.")
    ] = None,
    visits: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after this many visits.")] = None,
    everything: Annotated[
        bool,
        typer.Option("--all", help="Revisit every page, due or not, the oldest first, and retry URLs that failed."),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
    **typed: Any,
) -> None:
    """Revisit the pages that are due and keep what has changed.

    When a page is due follows from how often it has changed and how much it matters. A run makes up for at most a week;
    the same command again continues. `lycosa changes DIR` shows what was found.
    """
    # lazy: the cluster takes 0.03 s to import, which the first request of a crawl need not wait for
    from lycosa.cluster import require_whole_collection

    # lazy: views and search take 0.1 s to import, which the first request of a crawl need not wait for
    from lycosa.inspect import known_before, open_to_read

    with open_to_read(into) as collection:  # says so if this is no collection
        named = tuple(known_before(collection, url) for url in urls or ())
    if named and (everything or visits):
        raise SettingsError("name URLs, or revisit pages with --all or --visits: not both")
    require_whole_collection(into)
    own = {name: typed.pop(name) for name in ("visits_per_day", "time_s")}
    given = {name: text for name, text in own.items() if text}
    read = merge(SettingsSource(given, lambda name: SETTINGS[name].option or ""))
    order = Recrawl(budget=read.visits_per_day, most=visits, everything=everything, urls=named, time_s=read.time_s)
    run(CrawlJob(resolve_settings(typed, into=into), into, json=json, quiet=quiet, recrawl=order))


RECRAWL_EXAMPLES = """
    lycosa recrawl my-crawl                 what is due now
    lycosa recrawl my-crawl --all           every page
    lycosa recrawl my-crawl example.org/x   this page now
    lycosa recrawl my-crawl --budget 5000   at most 5,000 pages a day
"""
app.command("recrawl", cls=PrivateNetworksCommand, epilog=RECRAWL_EXAMPLES)(with_settings(recrawl, RECRAWL_SETTINGS))


@app.command(
    "settings",
    epilog="""
        lycosa settings > my.toml
        lycosa crawl example.org --into my-crawl --config my.toml
    """,
)
def print_settings(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the reference page docs/settings.md.")] = False,
) -> None:
    """Print all settings with their defaults and meanings, as a TOML file for `lycosa crawl --config FILE`."""
    sys.stdout.write(reference() if markdown else to_toml(CrawlSettings()))


@app.command(
    epilog="""
        lycosa add my-crawl https://example.org/news --every 10m
        lycosa add my-crawl -i urls.txt      lines such as https://example.org/ 1h
        lycosa crawl --into my-crawl --keep-fresh
    """
)
def add(
    into: Folder,
    urls: Annotated[list[str] | None, typer.Argument(metavar="URL", help="Crawl these URLs, too.")] = None,
    url_files: UrlFiles = None,
    every: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Visit them this often: 10m, 1d; none ends it. In a list a time may stand behind each URL.",
        ),
    ] = None,
) -> None:
    """Add URLs to a crawl, whether it is running or not.

    A running crawl takes them in at once, another one when it continues. URLs with --every are visited that often by
    `recrawl` and `crawl --keep-fresh`, beside the budget, whether they were added before or not.
    """
    from lycosa.inspect import open_to_read, settings_of  # lazy: as in `recrawl`

    with open_to_read(into) as collection:
        settings = settings_of(collection)
    usual = None if every is None else interval_s(every, "--every")
    listed = [line for file in url_files or [] for line in read_watched_urls(file)]
    typed = merge(SettingsSource({"seeds": urls or []}, lambda _: "the list of URLs")).seeds
    wanted = dict.fromkeys(typed, usual) | {seed: usual if own is None else own for seed, own in listed}
    if not wanted:
        raise SettingsError("there is nothing to add: give a URL, or a file of them with -i FILE")
    named = [AddedUrl(url, own) for seed, own in wanted.items() if (url := parse_url(seed))]
    refuse_private((one.url for one in named), settings, into)
    refuse_forgotten((one.url for one in named), into)
    Inbox(into).put(one.line for one in named)
    log_added(into, [one.url.href for one in named], origin="command line")
    watched = sum(bool(one.every_s) for one in named)
    note(f"{counted(len(named), 'URL')} added to {into}" + (f", {watched:,} of them watched" if watched else ""))


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
        raise SettingsError(f"{action} takes no settings: lycosa steer {folder_word(into)} set {values[0]}")
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


@app.command()
def demo(
    into: Annotated[Path, typer.Option(metavar="DIR", help="Keep the pages in this folder.")] = Path("lycosa-demo"),
    seconds: Annotated[float, typer.Option(metavar="S", help="Crawl for this many seconds.")] = 15.0,
    hosts: Annotated[int, typer.Option(metavar="N", help="Simulate this many hosts.")] = 200,
) -> None:
    """Crawl a simulated web for some seconds, to see how it looks."""
    # lazy: the simulated web takes 0.09 s to import, and only this command needs it
    from lycosa.simweb import SimSettings

    if not MIN_DEMO_S <= seconds <= MAX_DEMO_S:
        raise SettingsError(f"--seconds is {seconds:g}, it must be between {MIN_DEMO_S:g} and {MAX_DEMO_S:g}")
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
        run(CrawlJob(settings, _fresh(into), leftover_note=DEMO_OVER))


def _fresh(into: Path) -> Path:
    """`into`, or the next free name beside it: every demo has a web of its own."""
    number, path = 1, into
    while path.exists():
        number += 1
        path = into.with_name(f"{into.name}-{number}")
    return path


@contextmanager
def _simulated_web(hosts: int) -> Iterator[tuple[int, int]]:
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
        ports = msgspec.json.decode(ready)
        print(f"a simulated web of {counted(hosts, 'host')} and {hosts * PAGES_A_HOST:,} pages is up", file=sys.stderr)
        yield ports["port"], ports["dns_port"]
    finally:
        process.terminate()
        process.wait(timeout=10)
