"""Checkpoints: copies of a shard's state in the central store, from which the shard is restored elsewhere.

A checkpoint is a RocksDB checkpoint, file by file. Table files never change, so only new ones are uploaded; the others
are named again. A checkpoint counts once its *manifest* is there, which is put last: by then every file it names, and
every archive file that its state names, is in the store and was read back.

    shards/s0/checkpoint-00000007-000012.json    a manifest: incarnation and number, both only grow, the last one counts
    shards/s0/00000007-000034.sst.zst            a file of it, named by the incarnation that uploaded it
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import zstandard

from lycosa.cluster.outbox import Position
from lycosa.errors import SettingsError, StoreError
from lycosa.graph import LinkIndexer
from lycosa.settings import merge, read_file
from lycosa.store import (
    COPIES_FOLDER,
    COPY,
    SHARDS_FOLDER,
    STORE_WARC_FOLDER,
    CentralStore,
    CollectionStore,
    adopt_collection,
    file_digest,
    is_claimed_store,
    is_collection,
    is_sharded,
    open_central_store,
    open_packed,
    put_bytes,
    put_verified,
    read_chunks,
    require_store,
    unpack_warc,
)

ZSTD_LEVEL = 3
_MANIFEST = re.compile(r"checkpoint-\d{8}-\d{6}\.json")
_IMMUTABLE = ".sst"
_GENERATION_FILE = "generation"
_SETTINGS_FILE, _COPY_OF_FILE = "lycosa.toml", "copy-of"


class CheckpointFile(msgspec.Struct, frozen=True):
    """One file of a state: its object in the store, its bytes, and the digest of the object."""

    object: str
    bytes: int
    digest: str


class Manifest(msgspec.Struct, frozen=True):
    """A checkpoint of a shard's state as of `at_s` (Unix time). `positions` is how far other shards' rows are in it."""

    shard: str
    incarnation: int
    number: int
    at_s: float
    files: dict[str, CheckpointFile]
    positions: dict[str, Position]

    @property
    def name(self) -> str:
        return f"checkpoint-{self.incarnation:08d}-{self.number:06d}.json"


def _folder(shard: str) -> str:
    """The folder of a shard in the store."""
    return f"{SHARDS_FOLDER}/{shard}"


def latest_checkpoint(store: CentralStore, shard: str) -> Manifest | None:
    """The checkpoint that counts; None if there is none yet."""
    # Names sort as incarnation and number do, so the last one counts.
    names = [name for name in store.names(_folder(shard)) if _MANIFEST.fullmatch(name)]
    for name in reversed(names):
        try:
            return msgspec.json.decode(b"".join(read_chunks(store, f"{_folder(shard)}/{name}")), type=Manifest)
        except msgspec.DecodeError:  # its put did not come to an end, in a store where that can be seen
            continue
    return None


def publish_checkpoint(
    store: CentralStore, copy: Path, manifest: Manifest, before: Manifest | None, has_lease: Callable[[], bool]
) -> tuple[Manifest, int]:
    """Uploads the files in the folder `copy` that the checkpoint `before` does not have, then the manifest; returns it,
    with the files, and the bytes that travelled."""
    files: dict[str, CheckpointFile] = {}
    sent = 0
    try:
        for path in sorted(copy.iterdir()):
            known = before.files.get(path.name) if before is not None and path.suffix == _IMMUTABLE else None
            if known is None or known.bytes != path.stat().st_size:
                known, size = _upload(store, path, manifest)
                sent += size
            files[path.name] = known
    except OSError as error:
        raise StoreError(f"the copy {copy} cannot be packed: {error.strerror}") from error
    whole = msgspec.structs.replace(manifest, files=files)
    data = msgspec.json.encode(whole)
    # Asked last: an agent without a lease may have been taken over, and its checkpoint would take the place of those
    # of the agent after it.
    if not has_lease():
        raise StoreError(f"the copy of {manifest.shard} does not count: the shard may have been taken over")
    put_bytes(store, f"{_folder(manifest.shard)}/{whole.name}", data, copy.parent)
    return whole, sent + len(data)


def _upload(store: CentralStore, path: Path, manifest: Manifest) -> tuple[CheckpointFile, int]:
    # Named by the incarnation, since a restored shard may use the number of a table file again for other content; a
    # file that changes is another object in every checkpoint.
    prefix = f"{_folder(manifest.shard)}/{manifest.incarnation:08d}"
    number = "" if path.suffix == _IMMUTABLE else f"-{manifest.number:06d}"
    packed = path.with_name(f"{path.name}.zst")
    try:
        with path.open("rb") as source, packed.open("wb") as target:
            zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=True).copy_stream(source, target)
        name, size = f"{prefix}{number}-{path.name}.zst", packed.stat().st_size
        return CheckpointFile(name, path.stat().st_size, put_verified(store, name, packed)), size
    finally:
        packed.unlink(missing_ok=True)


def delete_old_checkpoints(store: CentralStore, manifest: Manifest) -> None:
    """Deletes what no checkpoint from this one on needs; a later incarnation's files are not its to judge."""
    folder = _folder(manifest.shard)
    needed = {file.object for file in manifest.files.values()}
    for name in store.names(folder):
        if _MANIFEST.fullmatch(name):
            is_old = name < manifest.name
        else:
            is_old = f"{folder}/{name}" not in needed and name[:8] <= f"{manifest.incarnation:08d}"
        if is_old:
            store.delete(f"{folder}/{name}")


def restore_checkpoint(
    store: CentralStore, manifest: Manifest, folder: Path, *, numbers: range, then: Callable[[Path], None]
) -> None:
    """Makes the collection at `folder` anew as of the checkpoint; it is there whole or not at all. Its archive files,
    of `numbers`, are in the store. `then` adds what else belongs to it."""
    # Under another name until it is whole: a crash in between must not leave half a shard that looks like one.
    new = folder.with_name(f".{folder.name}.restoring")
    try:
        shutil.rmtree(new, ignore_errors=True)
        (new / "state").mkdir(parents=True)
        for name, file in manifest.files.items():
            _download(store, file, new / "state" / name)
        adopt_collection(new, store, numbers=numbers)
        then(new)
        new.replace(folder)
    except OSError as error:
        raise StoreError(f"{folder} cannot be restored: {error.strerror}") from error


def _download(store: CentralStore, file: CheckpointFile, target: Path) -> None:
    packed = target.with_name(f"{target.name}.zst")
    with packed.open("wb") as downloaded:
        for chunk in read_chunks(store, file.object):
            downloaded.write(chunk)
    if file_digest(packed) != file.digest:
        raise StoreError(f"{store.url}/{file.object} is damaged: the shard cannot be restored from it")
    with packed.open("rb") as source, target.open("wb") as unpacked:
        zstandard.ZstdDecompressor().copy_stream(source, unpacked)
        unpacked.flush()
        os.fsync(unpacked.fileno())
    packed.unlink()


# the folder of a shard
#
# When a machine is gone for good the coordinator moves its shards to others; each move has a number, the generation,
# which is in a small file of the shard's folder, too. A folder of an earlier generation, on a machine that has come
# back, is void: what was done in it after its last checkpoint was done again elsewhere.


def ensure_shard_folder(folder: Path, shard: str, generation: int, store: CentralStore, numbers: range) -> None:
    """Sees to it that the folder is the shard's: it is there, or restored from its last checkpoint, or, if there never
    was one, not there. `numbers` are those of the shard's archive files."""
    if not is_claimed_store(store):
        raise SettingsError(f"{store.url} is not the crawl's store on this machine: all machines must see the same one")
    if is_collection(folder) and _read_generation(folder) == generation:
        return
    checkpoint = latest_checkpoint(store, shard)
    if is_collection(folder) or checkpoint is not None:
        _remove_folder(folder)
    if checkpoint is not None:
        restore_checkpoint(
            store, checkpoint, folder, numbers=numbers, then=lambda new: write_generation(new, generation)
        )


def write_generation(folder: Path, generation: int) -> None:
    """The folder is the shard's of this generation."""
    if _read_generation(folder) != generation:
        (folder / _GENERATION_FILE).write_text(f"{generation}\n")


def _read_generation(folder: Path) -> int:
    try:
        return int((folder / _GENERATION_FILE).read_text())
    except FileNotFoundError:
        return 0
    except (OSError, ValueError):
        return -1


def _remove_folder(folder: Path) -> None:
    """Under another name first: a folder is there whole or not at all."""
    void = folder.with_name(f".{folder.name}.void")
    shutil.rmtree(void, ignore_errors=True)
    if folder.exists():
        folder.replace(void)
        shutil.rmtree(void, ignore_errors=True)


# what a machine without the shards reads


def fetch_copies(into: Path) -> dict[str, float]:
    """Downloads the last checkpoint of every shard that is not here, for reading only, into a folder of their own:
    shards of this machine go before them. Returns which, and from when each is (Unix time)."""
    if not is_sharded(into):
        raise SettingsError(f"{into} is not a collection of several shards")
    settings = merge(read_file(into / _SETTINGS_FILE))
    if not settings.store:
        raise SettingsError(f"{into} has no central store: its shards are where they were crawled")
    store, found = open_central_store(settings.store), {}
    require_store(store)
    for name in store.names(SHARDS_FOLDER):
        if (
            not is_collection(into / SHARDS_FOLDER / name)
            and (checkpoint := latest_checkpoint(store, name)) is not None
        ):
            _fetch_copy(store, checkpoint, into / COPIES_FOLDER / name)
            found[name] = checkpoint.at_s
    return found


def _fetch_copy(store: CentralStore, checkpoint: Manifest, folder: Path) -> None:
    if (folder / _COPY_OF_FILE).is_file() and (folder / _COPY_OF_FILE).read_text() == checkpoint.name:
        return  # it is here already
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(exist_ok=True)
    restore_checkpoint(store, checkpoint, folder, numbers=range(0), then=lambda new: _complete_copy(new, checkpoint))


def _complete_copy(folder: Path, checkpoint: Manifest) -> None:
    """The link index is not part of a checkpoint: it is made from the state."""
    with CollectionStore.open(folder) as collection:
        linker = LinkIndexer(collection)
        linker.catch_up()
        linker.close()
    (folder / _COPY_OF_FILE).write_text(checkpoint.name)


def unpack_archive(where: str, folder: Path, *, tell: Callable[[str], None]) -> int:
    """Writes every archive file of the store at `where` into `folder` as `.warc.gz`, for tools that read those, each
    whole or not at all; returns how many. `tell` hears of those whose bytes are not the former ones."""
    store = open_central_store(where)
    if not is_claimed_store(store):
        raise SettingsError(f"{where} is no central store of Lycosa")
    names, left_out = store.names(STORE_WARC_FOLDER), 0
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in names:
            packed = open_packed(store, f"{STORE_WARC_FOLDER}/{name}")
            if packed is None:
                continue
            target = folder / Path(packed.index.name).name
            part = target.with_name(f"{target.name}.part")
            left_out += sum(pages for reason, (pages, _) in packed.index.left.items() if reason != COPY)
            if not unpack_warc(packed, part) and not packed.index.left:
                tell(f"{target.name} has the same records, compressed to other bytes than before")
            part.replace(target)
    except OSError as error:
        raise StoreError(f"{folder} cannot be written: {error.strerror}") from error
    if left_out:
        tell(f"{left_out:,} {'page' if left_out == 1 else 'pages'} were left out of the store: their shards have them")
    return len(names)
