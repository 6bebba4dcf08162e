# ruff: noqa: RUF009  (a setting is a dataclass field with what is known about it)
"""What can be set about a crawl: one table that options, TOML files, environment variables and docs/settings.md share.

A setting is one line of `CrawlSettings`: its type, its default, how it is read, what it means, and how the command line
spells it. Invariant: a `CrawlSettings` is valid, frozen, and holds only values that `to_toml` writes and that read back
equal. Made by `settings.sources.merge` or by a program; read by every room above.
"""

import dataclasses
import difflib
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from lycosa.errors import SettingsError
from lycosa.settings import credentials as c
from lycosa.settings import values as v
from lycosa.settings.fields import field_table
from lycosa.settings.watching import ignore_rules, tell_rules

T = TypeVar("T")

_UNIT = re.compile(r"_(?:bytes_)?s$")
# A value is shown in a message up to here; nobody needs all of a pasted page.
SHOWN_CHARS = 60
MB = 1_000_000
GIB = 2**30
# Written into lycosa.toml by earlier versions; nobody set them, and they are constants of their rooms now.
RETIRED = frozenset(
    "max_url_bytes max_path_segments max_segment_repeats connect_s first_byte_s idle_s schedule".split()
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """What is known of a setting beside its type and default; `option` says how the command line spells it, None if it
    does not."""

    name: str = ""
    group: str
    read: Callable[[Any], Any]
    help: str
    option: str | None
    metavar: str
    is_common: bool  # stands before the groups in the help of `lycosa crawl`
    # May be changed while a crawl runs; others decide how a collection is kept, or whom it asks.
    is_steered: bool = False
    # Decides which URLs come in: when it has changed, the next run looks at the stored links again (`crawl.requeue`).
    judges_links: bool = False
    choices: tuple[str, ...] = ()

    @property
    def meaning(self) -> str:
        """The help, and the words to choose from."""
        return f"{self.help} One of {', '.join(self.choices)}." if self.choices else self.help


class SettingGroup:
    """A heading under which settings stand in help, TOML and reference; calling it makes a setting of the group.

    The option is spelled as the setting without its unit (`delay_s`: --delay) unless another spelling is given.
    """

    def __init__(self, title: str) -> None:
        self.title = title

    def __call__(
        self,
        default: T,
        read: Callable[[Any], Any],
        help: str,
        *,
        option: str | None = "",
        metavar: str = "",
        common: bool = False,
        steered: bool = False,
        judges: bool = False,
    ) -> T:
        about = Setting(
            group=self.title,
            read=read,
            help=help,
            option=option,
            metavar=metavar,
            is_common=common,
            is_steered=steered,
            judges_links=judges,
        )
        made: T = dataclasses.field(default=default, metadata={"setting": about})
        return made


WHERE = SettingGroup("Where to crawl")
ORDER = SettingGroup("Order")
LIMITS = SettingGroup("Limits, counted over all runs of a collection")
FRESHNESS = SettingGroup("Keeping pages fresh")
WATCHING = SettingGroup("Watching pages, and being told")
POLITENESS = SettingGroup("Politeness")
KEEPING = SettingGroup("What to keep")
SESSIONS = SettingGroup("Sessions and credentials")
NETWORK = SettingGroup("Network")
MACHINES = SettingGroup("Many machines")
PARTS = SettingGroup("Parts of your own: entry points of the group lycosa.parts, or module:attribute")

Scope = Literal["host", "domain", "prefix", "any"]
Rendering = Literal["never", "auto", "always"]
TableUse = Literal["off", "auto", "always"]
Mining = Literal["off", "ancestors", "all"]
Durability = Literal["process", "power"]
Archive = Literal["full", "none"]
SignatureForm = Literal["draft", "cloudflare"]
UsePurpose = Literal["archive", "search", "ai-train", "ai-input"]
PatchTime = Literal["store", "read"]
Assignment = Literal["rendezvous", "ip", "letter-sum", "two-level"]
ExchangeRoute = Literal["direct", "coordinator"]


@dataclasses.dataclass(frozen=True, init=False)
class CrawlSettings:
    """The settings of one crawl. A wrong name or value is a `SettingsError`, whoever makes one."""

    seeds: tuple[str, ...] = WHERE(
        (),
        v.each(v.seed),
        "Start at these URLs; a URL without a scheme is https.",
        option=None,
        judges=True,
    )
    scope: Scope = WHERE(
        "host",
        v.one_of(Scope),
        "Follow links to the seed's host, its domain, its folder (prefix), or anywhere (any).",
        common=True,
        steered=True,
        judges=True,
    )
    include: tuple[str, ...] = WHERE(
        (),
        v.each(v.pattern),
        "Crawl only URLs that match a pattern: * is any text, '/blog/*' looks at the path alone.",
        metavar="PATTERN",
        steered=True,
        judges=True,
    )
    exclude: tuple[str, ...] = WHERE(
        (),
        v.each(v.pattern),
        "Skip URLs that match a pattern: '*.pdf'.",
        metavar="PATTERN",
        steered=True,
        judges=True,
    )
    skip_extensions: tuple[str, ...] = WHERE(
        (),
        v.each(v.extension),
        "Skip documents with these extensions: zip.",
        option=None,
        steered=True,
        judges=True,
    )
    types: tuple[str, ...] = WHERE(
        (),
        v.each(v.media_type),
        "Keep only documents of this media type: 'text/*', image/png.",
        option="--type",
        metavar="PATTERN",
        steered=True,
    )
    external: bool = WHERE(False, v.flag, "Check links that leave the scope, without following them.", judges=True)
    images: bool = WHERE(False, v.flag, "Fetch the images of pages, too.", steered=True)
    requisites: bool = WHERE(
        False,
        v.flag,
        "Fetch what pages need to be shown, too, from other hosts as well: stylesheets, scripts, fonts, images, icons.",
    )
    render: Rendering = WHERE(
        "never",
        v.one_of(Rendering),
        "Let a browser run the scripts of pages: of all (always), or of those where it adds links or text (auto).",
    )
    render_steps: tuple[str, ...] = WHERE(
        (),
        v.each(v.render_step),
        "Do this in rendered pages: 'wait .list', 'wait 500ms', 'click .more' or 'scroll 5'; in this order.",
        option="--render-step",
        metavar="STEP",
    )
    sitemaps: bool = WHERE(True, v.flag, "Read the sitemaps of hosts.", steered=True)
    mine: Mining = WHERE(
        "ancestors",
        v.one_of(Mining),
        "Guess URLs that nobody links to (off; ancestors: folders above known URLs; all: numbered series as well).",
        steered=True,
    )
    tables: TableUse = WHERE(
        "auto",
        v.one_of(TableUse),
        "Read the tables of links that some sites publish: before each document (always), or only when no page is "
        "delayed by it (auto), which excludes a delay, a ranking, --pages-per-host and --per-host 1.",
    )
    eager: bool = WHERE(True, v.flag, "Follow the links of a slow document while it still arrives.")

    policy: str = ORDER(
        "breadth",
        v.text,
        "Choose a walk (breadth, top-window, leaf-window), a ranking (internal-first, pvalue, rank, topic), or both: "
        "rank+top-window.",
        metavar="NAME",
        steered=True,
    )
    topic: str = ORDER(
        "", v.text, "Fetch pages about these words first: 'solar power storage'.", metavar="WORDS", steered=True
    )
    topic_pages: tuple[str, ...] = ORDER(
        (), v.each(v.text), "Fetch pages like the one in this file first.", option="--topic-page", metavar="FILE"
    )
    window_hosts: int = ORDER(
        1_000, v.whole(1, 1_000_000), "Let top-window and leaf-window take this many hosts in a step.", metavar="N"
    )
    window_leaves: int = ORDER(
        512, v.whole(1, 100_000), "Let leaf-window look at this many URLs of each host.", metavar="N"
    )
    child_order: str = ORDER(
        "",
        v.text,
        "Visit paths with these characters first, in this order: 9876543210 takes the latest first. For top-window and "
        "leaf-window.",
        metavar="CHARS",
    )

    pages: int | None = LIMITS(
        None, v.or_none(v.whole(1)), "Stop after this many pages.", metavar="N", common=True, steered=True
    )
    depth: int | None = LIMITS(
        None,
        v.or_none(v.whole(0)),
        "Follow at most this many links in a row from a seed; 0 fetches the seeds alone.",
        metavar="N",
        common=True,
        steered=True,
        judges=True,
    )
    time_s: float | None = LIMITS(
        None,
        v.or_none(v.seconds(0.001)),
        "Stop after this time: 90, 10m or 2h; with --keep-fresh each run has that long.",
        metavar="TIME",
        common=True,
        steered=True,
    )
    bytes: int | None = LIMITS(
        None, v.or_none(v.size(1)), "Stop when this much was received: 500MB or 2GiB.", metavar="SIZE", steered=True
    )
    pages_per_host: int | None = LIMITS(
        None,
        v.or_none(v.whole(1)),
        "Keep at most this many pages of one host.",
        metavar="N",
        steered=True,
        judges=True,
    )
    host_pages: tuple[str, ...] = LIMITS(
        (),
        v.each(v.host_pages),
        "Keep at most this many pages of each matching host, whatever --pages-per-host says: '*.example.org=500'.",
        metavar="PATTERN=N",
        steered=True,
        judges=True,
    )
    host_depth: int | None = LIMITS(
        None,
        v.or_none(v.whole(0)),
        "Follow at most this many links in a row within a host, from the page where the crawl entered it.",
        metavar="N",
        steered=True,
        judges=True,
    )
    wait: bool = LIMITS(
        False,
        v.flag,
        "Keep waiting for hosts that are down or ask for a pause of more than 15 minutes; otherwise the crawl ends "
        "when only such hosts are left.",
        steered=True,
    )
    fail_on_limit: bool = LIMITS(False, v.flag, "Exit with code 3 if one of these limits ended the crawl.")

    keep_fresh: bool = FRESHNESS(False, v.flag, "Run until Ctrl-C, and revisit pages when they are due.")
    visits_per_day: int | None = FRESHNESS(
        None,
        v.or_none(v.whole(1)),
        "Make this many visits per day (visits_per_day in TOML), to each page at most one an hour; without it a tenth "
        "of all pages.",
        option="--budget",
        metavar="N",
        steered=True,
    )

    ignore: tuple[str, ...] = WATCHING(
        (),
        ignore_rules,
        "Leave this out when versions of a page are compared: css=SELECTOR, text=PATTERN, numbers; on some URLs only: "
        "'/news/* css=.ad'.",
        metavar="RULE",
    )
    tell: tuple[str, ...] = WATCHING(
        (),
        tell_rules,
        "Tell only of some changes: those of URLs that match a pattern, or those by which a text appears or "
        "disappears: 'appears=in stock', '/shop/* disappears=sold out'.",
        metavar="RULE",
    )
    webhook: tuple[str, ...] = WATCHING(
        (),
        v.each(v.webhook),
        "Post changes as signed JSON to this URL. The secret is in webhook.secret, beside lycosa.toml.",
        metavar="URL",
    )
    atom: str = WATCHING("", v.text, "Write the latest changes as an Atom feed to this file.", metavar="FILE")
    apprise: str = WATCHING(
        "",
        v.text,
        "Tell of changes through Apprise; this file has an Apprise URL a line, and only its owner may read it.",
        metavar="FILE",
    )

    delay_s: float = POLITENESS(
        1.0,
        v.seconds(0),
        "Pause this long between two requests to the same host: 1, 500ms.",
        metavar="TIME",
        common=True,
        steered=True,
    )
    per_host: int = POLITENESS(
        1,
        v.whole(1, 10_000),
        "Send a host at most this many requests at a time; more than 1 only to hosts of your own.",
        metavar="N",
        steered=True,
    )
    ip_delay_s: float = POLITENESS(
        0.0,
        v.seconds(0),
        "Pause this long between two requests to the same IP address, whatever hosts share it.",
        metavar="TIME",
        steered=True,
    )
    per_ip: int = POLITENESS(
        4,
        v.whole(1, 10_000),
        "Send an IP address at most this many requests at a time, but never fewer than --per-host.",
        metavar="N",
        steered=True,
    )
    groups: tuple[str, ...] = POLITENESS(
        (),
        v.each(v.group),
        "Treat matching hosts as one host: '*.example.org=2/1s' is 2 requests at a time and a pause of 1 s; "
        "'domain=1/0' does it for every registrable domain.",
        option="--group",
        metavar="PATTERN=N/TIME",
        steered=True,
    )
    agent: str = POLITENESS("lycosa", v.product, "Use this name in requests and in robots.txt.", metavar="NAME")
    contact: str | None = POLITENESS(
        None,
        v.or_none(v.contact),
        "Tell every host where its owner can reach you.",
        metavar="URL|EMAIL",
        common=True,
        steered=True,
    )
    bot_key: str = POLITENESS(
        "",
        v.path,
        "Sign requests with the key in this file (Web Bot Auth); lycosa identity makes one.",
        metavar="FILE",
    )
    bot_agent: str = POLITENESS(
        "",
        v.bot_agent,
        "Name this https URL in signed requests: the host that publishes the directory of the key.",
        metavar="URL",
    )
    bot_form: SignatureForm = POLITENESS(
        "draft", v.one_of(SignatureForm), "Write signatures as the draft has it, or as Cloudflare checks them."
    )
    robots: bool = POLITENESS(True, v.flag, "Obey robots.txt; switch it off only for hosts of your own.")
    purpose: UsePurpose = POLITENESS(
        "archive",
        v.one_of(UsePurpose),
        "Say what the pages are for: those whose publishers forbid that are not fetched, or not kept.",
        judges=True,
    )
    nofollow: bool = POLITENESS(
        True, v.flag, "Leave links alone that are marked rel=nofollow.", option=None, steered=True
    )

    keep: tuple[str, ...] = KEEPING(
        (),
        v.each(v.pattern),
        "Keep only pages whose URL matches a pattern, as for --include; others are read for their links.",
        metavar="PATTERN",
        judges=True,
    )
    keep_types: tuple[str, ...] = KEEPING(
        (),
        v.each(v.media_type),
        "Keep only documents of this media type, such as application/pdf, or image/* with --images; pages of others "
        "are read for their links.",
        option="--keep-type",
        metavar="PATTERN",
        judges=True,
    )
    archive: Archive = KEEPING(
        "full",
        v.one_of(Archive),
        "Archive the pages in full, or keep no bodies (none) and only watch pages for changes.",
    )
    index: bool = KEEPING(False, v.flag, "Update the search index during the crawl; otherwise the next search does it.")
    fields: v.SettingTable = KEEPING(
        v.SettingTable(),
        field_table,
        "Extract this field from pages by a CSS selector: price=.price is a text, link=h1 a@href an attribute, "
        "tags=.tag* a list. Pages that are stored already have it, too.",
        option="--field",
        metavar="NAME=SELECTOR",
    )
    durability: Durability = KEEPING(
        "process",
        v.one_of(Durability),
        "Survive a kill (process), or also a power failure (power; slower).",
    )
    patch: PatchTime = KEEPING(
        "store",
        v.one_of(PatchTime),
        "Merge the volatile parts that a site publishes separately into the page when it is stored, or when it is "
        "read.",
    )
    keep_versions: int | None = KEEPING(
        None,
        v.or_none(v.whole(1)),
        "Keep at most this many versions of a page, the current one among them; others are dropped when a crawl ends.",
        metavar="N",
    )
    keep_days: int | None = KEEPING(
        None,
        v.or_none(v.whole(1)),
        "Keep the versions of a page that stood there within this many days; others are dropped when a crawl ends.",
        metavar="N",
    )
    request_log: str = KEEPING(
        "",
        v.text,
        "Write one JSON line for each request to this file: time, URL, status, bytes, timings.",
        metavar="FILE",
    )
    warc_bytes: int = KEEPING(GIB, v.size(1), "Begin a new WARC file at this size.", option=None)
    store_interval_s: float = KEEPING(0.25, v.seconds(0, 60), "Commit results at least this often.", option=None)
    store_batch: int = KEEPING(300, v.whole(1, 100_000), "Commit at most this many results at a time.", option=None)

    headers: tuple[str, ...] = SESSIONS(
        (),
        c.lines_of(c.header),
        "Send this header field to the seeds' origins, or to the named one; ${NAME} is a secret of the environment or "
        "the credentials file.",
        option="--header",
        metavar="'[ORIGIN] NAME: VALUE'",
    )
    users: tuple[str, ...] = SESSIONS(
        (),
        c.lines_of(c.user),
        "Log in with this name and password where the seeds' origins, or the named one, ask for it (Basic, Digest).",
        option="--user",
        metavar="'[ORIGIN] NAME:PASSWORD'",
    )
    certificates: tuple[str, ...] = SESSIONS(
        (),
        c.lines_of(c.certificate),
        "Show this client certificate, a PEM file that has its key, to the seeds' origins or to the named one.",
        option="--certificate",
        metavar="'[ORIGIN] FILE[:PASSWORD]'",
    )
    cookies: bool = SESSIONS(False, v.flag, "Take in cookies and send them back, each site its own.")
    cookie_files: tuple[str, ...] = SESSIONS(
        (),
        c.lines_of(c.file),
        "Send the cookies in this file to the sites of the seeds: a cookies.txt, or a storage state of Playwright.",
        option="--cookie-file",
        metavar="FILE",
    )
    logins: tuple[v.SettingTable, ...] = SESSIONS(
        (),
        c.logins,
        "Log in by these forms before their pages are fetched, and again when a session is lost: tables with url and "
        "fields, see docs/sessions.md.",
        option=None,
    )
    credentials: str = SESSIONS(
        "",
        v.text,
        "Take secrets from this TOML file, which only you may read, beside the credentials.toml of the collection.",
        metavar="FILE",
    )

    transfers: int = NETWORK(
        500, v.whole(1, 100_000), "Run at most this many requests at a time.", option=None, steered=True
    )
    bandwidth_bytes_s: int | None = NETWORK(
        None,
        v.or_none(v.size(1)),
        "Receive at most this much a second over all requests: 2MB.",
        metavar="SIZE",
        steered=True,
    )
    total_s: float = NETWORK(
        120.0, v.seconds(0.001), "Give a response up that takes longer than this.", option=None, steered=True
    )
    body_bytes: int = NETWORK(10 * MB, v.size(1), "Keep at most this much of one body.", option=None, steered=True)
    proxies: tuple[str, ...] = NETWORK(
        (),
        c.lines_of(c.proxy),
        "Connect through this proxy (http, https, socks5), for matching hosts or all; several take turns, and direct "
        "is none. Variables such as http_proxy do not count.",
        option="--proxy",
        metavar="[HOSTS=]URL",
    )
    http2: bool = NETWORK(False, v.flag, "Speak HTTP/2 with hosts that offer it over TLS.")
    verify_tls: bool = NETWORK(True, v.flag, "Refuse hosts whose certificate is not valid.", option=None)
    ca_file: str = NETWORK("", v.text, "Trust the certificates in this file instead of the system's.", option=None)
    dns: tuple[str, ...] = NETWORK(
        (), v.each(v.name_server), "Ask this name server instead of the system's.", metavar="IP:PORT"
    )
    allow_private: tuple[str, ...] = NETWORK(
        (),
        v.private_networks,
        "Allow requests to this private network; without a value: all private networks.",
        metavar="[CIDR]",
    )
    typed_hosts: tuple[str, ...] = NETWORK(
        (),
        v.each(v.text),
        "Hosts that were typed as addresses, HOST:PORT; they are allowed even if they are private.",
        option=None,
    )
    crawl_batch: int = NETWORK(64, v.whole(1, 100_000), "Hand out this many URLs at a time to be fetched.", option=None)
    threads: int | None = NETWORK(
        None,
        v.or_none(v.whole(0, 64)),
        "Read pages on this many threads beside the one that crawls, or in as many processes where there is no native "
        "kernel; none takes one where there is a second core and no --workers.",
        option=None,
    )
    mapping_workers: int = NETWORK(4, v.whole(1, 1_000), "Run this many tasks that look up addresses.", option=None)
    mapping_batch: int = NETWORK(
        64, v.whole(1, 100_000), "Let each lookup task take this many names at a time.", option=None
    )

    workers: int = MACHINES(
        0,
        v.whole(0, 10_000),
        "Crawl with this many processes, each with its share of the hosts; 0 crawls in one process.",
        metavar="N",
    )
    assignment: Assignment = MACHINES(
        "rendezvous",
        v.one_of(Assignment),
        "Choose how hosts are shared out; rendezvous keeps a domain together and moves few hosts when shards change.",
    )
    letters: tuple[str, ...] = MACHINES(
        (),
        v.each(v.letter),
        "Values of characters for letter-sum, such as -=37, beside a=1 … z=26 and 0=27 … 9=36.",
        option=None,
    )
    places: tuple[str, ...] = MACHINES(
        (),
        v.each(v.place),
        "Let machines of a place crawl its addresses. FILE has lines such as 192.0.2.0/24=berlin; in TOML they are the "
        "items of the list.",
        metavar="FILE",
    )
    exchange: ExchangeRoute = MACHINES(
        "direct",
        v.one_of(ExchangeRoute),
        "Send URLs straight to the shard that owns them, or through the coordinator, which reads robots.txt for all.",
        option=None,
    )
    store: str = MACHINES(
        "",
        v.text,
        "Move finished archive files to this central store; needs --workers or a cluster.",
        metavar="DIR|URL",
    )
    store_types: tuple[str, ...] = MACHINES(
        (),
        v.each(v.media_type),
        "Move only pages of this media type to the store: 'text/*'.",
        option="--store-type",
        metavar="PATTERN",
    )
    store_relevance: float = MACHINES(
        0.0, v.share, "Move only pages that are at least this relevant to --topic, from 0 to 1.", metavar="X"
    )
    checkpoint_s: float | None = MACHINES(
        300.0,
        v.or_none(v.seconds(1)),
        "Copy every shard to the store this often, so that it can be restored; none makes no copies.",
        metavar="TIME",
    )

    resolver: str = PARTS("cares", v.text, "This part looks up the addresses of hosts.", option=None)
    downloader: str = PARTS("curl", v.text, "This part fetches URLs.", option=None)
    filters: tuple[str, ...] = PARTS((), v.each(v.text), "These parts say which URLs are wanted.", option=None)
    analysers: tuple[str, ...] = PARTS(
        (),
        v.each(v.analyser),
        "These parts read documents of a kind or media type, KIND=NAME: pdf=my_parts:pdf.",
        option=None,
    )
    statistics: tuple[str, ...] = PARTS((), v.each(v.text), "These parts see every page.", option=None)
    pipelines: tuple[str, ...] = PARTS(
        (),
        v.each(v.text),
        "These parts see each page before it is kept, in this order, and may add fields or drop it.",
        option=None,
        judges=True,
    )

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(DEFAULTS | read_values(values))
        if self.index and self.archive == "none":
            raise SettingsError("index is on and archive is none, but a search index needs bodies: choose one of them")
        if self.archive == "none" and any("appears=" in rule for rule in self.tell):
            raise SettingsError("tell asks for texts that appear, and archive is none: the version before is needed")

    def replace(self, **changes: Any) -> "CrawlSettings":
        """The same settings with some of them changed."""
        return CrawlSettings(**(self.as_dict() | changes))

    def as_dict(self) -> dict[str, Any]:
        """All settings by name."""
        return dict(self.__dict__)

    @property
    def has_sessions(self) -> bool:
        """Does any origin get more than the usual header fields?"""
        named = self.headers, self.users, self.certificates, self.logins, self.cookie_files, self.proxies
        return self.cookies or any(named)

    @property
    def lacks_bodies(self) -> bool:
        """Are there pages whose bodies are not kept?"""
        return self.archive == "none" or bool(self.keep or self.keep_types)

    @property
    def parallel_per_ip(self) -> int:
        """Requests at a time that an address gets: a host that may have more brings its address along."""
        return max(self.per_ip, self.per_host)


def _completed(field: "dataclasses.Field[Any]") -> Setting:
    """A setting with what follows from its name and type."""
    about: Setting = field.metadata["setting"]
    option = about.option if about.option != "" else "--" + _UNIT.sub("", field.name).replace("_", "-")
    choices = get_args(field.type) if get_origin(field.type) is Literal else ()
    return dataclasses.replace(about, name=field.name, option=option, choices=choices)


_FIELDS = dataclasses.fields(CrawlSettings)
SETTINGS = {field.name: _completed(field) for field in _FIELDS}
DEFAULTS: dict[str, Any] = {field.name: field.default for field in _FIELDS}


_USER_OF_URL = re.compile(r"(?<=://)[^/@\s]*@")  # with a password, which does not belong into messages


def read_values(values: Mapping[str, Any], spelled: Callable[[str], str] = str) -> dict[str, Any]:
    """The values as the settings keep them. The first that cannot be is a `SettingsError`, in which `spelled` says how
    the user would recognise the setting."""
    found = {}
    for name, value in values.items():
        if name not in SETTINGS:
            near = nearest(name)
            raise SettingsError(f"there is no setting {spelled(name)}" + (f"; did you mean {near}?" if near else ""))
        try:
            found[name] = SETTINGS[name].read(value)
        except v.InvalidValue as invalid:
            said = f"is {shown_value(value)}" if invalid.item is None else f"holds {shown_value(invalid.item)}"
            raise SettingsError(f"{spelled(name)} {said}, {invalid.phrase}") from invalid
    return found


def nearest(name: str, *, cutoff: float = 0.6) -> str | None:
    """The setting that someone who wrote `name` most likely meant; a higher cutoff wants more likeness."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), list(SETTINGS), 1, cutoff)
    return near[0] if near else None


def shown_value(value: object) -> str:
    """A value as messages quote it: not too long, and no URL with a password in it."""
    try:
        whole = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        whole = "a very long number"
    whole = _USER_OF_URL.sub("…@", whole)
    return whole if len(whole) <= SHOWN_CHARS else f"{whole[:SHOWN_CHARS]}…"
