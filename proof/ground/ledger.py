"""What a long campaign has found so far, a line of JSON for each part of it: the same command goes on from there.

A ledger is a file in `.proof/` of the folder in which the command runs, with a folder beside it for what else the
campaign needs. Both are deleted when the results are where they belong (`Run.after_publishing`), the file first: a
folder without it means nothing. The next campaign begins anew. So it does when the code has changed meanwhile: what was
seen of other code says nothing of this one. `make clean` removes what is left then.
"""

import hashlib
import shutil
from functools import reduce
from operator import or_
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from lycosa.errors import storage_errors

FOLDER = Path(".proof")
PROJECT = Path(__file__).parents[2]
CODE = ("src", "native/src", "proof")  # what is tried, and what tries it

Part = TypeVar("Part", bound=msgspec.Struct)


def code_digest(project: Path = PROJECT) -> str:
    """What tells this code from any other."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in CODE for path in (project / folder).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = path.read_bytes()
            digest.update(f"{path.relative_to(project)} {len(content)}\n".encode() + content)
    return digest.hexdigest()


class Ledger(Generic[Part]):
    """The parts of a campaign that are done. `circumstances` are what a campaign must have in common with one that was
    interrupted to be the same, and the code is, unless `of_any_code`. Parts of several kinds have tags."""

    def __init__(
        self,
        name: str,
        kind: type[Part] | tuple[type[Part], ...],
        *circumstances: object,
        of_any_code: bool = False,
        folder: Path = FOLDER,
    ) -> None:
        same = (*circumstances, "" if of_any_code else code_digest())
        digest = hashlib.sha256(repr(same).encode()).hexdigest()[:12]
        self._path = folder / f"{name}-{digest}.jsonl"
        self.parts: list[Part] = []
        try:
            lines = self._path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:  # a folder without it was to be deleted
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            decoder = msgspec.json.Decoder(reduce(or_, kind) if isinstance(kind, tuple) else kind)
            self.parts = [decoder.decode(line) for line in lines]

    @property
    def folder(self) -> Path:
        """What the campaign keeps beside its parts; whoever needs it makes it."""
        return self._path.with_suffix("")

    def __repr__(self) -> str:
        return f"<Ledger {self._path} parts={len(self.parts)}>"

    def add(self, part: Part) -> None:
        self.parts.append(part)
        lines = b"".join(msgspec.json.encode(each) + b"\n" for each in self.parts)
        beside = self._path.with_suffix(".new")
        with storage_errors(self._path, doing="writing what the campaign has done"):
            self._path.parent.mkdir(exist_ok=True)
            beside.write_bytes(lines)
            beside.replace(self._path)

    def close(self) -> None:
        """The campaign has ended, and its results are kept."""
        with storage_errors(self._path, doing="ending the campaign"):
            self._path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
