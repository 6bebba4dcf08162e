"""What shards say to each other about URLs: numbered rows one way, how far they have come the other way.

Every row that a sender writes for a receiver has a position: the sender's incarnation and a number that grows. Rows are
sent in that order and taken in that order. The incarnation comes from the coordinator and is never given twice, so a
sender that was restored from an older copy of itself never uses a position for other URLs than before. Records only.
"""

import struct
from enum import StrEnum

import msgspec

Position = tuple[int, int]
START: Position = (0, 0)

_POSITION = struct.Struct(">QQ")


def pack_position(position: Position) -> bytes:
    """Sixteen bytes that sort as positions do."""
    return _POSITION.pack(*position)


def unpack_position(packed: bytes) -> Position:
    incarnation, number = _POSITION.unpack(packed)
    return incarnation, number


class Message(msgspec.Struct, frozen=True):
    """Rows for one receiver, in order. `after` is the position of the row before the first one: a receiver that has not
    got that far must not take them. `epoch` is that of the table by which they were sent. `is_parting`: the sender
    leaves for good when a copy of the receiver has what it sent."""

    sender: str
    epoch: int
    after: Position
    rows: tuple[tuple[Position, bytes], ...]
    is_parting: bool = False


class Word(StrEnum):
    """What a receiver says to a message."""

    TAKEN = "taken"
    GAP = "gap"  # rows are missing: go on from `committed`
    EPOCH = "epoch"  # one of us two has an old table
    BUSY = "busy"  # the disk refuses, or the shard is not open: the same again, later


class Reply(msgspec.Struct, frozen=True):
    """How far the receiver has come with this sender's rows: on its disk, and in what would be restored of it."""

    word: Word
    committed: Position
    covered: Position
