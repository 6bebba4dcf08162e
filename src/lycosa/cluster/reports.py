"""What agents and the coordinator say to each other, twice a second: how it goes, what is in force. Records only."""

import msgspec

from lycosa.cluster.assignment import Table
from lycosa.engine.stats import CrawlStats
from lycosa.settings import CrawlSettings


class Enrolment(msgspec.Struct, frozen=True):
    """What an agent is started with. `incarnation` was never given before. `settings` are those of the whole crawl."""

    name: str
    incarnation: int
    table: Table
    settings: CrawlSettings
    folder: str
    members: dict[str, int] = {}
    number: int = 0
    version: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's beat. `activity` is a number that moves with everything it does; `cap` is up to which page it may go.
    `widened` are URLs whose hosts it made part of the scope; `addresses` those it wants to ask, or gives back."""

    name: str
    incarnation: int
    epoch: int
    stats: CrawlStats
    is_idle: bool = False
    activity: int = 0
    pages: int = 0
    cap: int = 0
    widened: tuple[str, ...] = ()
    ended: str = ""
    sent_urls: int = 0
    sent_bytes: int = 0
    sent_messages: int = 0


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a beat. `is_void`: another incarnation has taken this one's place, or the member is not known.
    `table` is there when the agent's is old; `cap` is None where the crawl has no limit of pages; `members` has every
    member's incarnation."""

    is_void: bool = False
    table: Table | None = None
    stop: str = ""
    is_over: bool = False
    cap: int | None = None
    widened: tuple[str, ...] = ()
    members: dict[str, int] = {}
