"""Where a record lies in the archive: file number, offset and length, twelve bytes in the state."""

import struct

import msgspec

_PACKED = struct.Struct(">III")

# Offsets are packed in 32 bits; a file may grow past the size it is rotated at by one append.
MAX_FILE_BYTES = 2 << 30


class Place(msgspec.Struct, frozen=True, order=True):
    file_number: int
    offset: int
    length: int

    def pack(self) -> bytes:
        return _PACKED.pack(self.file_number, self.offset, self.length)

    @classmethod
    def unpack(cls, packed: bytes) -> "Place":
        return cls(*_PACKED.unpack(packed))
