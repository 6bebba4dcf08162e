"""Assignment: every host belongs to exactly one member of the cluster, whoever computes it.

`rendezvous`, the default, gives every bucket (all hosts of a registrable domain) to the member with the highest draw
for it, weighted by capacity: when a member comes or goes, only its own share moves. `letter-sum` and `two-level` take
sums over the host's letters modulo the number of members. `ip` draws by the address of a bucket's first host, once that
is known. An `AssignmentTable` is the assignment of one epoch.

The scheme `ip`, and places, go by addresses, and an address is only known once somebody has looked it up: until then a
bucket belongs to the member that its name draws. The agent that looks up its first host reports the address
(`ObservedAddresses`); now and then the buckets that belong elsewhere by now move there (`LearnedAddresses`), as they do
when a member joins. `PlaceRanges` says which place an address is in.

Pure, but for reading a file of places; `now` is an argument.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from string import ascii_lowercase, digits
from typing import Any

import msgspec
import numpy as np
import xxhash

from lycosa.errors import SettingsError
from lycosa.settings import CrawlSettings, read_place
from lycosa.store import document_bucket
from lycosa.web import BUCKET_BYTES, bucket_of

Integers = np.ndarray[Any, np.dtype[np.int64]]
Hashes = np.ndarray[Any, np.dtype[np.uint64]]

# A bucket has whole registrable domains: most links stay within one, so they stay within a shard, and what is counted
# for a domain is counted in one place. So many buckets are even shares for a thousand members, and a table of 128 KB.
BUCKETS = 1 << 8 * BUCKET_BYTES
MAX_MEMBERS = 1 << 16  # a table has two bytes for the owner of a bucket
# Hosts whose owner a table remembers: every link is asked for, and most lead to a few hosts. Beyond it the cache begins
# anew, which costs less than to keep an order.
CACHED_OWNERS = 65_536
# A member in a bucket's place wins against every member elsewhere, since no two draws are that far apart; members of
# the same place still share by capacity, as all do.
NEARBY_FACTOR = 1e30
CACHED_ADDRESSES = 16_384
# Hosts whose bucket an agent has looked at; beyond it the memory begins anew.
REMEMBERED_HOSTS = 65_536
# Every move stops the exchange for a moment, and most addresses are learned early: pauses double from move to move.
FIRST_PAUSE_S, MAX_PAUSE_S = 2.0, 60.0

# a=1 … z=26, 0=27 … 9=36. Dots and dashes count nothing unless the setting `letters` says otherwise.
LETTER_VALUES: Mapping[str, int] = {letter: place for place, letter in enumerate(ascii_lowercase + digits, 1)}
# Collections that were begun when digits had no value keep their assignment.
LETTER_VALUES_WITHOUT_DIGITS: Mapping[str, int] = {letter: LETTER_VALUES[letter] for letter in ascii_lowercase}


class Member(msgspec.Struct, frozen=True):
    """One shard of a crawl, by name. `number` grows in the order of registration; `capacity` is its weight in draws.

    What is named is the shard, not the machine or process that it runs in: a shard that starts elsewhere has the same
    name, owns the same buckets, and others go on sending to it.
    """

    name: str
    number: int = 0
    capacity: float = 1.0
    place: str = ""
    address: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.capacity < float("inf"):
            raise ValueError(f"the capacity of {self.name} is {self.capacity}: it must be a number above 0")


class Scheme(StrEnum):
    """The ways to assign hosts to members."""

    RENDEZVOUS = "rendezvous"
    LETTER_SUM = "letter-sum"
    TWO_LEVEL = "two-level"
    IP = "ip"


# Only these have an owner for every bucket, so only with them can members join and leave: a sum modulo the number of
# members gives nearly every host another owner when that number changes.
BUCKET_SCHEMES = frozenset({Scheme.RENDEZVOUS, Scheme.IP})


class AssignmentTable(msgspec.Struct, frozen=True, dict=True):
    """The assignment of one epoch.

    `owners` has two bytes for each bucket, the index of its owner in `members`; it is empty for schemes that go by the
    host's letters. `threads` is the second level of `two-level`, `letters` has the character values of `letter-sum`.
    """

    # The table carries the drawn owners, not only how to draw them: logarithms may differ in the last bit from machine
    # to machine, and two members must never both think that they own a bucket.
    epoch: int
    members: tuple[Member, ...]
    scheme: Scheme = Scheme.RENDEZVOUS
    owners: bytes = b""
    threads: int = 1
    letters: dict[str, int] = msgspec.field(default_factory=lambda: dict(LETTER_VALUES))

    def __post_init__(self) -> None:
        self.__dict__["_owner_cache"] = {}

    def owner(self, host: str) -> str:
        """The name of the member that owns a host."""
        cache: dict[str, str] = self.__dict__["_owner_cache"]
        name = cache.get(host)
        if name is None:
            if len(cache) >= CACHED_OWNERS:
                cache.clear()
            name = cache[host] = self.members[self._owner_index(host)].name
        return name

    def owner_of_bucket(self, bucket: bytes) -> str:
        """The name of the member that owns a bucket."""
        at = 2 * int.from_bytes(bucket)
        return self.members[int.from_bytes(self.owners[at : at + 2])].name

    def owner_of_document(self, digest: bytes) -> str:
        """The name of the member that knows which page was the first to have a document."""
        if self.owners:
            return self.owner_of_bucket(document_bucket(digest))
        return self.members[int.from_bytes(digest) % len(self.members)].name

    def _owner_index(self, host: str) -> int:
        count = len(self.members)
        if self.scheme in BUCKET_SCHEMES:
            at = 2 * bucket_of(host)
            return int.from_bytes(self.owners[at : at + 2])
        if self.scheme is Scheme.LETTER_SUM:
            return letter_sum(host, self.letters) % count
        machines = count // self.threads
        return even_sum(host) % machines * self.threads + odd_sum(host) % self.threads


def build_table(
    epoch: int,
    members: Sequence[Member],
    scheme: Scheme = Scheme.RENDEZVOUS,
    *,
    threads: int = 1,
    letters: Mapping[str, int] = LETTER_VALUES,
    places: Mapping[int, str] | None = None,
    addresses: Mapping[int, str] | None = None,
) -> AssignmentTable:
    """Draws the table of an epoch. `places` and `addresses` are those of buckets, as far as they are known; `ip` draws
    by the address, and by the name where the address is not known yet."""
    if not 0 < len(members) < MAX_MEMBERS:
        raise SettingsError(f"a cluster has 1 to {MAX_MEMBERS - 1:,} members, not {len(members):,}")
    # Indices into `members` are part of the table: the order must not depend on who lists them.
    ordered = tuple(sorted(members, key=lambda member: (member.number, member.name)))
    if len({member.name for member in ordered}) < len(ordered):
        raise SettingsError("two members of a cluster have the same name")
    if scheme is Scheme.TWO_LEVEL and len(ordered) % threads:
        raise SettingsError(f"two-level: {len(ordered)} members cannot stand {threads} to a machine")
    if scheme not in BUCKET_SCHEMES:
        return AssignmentTable(epoch, ordered, scheme, threads=threads, letters=dict(letters))
    # Neighbouring bucket numbers must not draw alike.
    keys = _mix_bits(np.arange(BUCKETS).astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))
    if scheme is Scheme.IP and addresses:
        keys[list(addresses)] = np.array([_hash(address) for address in addresses.values()], np.uint64)
    by_bucket = None
    if places:
        by_bucket = [""] * BUCKETS
        for bucket, place in places.items():
            by_bucket[bucket] = place
    owners = _draw_owners(keys, ordered, by_bucket)
    return AssignmentTable(epoch, ordered, scheme, owners.astype(">u2").tobytes())


def _draw_owners(keys: Hashes, members: Sequence[Member], places: Sequence[str] | None) -> Integers:
    """For each key the index of its member: the highest draw wins, a member of twice the capacity twice as often."""
    best = np.full(len(keys), -1.0)
    owners = np.zeros(len(keys), np.int64)
    at = None if places is None else np.asarray(places)
    for index, member in enumerate(members):
        mixed = _mix_bits(keys ^ np.uint64(_hash(member.name)))
        # 53 bits, never 0 nor 1. The least −ln(draw) / capacity belongs to each member with its share of chances.
        even = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / (1 << 53)
        score = member.capacity / -np.log(even)
        if at is not None and member.place:
            score = np.where(at == member.place, score * NEARBY_FACTOR, score)
        owners = np.where(score > best, index, owners)
        best = np.maximum(score, best)
    return owners


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode())


def _mix_bits(numbers: Hashes) -> Hashes:
    """SplitMix64's finish: every bit of the input counts for every bit of the output."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def letter_sum(host: str, values: Mapping[str, int] = LETTER_VALUES) -> int:
    """The sum of the values of a host's characters."""
    return sum(values.get(character, 0) for character in host)


def even_sum(host: str) -> int:
    """The sum of the codes of the characters at even places, the first one being place 0."""
    return sum(host.encode()[::2])


def odd_sum(host: str) -> int:
    """The sum of the codes of the characters at odd places."""
    return sum(host.encode()[1::2])


class PlaceRanges:
    """The map from address ranges, such as 192.0.2.0/24, to names of places; the narrowest range counts."""

    def __init__(self, ranges: Mapping[str, str]) -> None:
        self._places: dict[IPv4Network | IPv6Network, str] = {}
        for text, place in ranges.items():
            try:
                self._places[ip_network(text, strict=False)] = place
            except ValueError as error:
                raise SettingsError(
                    f"{text!r} is no range of addresses; write 192.0.2.0/24 or 2001:db8::/32"
                ) from error
        # Lengths from long to short: the first range that is found is the narrowest.
        self._lengths = {
            version: sorted({n.prefixlen for n in self._places if n.version == version}, reverse=True)
            for version in (4, 6)
        }
        self.place_of = lru_cache(CACHED_ADDRESSES)(self._place_of)

    def _place_of(self, address: str) -> str:
        """The place of an address; empty where no range has it."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return ""
        for length in self._lengths[parsed.version]:
            place = self._places.get(ip_network((parsed, length), strict=False))
            if place is not None:
                return place
        return ""

    def bucket_places(self, addresses: Mapping[int, str]) -> dict[int, str]:
        """The places of buckets, for those whose address is in a range."""
        if not self._places:
            return {}
        return {bucket: place for bucket, address in addresses.items() if (place := self.place_of(address))}


def place_ranges(settings: CrawlSettings) -> dict[str, str]:
    """The ranges that a crawl's settings name, and their places."""
    return dict(read_place(text) for text in settings.places)


def read_places_file(path: Path) -> list[str]:
    """Reads ranges and places, one pair a line (`192.0.2.0/24 berlin  # comment`), as the setting `places` has them."""
    try:
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read the places {path}: {error}") from error
    found = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if len(words) == 2:
            found.append(f"{words[0]}={words[1]}")
        elif words:
            raise SettingsError(f"{path}, line {number}: write a range and a place, such as 192.0.2.0/24 berlin")
    if not found:
        raise SettingsError(f"{path} has no places: write a range and a place a line, such as 192.0.2.0/24 berlin")
    return found


class ObservedAddresses:
    """The agent's side: addresses of buckets that the coordinator has not heard of."""

    def __init__(self) -> None:
        self._hosts: set[str] = set()
        self._reported: set[int] = set()
        self.unreported: dict[int, str] = {}

    def __repr__(self) -> str:
        return f"<ObservedAddresses reported={len(self._reported)} unreported={len(self.unreported)}>"

    def record(self, host: str, address: str) -> None:
        """Notes the address of a host that was looked up."""
        if host in self._hosts:
            return
        if len(self._hosts) >= REMEMBERED_HOSTS:
            self._hosts.clear()
        self._hosts.add(host)
        bucket = bucket_of(host)
        if bucket not in self._reported:
            self.unreported.setdefault(bucket, address)

    def on_reported(self, reported: Mapping[int, str], *, is_new_coordinator: bool) -> None:
        """The coordinator has heard of these. A new one may not have what the one before heard: it hears it all."""
        if is_new_coordinator:
            self._hosts.clear()
            self._reported.clear()
        self._reported |= reported.keys()
        self.unreported = {bucket: a for bucket, a in self.unreported.items() if bucket not in reported}


class LearnedAddresses:
    """The coordinator's side: addresses of buckets that were reported since the last move."""

    def __init__(self) -> None:
        self._addresses: dict[int, str] = {}
        self._due, self._pause_s = 0.0, FIRST_PAUSE_S

    def __repr__(self) -> str:
        return f"<LearnedAddresses {len(self._addresses)}>"

    def record(self, reported: Mapping[int, str], known: Mapping[int, str], now: float) -> None:
        """The first address that is heard of a bucket counts for ever: a name with many addresses stays where it is."""
        if not self._addresses:
            self._due = max(self._due, now + FIRST_PAUSE_S)
        for bucket, address in reported.items():
            if bucket not in known:
                self._addresses.setdefault(bucket, address)

    def is_due(self, now: float) -> bool:
        """Is another move worth it?"""
        return bool(self._addresses) and now >= self._due

    def take(self, now: float) -> dict[int, str]:
        """Returns what was learned since the last call, and begins a longer pause."""
        self._due, self._pause_s = now + self._pause_s, min(2 * self._pause_s, MAX_PAUSE_S)
        addresses, self._addresses = self._addresses, {}
        return addresses
