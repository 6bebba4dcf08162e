"""Membership: the members of a collection's crawl, what they own, and what they will own after a rebalancing.

A change of members, or of known addresses, makes a table to come. While there is one nothing else changes;
`put_in_force` makes it the table that counts. `ClusterState` is what survives the coordinator: one small file in the
folder of the collection, replaced as a whole. Who is alive is the coordinator's business, not this module's.
"""

import os
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from lycosa.cluster.assignment import (
    BUCKET_SCHEMES,
    LETTER_VALUES,
    LETTER_VALUES_WITHOUT_DIGITS,
    AssignmentTable,
    Member,
    Scheme,
    build_table,
)
from lycosa.cluster.locality import LearnedAddresses, PlaceRanges, bucket_places, place_ranges
from lycosa.errors import ClusterError, SettingsError, StoreError
from lycosa.settings import CrawlSettings, read_letter
from lycosa.store import SHARDED_FILE, SHARDS_FOLDER, shard_paths

STATE_FILE = SHARDED_FILE


class ClusterState(msgspec.Struct):
    """What survives the coordinator. `number` is the last given to a member, `incarnation` the last of a start."""

    epoch: int = 0
    number: int = 0
    incarnation: int = 0
    scheme: Scheme = Scheme.RENDEZVOUS
    threads: int = 1  # shards of a machine, for the scheme two-level
    letters: dict[str, int] = {}  # for the scheme letter-sum; none: it was begun when digits had no value
    members: list[Member] = []
    after: list[Member] = []  # the members once a move is over; empty: nothing moves
    leaving: list[str] = []  # have handed over what they had, and may still have URLs to send
    widened: list[str] = []
    ranges: dict[str, str] = {}  # of addresses, and their places
    homes: dict[int, str] = {}  # buckets and the address that decides, for assignments that go by it
    homes_new: dict[int, str] = {}  # those that count once a move is over
    identity: str = ""  # by which a central store knows its collection
    stores: list[str] = []  # URLs of the central stores that were its own
    moved: dict[str, int] = {}  # how often a shard has moved to another machine


def load_cluster_state(folder: Path) -> ClusterState:
    """What an earlier coordinator kept, or nothing yet."""
    try:
        return msgspec.json.decode((folder / STATE_FILE).read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return ClusterState()
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{folder / STATE_FILE} cannot be read: {error}") from error


def missing_shards(folder: Path) -> list[str]:
    """Says in a sentence each which shards should be here and are not, where others are: their folders were lost."""
    kept = load_cluster_state(folder)
    here = {path.name for path in shard_paths(folder)}
    gone = [member.name for member in kept.members if not member.address and member.name not in here]
    what = ": its last copy in the store is taken instead" if kept.stores else ", and with it all that it held"
    return [f"the folder of shard {name} is missing ({folder / SHARDS_FOLDER / name}){what}" for name in gone if here]


def save_cluster_state(folder: Path, kept: ClusterState) -> None:
    """Replaces the file as a whole; it is on the disk when this returns, since no incarnation may be given twice."""
    new = folder / f"{STATE_FILE}.new"
    try:
        with new.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / STATE_FILE)
    except OSError as error:
        raise StoreError(f"{folder / STATE_FILE} cannot be written: {error.strerror}") from error


NO_PLACES: Mapping[str, str] = {}


class Membership:
    """The members of the collection at `folder`."""

    def __init__(self, folder: Path, settings: CrawlSettings, now: Callable[[], float]) -> None:
        self.folder, self.settings, self._now = folder, settings, now
        self._kept = load_cluster_state(folder)
        self._table: AssignmentTable | None = None
        self._next: AssignmentTable | None = None
        self._ranges, self._learned = PlaceRanges(self._kept.ranges), LearnedAddresses()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder} epoch={self._kept.epoch} members={len(self._kept.members)}>"

    @property
    def names(self) -> list[str]:
        """All who have to be there: members, those to be, and those on their way out."""
        both = {member.name: None for member in (*self._kept.members, *self._kept.after)}
        return [*both, *(name for name in self._kept.leaving if name not in both)]

    def address(self, name: str) -> str:
        """The machine that has a member's files; empty: any."""
        both = (*self._kept.members, *self._kept.after)
        return next((member.address for member in both if member.name == name), "")

    @property
    def is_calm(self) -> bool:
        """Nothing moves, and nobody is on the way out."""
        return not self._kept.after and not self._kept.leaving

    @property
    def is_restorable(self) -> bool:
        """Is there a copy of every shard elsewhere?"""
        return bool(self.settings.store) and self.settings.checkpoint_s is not None

    def identity(self) -> str:
        """The name of the collection, for ever."""
        if not self._kept.identity:
            self._kept.identity = uuid.uuid4().hex
            self._keep()
        return self._kept.identity

    def uses(self, url: str) -> None:
        """The central store there is the collection's from now on."""
        if url not in self._kept.stores:
            self._kept.stores.append(url)
            self._keep()

    def has_used(self, url: str) -> bool:
        """May agents have brought something to the central store there?"""
        return url in self._kept.stores and self._kept.incarnation > 0

    # tables

    @property
    def table(self) -> AssignmentTable:
        if self._table is None or self._table.epoch != self._kept.epoch:
            self._table = self._drawn(self._kept.epoch, self._kept.members, self._kept.homes)
        return self._table

    @property
    def moving(self) -> AssignmentTable | None:
        """The table that will be in force once every bucket that moves has arrived."""
        if not self._kept.after:
            return None
        if self._next is None or self._next.epoch != self._kept.epoch + 1:
            homes = self._kept.homes | self._kept.homes_new
            self._next = self._drawn(self._kept.epoch + 1, self._kept.after, homes)
        return self._next

    def _drawn(self, epoch: int, members: list[Member], homes: dict[int, str]) -> AssignmentTable:
        places = bucket_places(homes, self._ranges)
        kept, letters = self._kept, self._kept.letters or LETTER_VALUES_WITHOUT_DIGITS
        return build_table(
            epoch, members, kept.scheme, threads=kept.threads, letters=letters, places=places, homes=homes
        )

    def put_in_force(self) -> None:
        """Everything has arrived: the new table counts. Who is not in it is on its way out."""
        kept = self._kept
        stay = {member.name for member in kept.after}
        kept.leaving = [member.name for member in kept.members if member.name not in stay]
        kept.members, kept.after, kept.epoch = kept.after, [], kept.epoch + 1
        kept.homes, kept.homes_new = kept.homes | kept.homes_new, {}
        self._keep()

    def settle_homes(self, told: Mapping[int, str]) -> None:
        """Addresses of buckets are known by now: those that belong elsewhere move there, every now and then."""
        kept, now = self._kept, self._now()
        if told:
            self._learned.hear(told, kept.homes, now)
        if not self.is_calm or not self._learned.is_due(now):
            return
        new = self._learned.take(now)
        after = self._drawn(kept.epoch + 1, kept.members, kept.homes | new)
        if after.owners == self.table.owners:
            kept.homes |= new
        else:
            kept.after, kept.homes_new = list(kept.members), new
        self._keep()

    # who comes and goes

    def found(
        self,
        addresses: Iterable[str],
        *,
        scheme: Scheme = Scheme.RENDEZVOUS,
        places: Mapping[str, str] = NO_PLACES,
    ) -> None:
        """Makes the first members of a collection that has none, one at each address; empty: wherever there is room."""
        for number, address in enumerate(addresses):
            self._kept.number += 1
            self._kept.members.append(self._member(f"s{number}", address, places))
        machines = {member.address for member in self._kept.members}
        self._kept.threads = len(self._kept.members) // len(machines)
        self._kept.scheme, self._kept.epoch = scheme, self._kept.epoch + 1
        self._kept.letters = letter_values(self.settings) if scheme is Scheme.LETTER_SUM else {}
        self._kept.ranges = place_ranges(self.settings)
        self._ranges = PlaceRanges(self._kept.ranges)
        self._keep()

    def _member(self, name: str, address: str, places: Mapping[str, str]) -> Member:
        return Member(name, self._kept.number, place=places.get(address, ""), address=address)

    def join(self, addresses: Iterable[str], places: Mapping[str, str] = NO_PLACES) -> list[str]:
        """New members, one at each address, with its place; returns their names. Only their share moves."""
        self._require_calm()
        new = []
        for address in addresses:
            self._kept.number += 1
            new.append(self._member(f"s{self._kept.number - 1}", address, places))
        self._kept.after = [*self._kept.members, *new]
        self._keep()
        return [member.name for member in new]

    def resize(self, count: int, machines: Sequence[str] = (), places: Mapping[str, str] = NO_PLACES) -> None:
        """As many members as wanted, once what is moving has arrived: new ones join, or the youngest leave."""
        members = self._kept.after or self._kept.members
        if len(members) == count:
            return
        if count > len(members):
            self.join(self.roomiest(count - len(members), machines), places)
        else:
            self.leave([member.name for member in members[count:]])

    def roomiest(self, count: int, machines: Sequence[str]) -> list[str]:
        """Where so many more members go: each to the machine with the fewest for its processors (it is named once for
        each). Nowhere in particular, if all machines see the same files or there is only one."""
        if not machines or not any(member.address for member in self._kept.members):
            return [""] * count
        room, has = Counter(machines), Counter(member.address for member in self._kept.members)
        chosen = []
        for _ in range(count):
            chosen.append(min(room, key=lambda machine: ((has[machine] + 1) / room[machine], machine)))
            has[chosen[-1]] += 1
        return chosen

    def require_same(self, settings: CrawlSettings) -> None:
        """Who owns what was settled when the collection was begun."""
        if settings.assignment != self._kept.scheme:
            raise SettingsError(f"{self.folder} was begun with --assignment {self._kept.scheme}: go on with it")
        if place_ranges(settings) != self._kept.ranges:
            raise SettingsError(f"{self.folder} was begun with other places: go on without --places")
        if (settings.letters or self._kept.letters) and letter_values(settings) != self._kept.letters:
            raise SettingsError(f"{self.folder} was begun with other letters: go on with the same setting")

    def leave(self, names: Collection[str]) -> None:
        """Members hand over what they have and end."""
        self._require_calm()
        stay = [member for member in self._kept.members if member.name not in names]
        if len(stay) + len(names) != len(self._kept.members) or not stay:
            raise SettingsError(f"cannot take {', '.join(names)} out of {', '.join(self.names)}")
        self._kept.after = stay
        self._keep()

    def rehome(self, name: str, address: str) -> None:
        """A member's machine is gone: from now on it lives at another address."""
        for members in (self._kept.members, self._kept.after):
            members[:] = [replace(one, address=address) if one.name == name else one for one in members]
        self._kept.moved[name] = self._kept.moved.get(name, 0) + 1
        self._keep()

    def _require_calm(self) -> None:
        if not self.is_calm:
            raise ClusterError("hosts are moving already: try again when they have arrived")
        if self._kept.scheme not in BUCKET_SCHEMES:
            raise SettingsError(f"{self._kept.scheme} moves nearly every host when members change: use rendezvous")

    def _keep(self) -> None:
        save_cluster_state(self.folder, self._kept)


def letter_values(settings: CrawlSettings) -> dict[str, int]:
    """The values of characters that a crawl's settings ask for."""
    return {**LETTER_VALUES, **dict(read_letter(text) for text in settings.letters)}
