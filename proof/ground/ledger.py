"""What a long campaign has found so far, a line of JSON for each part of it: the same command goes on from there.

A ledger is a file in `.proof/` of the folder in which the command runs, with a folder beside it for what else the
campaign needs. Both are deleted when the campaign has ended, so that the next one begins anew.
"""

import hashlib
import shutil
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

FOLDER = Path(".proof")

Part = TypeVar("Part", bound=msgspec.Struct)


class Ledger(Generic[Part]):
    """The parts of a campaign that are done. `circumstances` are what a campaign must have in common with one that was
    interrupted to be the same."""

    def __init__(self, name: str, kind: type[Part], *circumstances: object, folder: Path = FOLDER) -> None:
        digest = hashlib.sha256(repr(circumstances).encode()).hexdigest()[:12]
        self._path = folder / f"{name}-{digest}.jsonl"
        self.parts: list[Part] = []
        if self._path.exists():
            lines = self._path.read_bytes().split(b"\n")[:-1]  # without what a kill left half written
            self.parts = [msgspec.json.decode(line, type=kind) for line in lines]

    @property
    def folder(self) -> Path:
        """What the campaign keeps beside its parts; whoever needs it makes it."""
        return self._path.with_suffix("")

    def __repr__(self) -> str:
        return f"<Ledger {self._path} parts={len(self.parts)}>"

    def add(self, part: Part) -> None:
        self._path.parent.mkdir(exist_ok=True)
        self.parts.append(part)
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in self.parts)
        beside = self._path.with_suffix(".new")
        beside.write_bytes(lines)
        beside.replace(self._path)

    def close(self) -> None:
        """The campaign has ended."""
        self._path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
