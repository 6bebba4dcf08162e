"""What can be set about a crawl: names, defaults and bounds, in groups that a reader can take in one by one.

Invariant: a `CrawlSettings` is valid, frozen, and holds only values that `to_toml` can write and read back equal.
Made by `settings.sources.merge` or directly by a program; read by the engine and the command line.
"""

import difflib
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from lycosa.errors import SettingsError
from lycosa.settings import values as v

# A value is shown in a message up to here; nobody needs all of a pasted page.
SHOWN_CHARS = 60
MB = 1_000_000
GIB = 2**30

Switch = Annotated[bool, BeforeValidator(v.flag)]


def _by(read: Callable[[Any], Any]) -> BeforeValidator:
    return BeforeValidator(read)


def _says(meaning: str) -> Any:
    return Field(description=meaning)


class _SettingsGroup(BaseModel):
    """Settings that belong together; `title` stands above them in a settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # only the whole is ever made
    title: ClassVar[str]


class ReachSettings(_SettingsGroup):
    title: ClassVar[str] = "What belongs to the crawl"

    seeds: Annotated[tuple[str, ...], _by(v.each(v.seed)), _says("Where it starts.")] = ()
    scope: Annotated[
        Literal["host", "domain", "prefix", "any"],
        _by(v.one_of("host", "domain", "prefix", "any")),
        _says("How far from a seed it goes: its host, its domain, its folder (prefix), or any."),
    ] = "host"
    include: Annotated[
        tuple[str, ...],
        _by(v.each(v.pattern)),
        _says("If there are any, a URL must match one; * is any run of characters, /… is about the path alone."),
    ] = ()
    exclude: Annotated[tuple[str, ...], _by(v.each(v.pattern)), _says("A URL must match none of these.")] = ()
    skip_extensions: Annotated[
        tuple[str, ...], _by(v.each(v.extension)), _says("Documents that are not asked for, such as zip.")
    ] = ()
    types: Annotated[
        tuple[str, ...],
        _by(v.each(v.pattern)),
        _says("If there are any, bodies of other media types are not read, such as text/* or image/png."),
    ] = ()
    images: Annotated[Switch, _says("Ask for the images of pages too.")] = False
    sitemaps: Annotated[Switch, _says("Read the sitemaps of hosts.")] = True
    tables: Annotated[
        Literal["off", "auto", "always"],
        _by(v.one_of("off", "auto", "always")),
        _says("Read tables of links: always before documents; auto: beside them where that costs no page."),
    ] = "auto"
    eager: Annotated[Switch, _says("Take the links of a slow document while it arrives.")] = True
    max_url_bytes: Annotated[int, _by(v.whole(16, 16_384)), _says("Longer URLs are dropped.")] = 2_048
    max_path_segments: Annotated[int, _by(v.whole(1, 16_384)), _says("Deeper paths are dropped.")] = 20
    max_segment_repeats: Annotated[
        int, _by(v.whole(1, 16_384)), _says("Paths in which a run of segments follows itself more often are dropped.")
    ] = 2


class LimitSettings(_SettingsGroup):
    title: ClassVar[str] = "When it ends; all of it counts over the collection, not over one run"

    pages: Annotated[int | None, _by(v.or_none(v.whole(1))), _says("Most pages kept.")] = None
    depth: Annotated[
        int | None, _by(v.or_none(v.whole(0))), _says("Most links followed from a seed; 0 is the seeds alone.")
    ] = None
    time_s: Annotated[float | None, _by(v.or_none(v.seconds(0.001))), _says("Longest time.")] = None
    bytes: Annotated[int | None, _by(v.or_none(v.size(1))), _says("Most bytes received.")] = None
    pages_per_host: Annotated[int | None, _by(v.or_none(v.whole(1))), _says("Most pages kept of one host.")] = None
    host_depth: Annotated[
        int | None,
        _by(v.or_none(v.whole(0))),
        _says("Most links followed within one host, from where it was entered; 0 is that page alone."),
    ] = None
    wait: Annotated[
        Switch,
        _says(
            "Keep waiting for hosts that do not answer, and for those that ask for more than 15 minutes of patience."
        ),
    ] = False
    fail_on_limit: Annotated[Switch, _says("End with exit code 3 when one of these limits ended it.")] = False


class FreshnessSettings(_SettingsGroup):
    title: ClassVar[str] = "How it is kept fresh"

    keep_fresh: Annotated[Switch, _says("Never end: look at pages again as they are due.")] = False
    visits_per_day: Annotated[
        int | None,
        _by(v.or_none(v.whole(1))),
        _says("Pages looked at again a day, each once an hour at most; none: a tenth of all."),
    ] = None
    schedule: Annotated[
        Literal["harmonic", "uniform", "proportional", "adaptive"],
        _by(v.one_of("harmonic", "uniform", "proportional", "adaptive")),
        _says("How they are spread: by importance and rate of change (harmonic), or as others do it."),
    ] = "harmonic"


class PolitenessSettings(_SettingsGroup):
    title: ClassVar[str] = "How it behaves towards hosts"

    delay_s: Annotated[
        float, _by(v.seconds(0)), _says("Least pause between the end of a request and the next to the same host.")
    ] = 1.0
    per_host: Annotated[
        int, _by(v.whole(1, 10_000)), _says("Most requests at a time to one host; above 1 only for hosts of your own.")
    ] = 1
    ip_delay_s: Annotated[float, _by(v.seconds(0)), _says("The same pause for an address that hosts share.")] = 0.0
    per_ip: Annotated[
        int, _by(v.whole(1, 10_000)), _says("Most requests at a time to one address; at least per_host counts.")
    ] = 4
    groups: Annotated[
        tuple[str, ...],
        _by(v.each(v.group)),
        _says("Hosts asked as one, such as *.example.org=2/1s; domain=1/0: all of a registrable domain."),
    ] = ()
    agent: Annotated[str, _by(v.product), _says("The name that robots.txt files know it by.")] = "lycosa"
    contact: Annotated[
        str | None, _by(v.or_none(v.contact)), _says("Where site owners reach you, shown to every host: URL or e-mail.")
    ] = None
    robots: Annotated[Switch, _says("Obey robots.txt; switch it off only for hosts of your own.")] = True
    nofollow: Annotated[Switch, _says("Obey rel=nofollow.")] = True


class NetworkSettings(_SettingsGroup):
    title: ClassVar[str] = "How it connects"

    transfers: Annotated[int, _by(v.whole(1, 100_000)), _says("Most requests at a time in all.")] = 500
    bandwidth_bytes_s: Annotated[
        int | None, _by(v.or_none(v.size(1))), _says("Most bytes a second over all requests.")
    ] = None
    connect_s: Annotated[float, _by(v.seconds(0.001)), _says("Longest wait for a connection.")] = 10.0
    first_byte_s: Annotated[float, _by(v.seconds(0.001)), _says("Longest wait from there to the first byte.")] = 20.0
    idle_s: Annotated[float, _by(v.seconds(0.001)), _says("Longest pause between two bytes.")] = 20.0
    total_s: Annotated[float, _by(v.seconds(0.001)), _says("Longest time for one response.")] = 120.0
    body_bytes: Annotated[int, _by(v.size(1)), _says("Most bytes of one body.")] = 10 * MB
    http2: Annotated[Switch, _says("Speak HTTP/2 with hosts that do.")] = True
    proxy: Annotated[str, _by(v.proxy), _says("URL of a proxy; empty: none, whatever the environment says.")] = ""
    verify_tls: Annotated[Switch, _says("Refuse hosts with a bad certificate.")] = True
    ca_file: Annotated[str, _by(v.text), _says("Certificates to trust instead of the system's.")] = ""
    dns: Annotated[
        tuple[str, ...], _by(v.each(v.name_server)), _says("Name servers, ADDRESS:PORT; none: those of the system.")
    ] = ()
    allow_private: Annotated[
        tuple[str, ...],
        _by(v.private_networks),
        _says("Networks with special addresses that may be asked; true or private: all private networks."),
    ] = ()
    typed_hosts: Annotated[
        tuple[str, ...],
        _by(v.each(v.text)),
        _says("Addresses that were typed as seeds, HOST:PORT; they may be asked even if they are private."),
    ] = ()
    crawl_batch: Annotated[
        int, _by(v.whole(1, 100_000)), _says("URLs with known addresses that are handed out to be fetched at a time.")
    ] = 64
    mapping_workers: Annotated[int, _by(v.whole(1, 1_000)), _says("Tasks that look up addresses.")] = 4
    mapping_batch: Annotated[int, _by(v.whole(1, 100_000)), _says("Names each takes at a time.")] = 64


class OrderSettings(_SettingsGroup):
    title: ClassVar[str] = "What goes first"

    policy: Annotated[
        str,
        _by(v.text),
        _says(
            "A walk (breadth, top-window, leaf-window), a ranking (internal-first, pvalue, rank, topic), or both: R+W."
        ),
    ] = "breadth"
    topic: Annotated[str, _by(v.text), _says("Words of a topic: pages about it go first.")] = ""
    topic_pages: Annotated[
        tuple[str, ...], _by(v.each(v.text)), _says("Files with example pages of the topic, in place of words.")
    ] = ()
    window_hosts: Annotated[
        int, _by(v.whole(1, 1_000_000)), _says("Hosts in the window of top-window and leaf-window: a step.")
    ] = 1_000
    window_leaves: Annotated[
        int, _by(v.whole(1, 100_000)), _says("URLs in the window that leaf-window has over each host.")
    ] = 512
    child_order: Annotated[
        str,
        _by(v.text),
        _says("Characters that top-window and leaf-window take first, in this order: 9876543210 is latest first."),
    ] = ""
    mine: Annotated[
        Literal["off", "ancestors", "all"],
        _by(v.one_of("off", "ancestors", "all")),
        _says("Guess URLs that nobody links to: the folders above known ones, or numbered series too (all)."),
    ] = "ancestors"


class PartSettings(_SettingsGroup):
    title: ClassVar[str] = "Parts, each the name of an entry point of the group lycosa.parts, or module:attribute"

    resolver: Annotated[str, _by(v.text), _says("How names become addresses.")] = "cares"
    downloader: Annotated[str, _by(v.text), _says("How URLs are fetched.")] = "curl"
    filters: Annotated[tuple[str, ...], _by(v.each(v.text)), _says("Filters for URLs, beside the settings.")] = ()
    analysers: Annotated[
        tuple[str, ...],
        _by(v.each(v.analyser)),
        _says("What reads documents, KIND=NAME or TYPE/SUBTYPE=NAME, such as pdf=my_parts:pdf, beside the usual ones."),
    ] = ()
    statistics: Annotated[tuple[str, ...], _by(v.each(v.text)), _says("What sees every page.")] = ()


class StorageSettings(_SettingsGroup):
    title: ClassVar[str] = "How it keeps what it finds"

    durability: Annotated[
        Literal["process", "power"],
        _by(v.one_of("process", "power")),
        _says("What the collection survives: the end of the process, or a power failure too."),
    ] = "process"
    archive: Annotated[
        Literal["full", "none"],
        _by(v.one_of("full", "none")),
        _says("What is archived of pages: all that was sent (full), or nothing (none): they are watched by digest."),
    ] = "full"
    patch: Annotated[
        Literal["store", "read"],
        _by(v.one_of("store", "read")),
        _says(
            "When a table of volatile parts is put into its document: for each version stored, or whenever it is read."
        ),
    ] = "store"
    warc_bytes: Annotated[int, _by(v.size(1)), _says("A new WARC file is begun at this size.")] = GIB
    store_interval_s: Annotated[float, _by(v.seconds(0, 60)), _says("Longest time between two commits.")] = 0.25
    store_batch: Annotated[int, _by(v.whole(1, 100_000)), _says("Most results in one commit.")] = 300
    index: Annotated[
        Switch, _says("Keep the search index up to date while crawling; without it a search begins by catching up.")
    ] = False


class ClusterSettings(_SettingsGroup):
    title: ClassVar[str] = "How many do it"

    workers: Annotated[
        int, _by(v.whole(0, 10_000)), _says("Processes, each with its share of the hosts; 0: this one alone.")
    ] = 0
    assignment: Annotated[
        Literal["rendezvous", "ip", "letter-sum", "two-level"],
        _by(v.one_of("rendezvous", "ip", "letter-sum", "two-level")),
        _says("Who gets which host: rendezvous keeps a domain together and moves little."),
    ] = "rendezvous"
    letters: Annotated[
        tuple[str, ...],
        _by(v.each(v.letter)),
        _says("Values of characters for letter-sum, such as -=37, beside its own: a=1 … z=26, 0=27 … 9=36."),
    ] = ()
    places: Annotated[
        tuple[str, ...],
        _by(v.each(v.place)),
        _says("Where addresses are, such as 192.0.2.0/24=berlin: agents of that place get them."),
    ] = ()
    exchange: Annotated[
        Literal["direct", "coordinator"],
        _by(v.one_of("direct", "coordinator")),
        _says("How URLs travel to their owner: straight, or through the coordinator, which reads robots.txt for all."),
    ] = "direct"
    store: Annotated[
        str,
        _by(v.text),
        _says("A central store, folder or URL: finished archive files travel there; empty: they stay."),
    ] = ""
    store_types: Annotated[
        tuple[str, ...],
        _by(v.each(v.pattern)),
        _says("If there are any, pages of other media types are not brought to the store, such as text/*."),
    ] = ()
    store_relevance: Annotated[
        float,
        _by(v.share),
        _says("Pages less relevant to the topic, from 0 to 1, are not brought to the store; 0: all are."),
    ] = 0.0
    checkpoint_s: Annotated[
        float | None,
        _by(v.or_none(v.seconds(1))),
        _says("Pause between two copies of every shard to the store, from which it can be restored; none: no copies."),
    ] = 300.0


class CrawlSettings(
    ReachSettings,
    OrderSettings,
    LimitSettings,
    FreshnessSettings,
    PolitenessSettings,
    NetworkSettings,
    StorageSettings,
    ClusterSettings,
    PartSettings,
):
    """The settings of one crawl. A wrong name or value is a `SettingsError`, whoever makes one."""

    model_config = ConfigDict(defer_build=False)

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise SettingsError(explain(error)) from error
        if self.index and self.archive == "none":
            raise SettingsError("index is on and archive is none, but a search index needs bodies: choose one of them")

    @property
    def parallel_per_ip(self) -> int:
        """Requests at a time that an address gets: a host that may have more brings its address along."""
        return max(self.per_ip, self.per_host)

    def user_agent(self, version: str) -> str:
        """The header by which hosts know the crawl: `lycosa/1.0 (+https://example.org/bot)`."""
        name = f"{self.agent}/{version}" if self.agent == "lycosa" else f"{self.agent} lycosa/{version}"
        return f"{name} (+{self.contact})" if self.contact else name


GROUPS: tuple[type[_SettingsGroup], ...] = (
    ReachSettings,
    OrderSettings,
    LimitSettings,
    FreshnessSettings,
    PolitenessSettings,
    NetworkSettings,
    StorageSettings,
    ClusterSettings,
    PartSettings,
)


def explain(error: ValidationError, spelled: Callable[[str], str] = str) -> str:
    """The first thing wrong, in words; `spelled` is how the user would recognise a setting."""
    first = error.errors()[0]
    name, value = str(first["loc"][0]), first["input"]
    if first["type"] == "extra_forbidden":
        near = nearest(name)
        return f"there is no setting {spelled(name)}" + (f"; did you mean {near}?" if near else "")
    unfit = first.get("ctx", {}).get("error")
    if not isinstance(unfit, v.InvalidValue):
        return f"{spelled(name)} is {_shown(value)}: {first['msg']}"
    if unfit.item is not None:
        return f"{spelled(name)} holds {_shown(unfit.item)}, {unfit.phrase}"
    return f"{spelled(name)} is {_shown(value)}, {unfit.phrase}"


def nearest(name: str, *, cutoff: float = 0.6) -> str | None:
    """The setting that someone who wrote `name` most likely meant; a higher cutoff wants more likeness."""
    near = difflib.get_close_matches(name.lower().replace("-", "_"), list(CrawlSettings.model_fields), 1, cutoff)
    return near[0] if near else None


def _shown(value: object) -> str:
    try:
        whole = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        whole = "a very long number"
    return whole if len(whole) <= SHOWN_CHARS else f"{whole[:SHOWN_CHARS]}…"
