"""Membership: the members of a collection's crawl, what they own, and what they will own after a rebalancing.

A change of members, or of known addresses, makes a next table. While there is one, nothing else changes;
`activate_next_table` puts it in force. `ClusterState` is what survives the coordinator: one small file in the folder of
the collection, replaced as a whole. Who is alive is the coordinator's business, not this module's.
"""

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
    LearnedAddresses,
    Member,
    PlaceRanges,
    Scheme,
    build_table,
    place_ranges,
)
from lycosa.errors import ClusterError, SettingsError, StoreError
from lycosa.files import replace_file
from lycosa.settings import CrawlSettings, read_letter
from lycosa.store import SHARDED_FILE, SHARDS_FOLDER, is_sharded, is_written, shard_paths, sharded_parent

NO_PLACES: Mapping[str, str] = {}


class ClusterState(msgspec.Struct):
    """The content of `cluster.json`. Names in the file are of earlier versions, whose collections must open."""

    # An epoch numbers the tables. Messages and transfers carry it, and whoever has another one refuses them: two agents
    # that go by different tables could both own a host, or neither.
    epoch: int = 0
    last_number: int = msgspec.field(default=0, name="number")  # given to a member
    last_incarnation: int = msgspec.field(default=0, name="incarnation")  # given to a start of any member
    scheme: Scheme = Scheme.RENDEZVOUS
    threads: int = 1  # shards of a machine, for the scheme two-level
    letters: dict[str, int] = {}  # for the scheme letter-sum; none: it was begun when digits had no value
    members: list[Member] = []
    next_members: list[Member] = msgspec.field(default_factory=list, name="after")  # empty: nothing moves
    leaving: list[str] = []  # have handed over what they had, and may still have URLs to send
    widened: list[str] = []  # URLs whose hosts became part of the scope
    ranges: dict[str, str] = {}  # of addresses, and their places
    # The address that decides where a bucket belongs, for assignments that go by it, now and once a move is over.
    bucket_addresses: dict[int, str] = msgspec.field(default_factory=dict, name="homes")
    next_addresses: dict[int, str] = msgspec.field(default_factory=dict, name="homes_new")
    identity: str = ""  # by which a central store knows its collection
    stores: list[str] = []  # URLs of the central stores that were its own
    generations: dict[str, int] = msgspec.field(default_factory=dict, name="moved")  # moves to other machines


def load_cluster_state(folder: Path) -> ClusterState:
    """What an earlier coordinator saved, or an empty state."""
    try:
        return msgspec.json.decode((folder / SHARDED_FILE).read_bytes(), type=ClusterState)
    except FileNotFoundError:
        return ClusterState()
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{folder / SHARDED_FILE} cannot be read: {error}") from error


def save_cluster_state(folder: Path, state: ClusterState) -> None:
    """Replaces the file as a whole. It is synced when this returns, since no incarnation may be given twice."""
    try:
        replace_file(folder / SHARDED_FILE, msgspec.json.format(msgspec.json.encode(state)), syncs=True)
    except OSError as error:
        raise StoreError(f"{folder / SHARDED_FILE} cannot be written: {error.strerror}") from error


def missing_shards(folder: Path) -> list[str]:
    """A sentence for each shard whose folder should be here and is not, where others are."""
    state = load_cluster_state(folder)
    here = {path.name for path in shard_paths(folder)}
    gone = [member.name for member in state.members if not member.address and member.name not in here]
    what = ": its last copy in the store is taken instead" if state.stores else ", and with it all that it held"
    return [f"the folder of shard {name} is missing ({folder / SHARDS_FOLDER / name}){what}" for name in gone if here]


def require_whole_collection(path: Path) -> None:
    """Refuses to recrawl a shard alone, and shards that are on several machines."""
    if (whole := sharded_parent(path)) is not None:
        raise SettingsError(f"{path} is a shard of {whole}: {recrawl_command(whole)} visits its pages again")
    if _has_machines(path):
        raise SettingsError(f"{path} is on several machines: {recrawl_command(path)} visits its pages again")


def recrawl_command(path: Path) -> str:
    """The command that visits the pages of a collection again."""
    return f"lycosa cluster crawl --into {path} --keep-fresh" if _has_machines(path) else f"lycosa recrawl {path}"


def _has_machines(path: Path) -> bool:
    """Is it a collection whose shards are on the machines of a cluster?"""
    return is_sharded(path) and any(member.address for member in load_cluster_state(path).members)


def lost_shards(path: Path) -> list[str]:
    """A sentence for each shard whose folder is gone; those of a running crawl are its own business."""
    return [] if is_written(path) else missing_shards(path)


class Membership:
    """The members of the collection at `folder`."""

    def __init__(self, folder: Path, settings: CrawlSettings, now: Callable[[], float]) -> None:
        self.folder, self.settings, self._now = folder, settings, now
        self._state = load_cluster_state(folder)
        self._table: AssignmentTable | None = None
        self._next_table: AssignmentTable | None = None
        self._ranges, self._learned = PlaceRanges(self._state.ranges), LearnedAddresses()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.folder} epoch={self._state.epoch} members={len(self._state.members)}>"

    @property
    def names(self) -> list[str]:
        """All that have to run: members, members to be, and those on their way out."""
        # A member on its way out has no hosts any more, but perhaps URLs that others have not committed: it must run.
        both = {member.name: None for member in (*self._state.members, *self._state.next_members)}
        return [*both, *(name for name in self._state.leaving if name not in both)]

    def address(self, name: str) -> str:
        """The machine that has a member's files; empty: any."""
        both = (*self._state.members, *self._state.next_members)
        return next((member.address for member in both if member.name == name), "")

    @property
    def is_stable(self) -> bool:
        """Nothing moves, and nobody is on the way out."""
        return not self._state.next_members and not self._state.leaving

    @property
    def is_restorable(self) -> bool:
        """Is there a checkpoint of every shard elsewhere?"""
        return bool(self.settings.store) and self.settings.checkpoint_s is not None

    def identity(self) -> str:
        """The identity of the collection, for ever."""
        if not self._state.identity:
            self._state.identity = uuid.uuid4().hex
            self._save()
        return self._state.identity

    def register_store(self, url: str) -> None:
        """The central store there is the collection's from now on."""
        if url not in self._state.stores:
            self._state.stores.append(url)
            self._save()

    def has_used_store(self, url: str) -> bool:
        """May agents have uploaded anything to the central store there?"""
        return url in self._state.stores and self._state.last_incarnation > 0

    # tables

    @property
    def table(self) -> AssignmentTable:
        state = self._state
        if self._table is None or self._table.epoch != state.epoch:
            self._table = self._build_table(state.epoch, state.members, state.bucket_addresses)
        return self._table

    @property
    def next_table(self) -> AssignmentTable | None:
        """The table that will be in force once every bucket that moves has arrived; None: nothing moves."""
        state = self._state
        if not state.next_members:
            return None
        if self._next_table is None or self._next_table.epoch != state.epoch + 1:
            addresses = state.bucket_addresses | state.next_addresses
            self._next_table = self._build_table(state.epoch + 1, state.next_members, addresses)
        return self._next_table

    def _build_table(self, epoch: int, members: list[Member], addresses: dict[int, str]) -> AssignmentTable:
        state = self._state
        return build_table(
            epoch,
            members,
            state.scheme,
            threads=state.threads,
            letters=state.letters or LETTER_VALUES_WITHOUT_DIGITS,
            places=self._ranges.bucket_places(addresses),
            addresses=addresses,
        )

    def activate_next_table(self) -> None:
        """Everything has arrived: the next table is in force. Members that are not in it are on their way out."""
        state = self._state
        # In one write: there is no moment at which a member is neither in force nor on its way out.
        stay = {member.name for member in state.next_members}
        state.leaving = [member.name for member in state.members if member.name not in stay]
        state.members, state.next_members, state.epoch = state.next_members, [], state.epoch + 1
        state.bucket_addresses, state.next_addresses = state.bucket_addresses | state.next_addresses, {}
        self._save()

    def learn_addresses(self, reported: Mapping[int, str]) -> None:
        """Addresses of buckets were reported: now and then those that belong elsewhere begin to move there."""
        state, now = self._state, self._now()
        if reported:
            self._learned.record(reported, state.bucket_addresses, now)
        if not self.is_stable or not self._learned.is_due(now):
            return
        new = self._learned.take(now)
        after = self._build_table(state.epoch + 1, state.members, state.bucket_addresses | new)
        # Most addresses confirm where a bucket is: then nothing moves, and no epoch is spent.
        if after.owners == self.table.owners:
            state.bucket_addresses |= new
        else:
            state.next_members, state.next_addresses = list(state.members), new
        self._save()

    # members that come and go

    def create_members(
        self, addresses: Iterable[str], *, scheme: Scheme = Scheme.RENDEZVOUS, places: Mapping[str, str] = NO_PLACES
    ) -> None:
        """Makes the first members of a collection, one at each address; an empty address is wherever there is room."""
        state = self._state
        state.members += self._new_members(addresses, places)
        state.threads = len(state.members) // len({member.address for member in state.members})
        state.scheme, state.epoch = scheme, state.epoch + 1
        state.letters = letter_values(self.settings) if scheme is Scheme.LETTER_SUM else {}
        state.ranges = place_ranges(self.settings)
        self._ranges = PlaceRanges(state.ranges)
        self._save()

    def _new_members(self, addresses: Iterable[str], places: Mapping[str, str]) -> list[Member]:
        """One member at each address, with its place. A name is never used twice: `last_number` only grows."""
        new = []
        for address in addresses:
            self._state.last_number += 1
            number = self._state.last_number
            new.append(Member(f"s{number - 1}", number, place=places.get(address, ""), address=address))
        return new

    def join(self, addresses: Iterable[str], places: Mapping[str, str] = NO_PLACES) -> list[str]:
        """Adds a member at each address; returns their names. Only their share of the buckets moves."""
        self._require_stable()
        new = self._new_members(addresses, places)
        self._state.next_members = [*self._state.members, *new]
        self._save()
        return [member.name for member in new]

    def leave(self, names: Collection[str]) -> None:
        """Takes members out: they hand over what they have and end."""
        self._require_stable()
        stay = [member for member in self._state.members if member.name not in names]
        if len(stay) + len(names) != len(self._state.members) or not stay:
            raise SettingsError(f"cannot take {', '.join(names)} out of {', '.join(self.names)}")
        self._state.next_members = stay
        self._save()

    def has_left(self, name: str) -> None:
        """A member on its way out has ended."""
        if name in self._state.leaving:
            self._state.leaving.remove(name)
            self._save()

    def resize(self, count: int, machines: Sequence[str] = (), places: Mapping[str, str] = NO_PLACES) -> None:
        """Brings the number of members to `count`: new ones join, or the youngest leave."""
        members = self._state.next_members or self._state.members
        if count > len(members):
            self.join(self.least_loaded(count - len(members), machines), places)
        elif count < len(members):
            self.leave([member.name for member in members[count:]])

    def least_loaded(self, count: int, machines: Sequence[str]) -> list[str]:
        """Where `count` more members go: each to the machine with the fewest for its processors (`machines` names it
        once for each). Nowhere in particular, if all machines see the same files or there is only one."""
        if not machines or not any(member.address for member in self._state.members):
            return [""] * count
        processors, load = Counter(machines), Counter(member.address for member in self._state.members)
        chosen = []
        for _ in range(count):
            chosen.append(min(processors, key=lambda machine: ((load[machine] + 1) / processors[machine], machine)))
            load[chosen[-1]] += 1
        return chosen

    def require_same_assignment(self, settings: CrawlSettings) -> None:
        """Refuses settings that would assign hosts otherwise than when the collection was begun."""
        # By another scheme hosts would belong to shards that have none of their rows.
        if settings.assignment != self._state.scheme:
            raise SettingsError(f"{self.folder} was begun with --assignment {self._state.scheme}: go on with it")
        if place_ranges(settings) != self._state.ranges:
            raise SettingsError(f"{self.folder} was begun with other places: go on without --places")
        if (settings.letters or self._state.letters) and letter_values(settings) != self._state.letters:
            raise SettingsError(f"{self.folder} was begun with other letters: go on with the same setting")

    def relocate(self, name: str, address: str) -> None:
        """A member's machine is gone for good: from now on the member lives at another address."""
        for members in (self._state.members, self._state.next_members):
            members[:] = [replace(one, address=address) if one.name == name else one for one in members]
        # The old machine may come back with the old folder: by its generation it is seen to be void.
        self._state.generations[name] = self._state.generations.get(name, 0) + 1
        self._save()

    def new_incarnation(self) -> int:
        """A number for a start of a member, never given before: it is on disk before anyone uses it."""
        # Rows are numbered by their sender's incarnation. A sender restored from an older copy of itself that used its
        # old number again would number other URLs like those before, and they would be dropped as repeats.
        self._state.last_incarnation += 1
        self._save()
        return self._state.last_incarnation

    def widen_scope(self, hrefs: Iterable[str]) -> None:
        """Keeps URLs whose hosts became part of the scope, for members that start later."""
        new = [href for href in hrefs if href not in self._state.widened]
        if new:
            self._state.widened += new
            self._save()

    def _require_stable(self) -> None:
        if not self.is_stable:
            raise ClusterError("hosts are moving already: try again when they have arrived")
        if self._state.scheme not in BUCKET_SCHEMES:
            raise SettingsError(f"{self._state.scheme} moves nearly every host when members change: use rendezvous")

    def _save(self) -> None:
        save_cluster_state(self.folder, self._state)


def letter_values(settings: CrawlSettings) -> dict[str, int]:
    """The values of characters that a crawl's settings ask for."""
    return {**LETTER_VALUES, **dict(read_letter(text) for text in settings.letters)}
