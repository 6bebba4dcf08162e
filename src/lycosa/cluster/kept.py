"""What survives a coordinator: one small file in the folder of the collection, replaced as a whole."""

import os
from pathlib import Path

import msgspec

from lycosa.cluster.assignment import Scheme
from lycosa.cluster.members import Member
from lycosa.errors import StoreError
from lycosa.store.joined import SHARDED, SHARDS, shard_paths

FILE = SHARDED


class Kept(msgspec.Struct):
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


def load(folder: Path) -> Kept:
    """What an earlier coordinator kept, or nothing yet."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Kept)
    except FileNotFoundError:
        return Kept()
    except (OSError, msgspec.DecodeError) as error:
        raise StoreError(f"{folder / FILE} cannot be read: {error}") from error


def missing(folder: Path) -> list[str]:
    """Says in a sentence each which shards should be here and are not, where others are: their folders were lost."""
    kept = load(folder)
    here = {path.name for path in shard_paths(folder)}
    gone = [member.name for member in kept.members if not member.address and member.name not in here]
    what = ": its last copy in the store is taken instead" if kept.stores else ", and with it all that it held"
    return [f"the folder of shard {name} is missing ({folder / SHARDS / name}){what}" for name in gone if here]


def save(folder: Path, kept: Kept) -> None:
    """Replaces the file as a whole; it is on the disk when this returns, since no incarnation may be given twice."""
    new = folder / f"{FILE}.new"
    try:
        with new.open("wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept)))
            file.flush()
            os.fsync(file.fileno())
        new.replace(folder / FILE)
    except OSError as error:
        raise StoreError(f"{folder / FILE} cannot be written: {error.strerror}") from error
