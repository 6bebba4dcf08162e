"""The options of `lycosa crawl`, and how they become one `CrawlJob`: settings, folder, and how to show it.

Options that set something carry their setting's name as parameter name and pass what the user typed on as text; the
schema reads it, so that file, environment and command line take the same spellings and give the same sentences.
`with_crawl_options(run)` is the command; `run` gets the finished `CrawlJob`. Lists of URLs are read here, too.
"""

import os
import sys
from collections.abc import Callable, Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from typer.core import TyperCommand

from lycosa.errors import SettingsError

if TYPE_CHECKING:
    from lycosa.crawl.limits import Recrawl
    from lycosa.settings import CrawlSettings


STANDARD_INPUT = "-"
SHOWN_CHARS = 60  # of a line that is no URL


def read_urls(file: str) -> list[str]:
    """The lines of a list of URLs; `-` is standard input."""
    name = "standard input" if file == STANDARD_INPUT else file
    try:
        raw = sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()
    except OSError as error:
        raise SettingsError(f"-i: cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:  # a file name with a null byte
        raise SettingsError(f"-i: {file!r} is no file name") from error
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"-i: {name}, line {line}, is not UTF-8 text") from error
    lines = [line.strip() for line in text.split("\n")]
    return [_seed(line, name, number) for number, line in enumerate(lines, 1) if line and not line.startswith("#")]


def _seed(line: str, name: str, number: int) -> str:
    """The URL in a line, as the settings write it."""
    from lycosa.settings import values

    try:
        return values.seed(values.text(line))
    except values.InvalidValue as unfit:
        shown = repr(line) if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]!r}…"
        raise SettingsError(f"-i: {name}, line {number}, is {shown}, {unfit.phrase}") from unfit


ALLOW_PRIVATE = "--allow-private"
NEVER_EMPTY = {"store": "a folder or a URL", "topic": "words"}  # an empty one is a variable that was not set
ARCHIVE_HELP = "Bodies are archived (full), or pages only watched by their digests (none) [full]."
PATCH_HELP = "Tables of volatile parts are patched into what is kept (store), or whenever it is read (read) [store]."


class CrawlJob(NamedTuple):
    """What the user asked for. `rest`: what to say of URLs that are left, where the same command does not go on."""

    settings: "CrawlSettings"
    into: Path
    json: bool = False
    quiet: bool = False
    recrawl: "Recrawl | None" = None
    rest: str = ""


class CrawlCommand(TyperCommand):
    """A command in which `--allow-private` may stand alone or before a network."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        return super().parse_args(ctx, spell_out(args))


def spell_out(words: list[str]) -> list[str]:
    """A bare `--allow-private` gets the word it stands for, unless the next word is a network."""
    spelled: list[str] = []
    for at, word in enumerate(words):
        if word == "--":
            return spelled + words[at:]
        is_bare = word == ALLOW_PRIVATE and not _is_network("".join(words[at + 1 : at + 2]))
        spelled.append(f"{word}=private" if is_bare else word)
    return spelled


def with_crawl_options(run: Callable[[CrawlJob], None]) -> Callable[..., None]:
    """The command `crawl`; register it with `cls=CrawlCommand`."""

    def crawl(
        context: typer.Context,
        seeds: Annotated[
            list[str] | None, typer.Argument(metavar="URL", help="Where to start; without a scheme it is https.")
        ] = None,
        into: Annotated[Path | None, typer.Option(metavar="DIR", help="The collection: made, or gone on with.")] = None,
        url_files: Annotated[
            list[str] | None, typer.Option("-i", metavar="FILE", help="URLs from a file, one a line; - reads stdin.")
        ] = None,
        scope: Annotated[
            str | None, typer.Option(metavar="WORD", help="How far: host, domain, prefix or any [host].")
        ] = None,
        include: Annotated[
            list[str] | None, typer.Option(metavar="PATTERN", help="Only URLs like this: '/blog/*'. Repeatable.")
        ] = None,
        exclude: Annotated[
            list[str] | None, typer.Option(metavar="PATTERN", help="No URLs like this: '*.pdf'. Repeatable.")
        ] = None,
        types: Annotated[
            list[str] | None,
            typer.Option("--type", metavar="PATTERN", help="Only this media type: 'text/*'. Repeatable."),
        ] = None,
        images: Annotated[bool | None, typer.Option("--images/--no-images", help="Images of pages too [no].")] = None,
        sitemaps: Annotated[bool | None, typer.Option("--sitemaps/--no-sitemaps", help="Read sitemaps [yes].")] = None,
        tables: Annotated[
            str | None,
            typer.Option(
                metavar="WORD",
                help="Read tables of links: off, always (before each document, in a turn of its own) or auto, which "
                "does nothing with a delay, a ranking, --pages-per-host or --per-host 1 [auto].",
            ),
        ] = None,
        eager: Annotated[
            bool | None, typer.Option("--eager/--no-eager", help="Take links while a slow document arrives [yes].")
        ] = None,
        policy: Annotated[
            str | None,
            typer.Option(
                metavar="NAME", help="breadth, internal-first, rank, pvalue, top-window or leaf-window [breadth]."
            ),
        ] = None,
        window_hosts: Annotated[
            str | None, typer.Option(metavar="N", help="Hosts in a step of top-window and leaf-window [1000].")
        ] = None,
        window_leaves: Annotated[
            str | None, typer.Option(metavar="N", help="URLs in leaf-window's window over each host [512].")
        ] = None,
        child_order: Annotated[
            str | None,
            typer.Option(metavar="CHARS", help="Characters that windows take first: 9876543210 is latest first."),
        ] = None,
        topic: Annotated[
            str | None, typer.Option(metavar="WORDS", help="Pages about this go first: 'solar power storage'.")
        ] = None,
        topic_pages: Annotated[
            list[str] | None,
            typer.Option("--topic-page", metavar="FILE", help="Pages like this one go first. Repeatable."),
        ] = None,
        mine: Annotated[
            str | None,
            typer.Option(metavar="WORD", help="Guess URLs: off, ancestors (folders) or all (series too) [ancestors]."),
        ] = None,
        pages: Annotated[
            str | None, typer.Option(metavar="N", help="Stop after N pages, counted over all runs; none: no limit.")
        ] = None,
        depth: Annotated[str | None, typer.Option(metavar="N", help="At most N links from a seed.")] = None,
        time_s: Annotated[
            str | None,
            typer.Option(
                "--time",
                metavar="TIME",
                help="Stop after 90, 10m or 2h, over all runs (with --keep-fresh: of this one).",
            ),
        ] = None,
        bytes: Annotated[
            str | None, typer.Option(metavar="SIZE", help="Stop after 500MB or 2GiB, received over all runs.")
        ] = None,
        pages_per_host: Annotated[str | None, typer.Option(metavar="N", help="At most N pages of a host.")] = None,
        host_depth: Annotated[
            str | None, typer.Option(metavar="N", help="At most N links within a host, from where it was entered.")
        ] = None,
        wait: Annotated[
            bool | None,
            typer.Option(
                "--wait/--no-wait", help="Wait for hosts that do not answer, or ask for over 15 minutes [no]."
            ),
        ] = None,
        fail_on_limit: Annotated[
            bool | None,
            typer.Option("--fail-on-limit/--no-fail-on-limit", help="Exit with 3 when a limit ended it [no]."),
        ] = None,
        keep_fresh: Annotated[
            bool | None, typer.Option("--keep-fresh/--no-keep-fresh", help="Never end: look at pages again [no].")
        ] = None,
        visits_per_day: Annotated[
            str | None,
            typer.Option(
                "--budget", metavar="N", help="Pages looked at again a day, each once an hour at most [a tenth]."
            ),
        ] = None,
        delay_s: Annotated[
            str | None, typer.Option("--delay", metavar="S", help="Pause between two requests to a host [1].")
        ] = None,
        per_host: Annotated[
            str | None, typer.Option(metavar="N", help="Requests at a time to a host; more on your own only [1].")
        ] = None,
        ip_delay_s: Annotated[
            str | None, typer.Option("--ip-delay", metavar="S", help="Pause between two requests to an address [0].")
        ] = None,
        per_ip: Annotated[str | None, typer.Option(metavar="N", help="Requests at a time to an address [4].")] = None,
        groups: Annotated[
            list[str] | None,
            typer.Option(
                "--group",
                metavar="PATTERN=N/S",
                help="Ask hosts like this as one: '*.example.org=2/1s', 'domain=1'. Repeatable.",
            ),
        ] = None,
        agent: Annotated[str | None, typer.Option(metavar="NAME", help="Name for robots.txt [lycosa].")] = None,
        contact: Annotated[
            str | None, typer.Option(metavar="WHERE", help="URL or e-mail where site owners reach you.")
        ] = None,
        robots: Annotated[bool | None, typer.Option("--robots/--no-robots", help="Obey robots.txt [yes].")] = None,
        bandwidth_bytes_s: Annotated[
            str | None, typer.Option("--bandwidth", metavar="SIZE", help="Most bytes a second in all: 2MB.")
        ] = None,
        dns: Annotated[
            list[str] | None, typer.Option(metavar="HOST:PORT", help="Ask this name server. Repeatable.")
        ] = None,
        allow_private: Annotated[
            list[str] | None,
            typer.Option(ALLOW_PRIVATE, metavar="[CIDR]", help="Private networks, or this one, may be asked."),
        ] = None,
        durability: Annotated[
            str | None, typer.Option(metavar="WORD", help="Survives: process (its end) or power (loss) [process].")
        ] = None,
        archive: Annotated[str | None, typer.Option(metavar="WORD", help=ARCHIVE_HELP)] = None,
        patch: Annotated[str | None, typer.Option(metavar="WORD", help=PATCH_HELP)] = None,
        index: Annotated[
            bool | None, typer.Option("--index/--no-index", help="Keep the search index up to date meanwhile [no].")
        ] = None,
        workers: Annotated[
            str | None, typer.Option(metavar="N", help="Processes, each with its share of the hosts [this one alone].")
        ] = None,
        assignment: Annotated[
            str | None,
            typer.Option(
                metavar="WORD", help="Who gets which host: rendezvous, ip, letter-sum, two-level [rendezvous]."
            ),
        ] = None,
        places: Annotated[
            Path | None,
            typer.Option(metavar="FILE", help="Ranges and places, a line each; nodes of a place get its addresses."),
        ] = None,
        store: Annotated[
            str | None,
            typer.Option(metavar="DIR|URL", help="With --workers: finished archive files travel to this store."),
        ] = None,
        store_types: Annotated[
            list[str] | None,
            typer.Option(
                "--store-type",
                metavar="PATTERN",
                help="Only this media type travels to the store: 'text/*'. Repeatable.",
            ),
        ] = None,
        store_relevance: Annotated[
            str | None,
            typer.Option(metavar="X", help="Only pages this relevant to --topic, 0 to 1, travel to the store [0]."),
        ] = None,
        checkpoint_s: Annotated[
            str | None,
            typer.Option("--checkpoint", metavar="TIME", help="Copy shards to the store this often; none: never [5m]."),
        ] = None,
        config: Annotated[Path | None, typer.Option(metavar="FILE", help="Settings as TOML; options win.")] = None,
        json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output at the end.")] = False,
        quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    ) -> None:
        """Crawl from URLs into a folder. The same command again goes on where it stopped."""
        if into is None:
            raise SettingsError("say where to keep the pages: --into DIR")
        typed = {name: value for name, value in context.params.items() if value not in (None, [], ())}
        if places is not None:
            from lycosa.cluster.locality import read_places_file

            typed["places"] = read_places_file(places)
        options = {parameter.name or "": parameter.opts[0] for parameter in context.command.params}
        settings = gather(typed, into=into, config=config, url_files=url_files or [], options=options)
        run(CrawlJob(settings, into, json=json, quiet=quiet))

    return crawl


def gather(
    typed: Mapping[str, object],
    *,
    into: Path,
    config: Path | None = None,
    url_files: list[str] | None = None,
    options: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
) -> "CrawlSettings":
    """Defaults < the collection's settings < `config` < environment < what was typed; URLs add to the collection's.

    `typed` may hold more than settings; `options` says how each is spelled on the command line.
    """
    from lycosa.crawl.inbox import literal_hosts
    from lycosa.settings import SETTINGS, SettingsSource, from_environment, merge, read_file, settings_of_folder

    spellings = {**(options or {}), "seeds": "the list of URLs"}
    given = {name: value for name, value in typed.items() if name in SETTINGS}
    for name, what in NEVER_EMPTY.items():
        if isinstance(word := given.get(name), str) and not word.strip():
            raise SettingsError(f"{spellings.get(name, name)} is empty: give {what}, or leave the option out")
    listed = [url for file in url_files or [] for url in read_urls(file)]
    if isinstance(place := given.get("store"), str) and place and "://" not in place:
        given["store"] = str(Path(place).expanduser().absolute())
    if listed:
        given["seeds"] = [*_texts(given.get("seeds")), *listed]
    kept = settings_of_folder(into)
    sources = [
        kept or SettingsSource({}),
        read_file(config) if config else SettingsSource({}),
        from_environment(os.environ if environ is None else environ),
        SettingsSource(given, lambda name: spellings.get(name, name)),
    ]
    settings = merge(*sources)
    if kept is None and not settings.seeds:
        raise SettingsError("there is nothing to start from: give a URL, or a file of them with -i FILE")
    if "checkpoint_s" in given and not settings.store:
        raise SettingsError("--checkpoint copies shards to a central store: say which with --store DIR|URL")
    if (settings.store_types or settings.store_relevance) and not settings.store:
        raise SettingsError(
            "--store-type and --store-relevance choose what travels to a central store: say which with --store DIR|URL"
        )
    if settings.store_relevance and not (settings.topic or settings.topic_pages):
        raise SettingsError(
            "--store-relevance is relevance to a topic: say which with --topic WORDS or --topic-page FILE"
        )
    seeds = (*merge(kept).seeds, *settings.seeds) if kept else settings.seeds
    on_the_line = merge(
        SettingsSource({"seeds": _texts(typed.get("seeds"))})
    ).seeds  # not those of a file or the environment
    opened = (*settings.typed_hosts, *literal_hosts(on_the_line))
    update = {"seeds": tuple(dict.fromkeys(seeds)), "typed_hosts": tuple(dict.fromkeys(opened))}
    return settings.replace(**update)


def _texts(value: object) -> list[object]:
    return list(value) if isinstance(value, list | tuple) else []


def _is_network(word: str) -> bool:
    try:
        ip_network(word, strict=False)
    except ValueError:
        return word == "private"
    return True
