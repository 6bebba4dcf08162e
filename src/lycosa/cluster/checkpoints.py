"""Copies of a shard's state in the central store, from which it is restored when its machine is gone for good.

A copy is a RocksDB checkpoint, file by file. Table files never change, so only those that came since the copy before
are brought; the others are named again. What makes a copy count is its *manifest*, put last: by then every file it
names, and every archive file that the state in it names, is in the store and was read back. Manifests are named by
incarnation and number, both of which only grow: the last one counts. Objects are named by the incarnation that brought
them, since a shard that was restored may use a file's number again for other content.

    shards/s0/checkpoint-00000007-000012.json    a manifest
    shards/s0/00000007-000034.sst.zst            a file of it
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import zstandard

from lycosa.cluster.messages import Position
from lycosa.errors import StoreError
from lycosa.store.adopting import adopt
from lycosa.store.central import CentralStore, chunks, digest_of_file, put_bytes, put_checked

LEVEL = 3
_MANIFEST = re.compile(r"checkpoint-\d{8}-\d{6}\.json")
_UNCHANGING = ".sst"


class Copied(msgspec.Struct, frozen=True):
    """One file of a state: its object in the store, its bytes, and the digest of the object."""

    object: str
    bytes: int
    digest: str


class Manifest(msgspec.Struct, frozen=True):
    """A copy of a shard's state as of `at_s` (Unix time). `positions` is how far other shards' URLs are in it."""

    shard: str
    incarnation: int
    number: int
    at_s: float
    files: dict[str, Copied]
    positions: dict[str, Position]

    @property
    def name(self) -> str:
        return f"checkpoint-{self.incarnation:08d}-{self.number:06d}.json"


def folder_of(shard: str) -> str:
    """The folder of a shard in the store."""
    return f"shards/{shard}"


def latest(store: CentralStore, shard: str) -> Manifest | None:
    """The copy that counts; None if there is none yet."""
    names = [name for name in store.names(folder_of(shard)) if _MANIFEST.fullmatch(name)]
    for name in reversed(names):
        whole = f"{folder_of(shard)}/{name}"
        try:
            return msgspec.json.decode(b"".join(chunks(store, whole)), type=Manifest)
        except msgspec.DecodeError:  # its put did not come to an end, in a store where that can be seen
            continue
    return None


def publish(
    store: CentralStore, copy: Path, manifest: Manifest, before: Manifest | None, may_go_on: Callable[[], bool]
) -> tuple[Manifest, int]:
    """Brings the files in the folder `copy` that the copy `before` does not have, then the manifest; returns it, with
    the files, and the bytes that travelled. `may_go_on` is asked right before it counts."""
    files: dict[str, Copied] = {}
    brought = 0
    try:
        for path in sorted(copy.iterdir()):
            known = before.files.get(path.name) if before is not None and path.suffix == _UNCHANGING else None
            if known is None or known.bytes != path.stat().st_size:
                known, size = _bring(store, path, manifest)
                brought += size
            files[path.name] = known
    except OSError as error:
        raise StoreError(f"the copy {copy} cannot be packed: {error.strerror}") from error
    whole = msgspec.structs.replace(manifest, files=files)
    data = msgspec.json.encode(whole)
    if not may_go_on():
        raise StoreError(f"the copy of {manifest.shard} does not count: the shard may have been taken over")
    put_bytes(store, f"{folder_of(manifest.shard)}/{whole.name}", data, copy.parent)
    return whole, brought + len(data)


def _bring(store: CentralStore, path: Path, manifest: Manifest) -> tuple[Copied, int]:
    """A file that changes is another one in every copy."""
    prefix = f"{folder_of(manifest.shard)}/{manifest.incarnation:08d}"
    copy = "" if path.suffix == _UNCHANGING else f"-{manifest.number:06d}"
    packed = path.with_name(f"{path.name}.zst")
    try:
        with path.open("rb") as source, packed.open("wb") as target:
            zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).copy_stream(source, target)
        name, size = f"{prefix}{copy}-{path.name}.zst", packed.stat().st_size
        return Copied(name, path.stat().st_size, put_checked(store, name, packed)), size
    finally:
        packed.unlink(missing_ok=True)


def tidy(store: CentralStore, manifest: Manifest) -> None:
    """Removes what no copy from this one on needs; what a later incarnation brought is not this one's to judge."""
    folder = folder_of(manifest.shard)
    needed = {copied.object for copied in manifest.files.values()}
    for name in store.names(folder):
        if _MANIFEST.fullmatch(name):
            is_old = name < manifest.name
        else:
            is_old = f"{folder}/{name}" not in needed and name[:8] <= f"{manifest.incarnation:08d}"
        if is_old:
            store.delete(f"{folder}/{name}")


def restore(
    store: CentralStore, manifest: Manifest, folder: Path, *, numbers: range, then: Callable[[Path], None]
) -> None:
    """Makes the collection at `folder` anew as it was copied; it is there whole or not at all. Its archive files, of
    `numbers`, are in the store. `then` adds what else belongs to it."""
    new = folder.with_name(f".{folder.name}.restoring")
    try:
        shutil.rmtree(new, ignore_errors=True)
        (new / "state").mkdir(parents=True)
        for name, copied in manifest.files.items():
            _fetch(store, copied, new / "state" / name)
        adopt(new, store, numbers=numbers)
        then(new)
        new.replace(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be restored: {error.strerror}") from error


def _fetch(store: CentralStore, copied: Copied, target: Path) -> None:
    packed = target.with_name(f"{target.name}.zst")
    with packed.open("wb") as file:
        for chunk in chunks(store, copied.object):
            file.write(chunk)
    if digest_of_file(packed) != copied.digest:
        raise StoreError(f"{store.url}/{copied.object} is damaged: the shard cannot be restored from it")
    with packed.open("rb") as source, target.open("wb") as file:
        zstandard.ZstdDecompressor().copy_stream(source, file)
        file.flush()
        os.fsync(file.fileno())
    packed.unlink()
