"""Assignment: every host belongs to exactly one member of the cluster, whoever computes it.

`rendezvous`, the default, gives every bucket (all hosts of a registrable domain) to the member with the highest draw
for it, weighted by capacity: when a member comes or goes, only its own share moves. `letter-sum` and `two-level` take
sums over the host's letters modulo the number of members. `ip` draws by the address of a bucket's first host, once that
is known (`cluster.locality`). An `AssignmentTable` is the assignment of one epoch. Pure.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from string import ascii_lowercase, digits
from typing import Any

import msgspec
import numpy as np
import xxhash

from lycosa.errors import SettingsError
from lycosa.store import document_bucket
from lycosa.web import BUCKET_BYTES, bucket_of


class Member(msgspec.Struct, frozen=True):
    """One shard. `number` grows in the order of registration (H2); `capacity` is its share beside others'."""

    name: str
    number: int = 0
    capacity: float = 1.0
    place: str = ""
    address: str = ""

    def __post_init__(self) -> None:
        if not 0 < self.capacity < float("inf"):
            raise ValueError(f"the capacity of {self.name} is {self.capacity}: it must be a number above 0")


Integers = np.ndarray[Any, np.dtype[np.int64]]

# a=1 … z=26 as in the paper, whose table has numbers too: 0=27 … 9=36. Dots and dashes are worth nothing unless the
# setting `letters` says otherwise.
LETTER_VALUES: Mapping[str, int] = {letter: place for place, letter in enumerate(ascii_lowercase + digits, 1)}
# The table of collections that were begun when digits had no value.
LETTER_VALUES_WITHOUT_DIGITS: Mapping[str, int] = {letter: LETTER_VALUES[letter] for letter in ascii_lowercase}


def letter_sum(host: str, table: Mapping[str, int] = LETTER_VALUES) -> int:
    """The sum over the characters of a host."""
    return sum(table.get(character, 0) for character in host)


def even_sum(host: str) -> int:
    """The sum of the codes of the characters at even places, the first one being place 0."""
    return sum(host.encode()[::2])


def odd_sum(host: str) -> int:
    """The sum of the codes of the characters at odd places."""
    return sum(host.encode()[1::2])


class HostArray:
    """Host names laid end to end, for sums over all of them at once. No name is empty."""

    def __init__(self, hosts: Sequence[str]) -> None:
        encoded = [host.encode() for host in hosts]
        self.codes = np.frombuffer(b"".join(encoded), np.uint8)
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        if not lengths.all():
            raise ValueError("a host has a name")
        self.starts = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def letter_sums(self, table: Mapping[str, int] = LETTER_VALUES) -> Integers:
        worth = np.zeros(256, np.int64)
        for character, value in table.items():
            worth[ord(character)] = value
        sums: Integers = np.add.reduceat(worth[self.codes], self.starts)
        return sums

    def java_hashes(self) -> Integers:
        """Java's `String.hashCode` without its sign, as Nutch partitions by: s[0]·31^(k−1) + … modulo 2^32."""
        after = np.repeat(self.starts + self._lengths - 1, self._lengths) - np.arange(len(self.codes))
        powers = np.ones(int(self._lengths.max()), np.uint32)
        powers[1:] = 31
        powers = np.multiply.accumulate(powers, dtype=np.uint32)
        terms = self.codes.astype(np.uint32) * powers[after]
        hashes: Integers = np.add.reduceat(terms, self.starts, dtype=np.uint32).astype(np.int64) & 0x7FFFFFFF
        return hashes


BUCKETS = 1 << 8 * BUCKET_BYTES
MAX_MEMBERS = 1 << 16  # an owner is two bytes of a table
CACHED_OWNERS = 65_536  # owners remembered in a table; beyond it the memory begins anew

Hashes = np.ndarray[Any, np.dtype[np.uint64]]


class Scheme(StrEnum):
    """How hosts are given to members."""

    RENDEZVOUS = "rendezvous"
    LETTER_SUM = "letter-sum"
    TWO_LEVEL = "two-level"
    IP = "ip"


# Schemes whose table has an owner for every bucket: with them members may join and leave.
BUCKET_SCHEMES = frozenset({Scheme.RENDEZVOUS, Scheme.IP})


def draw_owners(keys: Hashes, members: Sequence[Member], places: Sequence[str] | None = None) -> Integers:
    """For each key the index of its member: highest draw wins, a member of twice the capacity wins twice as often.

    `places` gives a place for each key: where it has members, one of them gets the key.
    """
    if not members:
        raise ValueError("there is no member to own anything")
    best = np.full(len(keys), -1.0)
    owners = np.zeros(len(keys), np.int64)
    at = None if places is None else np.asarray(places)
    for index, member in enumerate(members):
        mixed = _mix_bits(keys ^ np.uint64(xxhash.xxh3_64_intdigest(member.name.encode())))
        # 53 bits, never 0 nor 1: −ln of an even draw over the capacity is least for each with its share of chances.
        even = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) / (1 << 53)
        score = member.capacity / -np.log(even)
        if at is not None and member.place:
            score = np.where(at == member.place, score * NEARBY_FACTOR, score)
        owners = np.where(score > best, index, owners)
        best = np.maximum(score, best)
    return owners


# A near member comes before every far one, and near ones share as all do: no two draws are that far apart.
NEARBY_FACTOR = 1e30


def bucket_keys(numbers: Integers) -> Hashes:
    """Numbers, such as those of buckets, as keys for `draw`."""
    return _mix_bits(numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15))


def _mix_bits(numbers: Hashes) -> Hashes:
    """SplitMix64's finish: every bit of the input counts for every bit of the output."""
    mixed = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


class AssignmentTable(msgspec.Struct, frozen=True, dict=True):
    """The assignment of one epoch. `owners` has two bytes a bucket, the place of its owner in `members`; it is empty
    for schemes that ask the host's letters. `threads` is the second level of `two-level`, `letters` are the values of
    characters for `letter-sum`."""

    epoch: int
    members: tuple[Member, ...]
    scheme: Scheme = Scheme.RENDEZVOUS
    owners: bytes = b""
    threads: int = 1
    letters: dict[str, int] = msgspec.field(default_factory=lambda: dict(LETTER_VALUES))

    def __post_init__(self) -> None:
        self.__dict__["_known"] = {}

    def owner(self, host: str) -> str:
        """The name of the member that owns a host."""
        known: dict[str, str] = self.__dict__["_known"]
        name = known.get(host)
        if name is None:
            if len(known) >= CACHED_OWNERS:
                known.clear()
            name = known[host] = self.members[self._index(host)].name
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

    def _index(self, host: str) -> int:
        count = len(self.members)
        if self.scheme in BUCKET_SCHEMES:
            at = 2 * bucket_of(host)
            return int.from_bytes(self.owners[at : at + 2])
        if self.scheme is Scheme.LETTER_SUM:
            return letter_sum(host, self.letters) % count
        machines = count // self.threads
        return even_sum(host) % machines * self.threads + odd_sum(host) % self.threads

    def shares(self) -> dict[str, int]:
        """How many buckets each member owns."""
        counts = np.bincount(np.frombuffer(self.owners, ">u2"), minlength=len(self.members))
        return {member.name: int(count) for member, count in zip(self.members, counts, strict=True)}


def build_table(
    epoch: int,
    members: Sequence[Member],
    scheme: Scheme = Scheme.RENDEZVOUS,
    *,
    threads: int = 1,
    letters: Mapping[str, int] = LETTER_VALUES,
    places: Mapping[int, str] | None = None,
    homes: Mapping[int, str] | None = None,
) -> AssignmentTable:
    """The table of an epoch. `places` says where buckets are, for those that are known to be somewhere; `homes` their
    addresses, by which `ip` draws: those not known yet are drawn by name."""
    if not 0 < len(members) < MAX_MEMBERS:
        raise SettingsError(f"a cluster has 1 to {MAX_MEMBERS - 1:,} members, not {len(members):,}")
    ordered = tuple(sorted(members, key=lambda member: (member.number, member.name)))
    if len({member.name for member in ordered}) < len(ordered):
        raise SettingsError("two members of a cluster have the same name")
    if scheme is Scheme.TWO_LEVEL and len(ordered) % threads:
        raise SettingsError(f"two-level: {len(ordered)} members cannot stand {threads} to a machine")
    if scheme not in BUCKET_SCHEMES:
        return AssignmentTable(epoch, ordered, scheme, threads=threads, letters=dict(letters))
    keys = bucket_keys(np.arange(BUCKETS))
    if scheme is Scheme.IP and homes:
        drawn = [xxhash.xxh3_64_intdigest(address.encode()) for address in homes.values()]
        keys[list(homes)] = np.array(drawn, np.uint64)
    where = None
    if places:
        where = [""] * BUCKETS
        for bucket, place in places.items():
            where[bucket] = place
    owners = draw_owners(keys, ordered, where)
    return AssignmentTable(epoch, ordered, scheme, owners.astype(">u2").tobytes())


def moved_buckets(before: AssignmentTable, after: AssignmentTable) -> list[int]:
    """The buckets that have another owner after than before."""
    if not before.owners or not after.owners:
        raise ValueError("only a table of buckets says which of them move")
    names = np.array([member.name for member in before.members] + [member.name for member in after.members])
    old = names[np.frombuffer(before.owners, ">u2")]
    new = names[len(before.members) + np.frombuffer(after.owners, ">u2").astype(np.int64)]
    return [int(bucket) for bucket in np.flatnonzero(old != new)]
