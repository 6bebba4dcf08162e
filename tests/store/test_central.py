"""The central store: what is put there is whole; archive files travel packed and are read as if they were here."""

import gzip
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import zstandard
from victim import page
from warcio.archiveiterator import ArchiveIterator

from lycosa.errors import MissingExtra, SettingsError, StoreError
from lycosa.records import Family, Request, Response
from lycosa.store import Batch, CollectionStore, WarcLocation, central, response_exchange
from lycosa.store import packed as packing
from lycosa.store.central import CentralStore, claim_store, open_central_store
from lycosa.store.packed import Capture, LeftOutPage, PackedWarc, pack_warc, unpack_warc
from lycosa.store.released import (
    open_packed,
    packed_name,
    read_record_at,
    records_in,
    released_files,
    remember_store,
    upload_warc,
)
from lycosa.store.warc_file import WarcWriter, warc_path
from lycosa.store.warc_read import WarcReader, read_record
from lycosa.web.url import split_url

SOURCE = Path(__file__).parents[2] / "src"
ENV = {**os.environ, "PYTHONPATH": str(SOURCE)}
PAGES = 60


@pytest.fixture(params=["folder", "url"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CentralStore:
    if request.param == "folder":
        return open_central_store(str(tmp_path / "store"))
    pytest.importorskip("fsspec", reason="stores at URLs need the extra store")
    return open_central_store(f"memory://{tmp_path.name}/store")


def filled(path: Path, pages: int = PAGES) -> CollectionStore:
    """A collection with pages in several archive files."""
    collection = CollectionStore.create(path, warc_bytes=20_000)
    for number in range(pages):
        batch = Batch()
        page(collection, batch, number)
        collection.commit(batch)
    return collection


def bring_all(collection: CollectionStore, store: CentralStore) -> None:
    remember_store(collection.warc_folder, store.url)
    for number, length in collection.finished_files().items():
        source = warc_path(collection.warc_folder, number)
        collection.release(number, upload_warc(source, length, store, collection.path / "packing"))


def all_records(collection: CollectionStore) -> dict[bytes, tuple[str | None, bytes]]:
    rows = collection.state.walk(Family.PAGE)
    found = {key: collection.record(WarcLocation.unpack(row)) for key, row in rows}
    return {key: (record.url, record.block) for key, record in found.items()}


def test_released_files_are_read_from_the_store_by_the_same_places(tmp_path: Path, store: CentralStore) -> None:
    with filled(tmp_path / "c") as collection:
        before = all_records(collection)
        in_order = sorted((number, r.offset, r.block) for number, r in collection.records())
        collection.warc.finish_file()
        bring_all(collection, store)
        assert not list(collection.warc_folder.glob("*.warc.gz"))
        assert len(released_files(collection.state)) > 3
        assert all_records(collection) == before
        assert sorted((number, r.offset, r.block) for number, r in collection.records()) == in_order


def test_what_is_left_out_stays_beside_its_file_and_all_places_are_read(tmp_path: Path, store: CentralStore) -> None:
    source, places = of_many_hosts(tmp_path / "warc")
    original = "http://h0.example/0"

    def choose(captures: Sequence[Capture]) -> dict[int, LeftOutPage]:
        numbers = {capture.number: int(capture.url.rpartition("/")[2]) for capture in captures}
        out = {at: LeftOutPage("relevance", 10) for at, number in numbers.items() if number % 3 == 1}
        return out | {at: LeftOutPage("copy", 5, original) for at, number in numbers.items() if number % 3 == 2}

    before = {place: read_record(source, place) for place in places}
    remember_store(source.parent, store.url)
    for _ in range(2):  # whoever was killed in between does it again
        what = upload_warc(source, source.stat().st_size, store, tmp_path / "scratch", choose=choose)
        assert what.left == {"relevance": (30, 300), "copy": (30, 150)}
    source.unlink()
    assert {place: read_record_at([source.parent], place) for place in places} == before
    assert Counter(record.type for _, record in records_in(source.parent, [1])) == {
        "warcinfo": 1,
        "request": 90,
        "response": 90,
    }
    packed = open_packed(store, packed_name(1))
    assert packed is not None
    assert Counter(record.type for record in packed.records()) == {
        "warcinfo": 1,
        "request": 60,
        "response": 30,
        "revisit": 30,
    }
    assert not unpack_warc(packed, tmp_path / "again.warc.gz")
    with (tmp_path / "again.warc.gz").open("rb") as stream:
        kinds = Counter(
            (record.rec_type, record.rec_headers["WARC-Refers-To-Target-URI"]) for record in ArchiveIterator(stream)
        )
    assert kinds["revisit", original] == kinds["response", None] == 30
    next(source.parent.glob("*.rest.*")).unlink()  # another machine
    with pytest.raises(StoreError, match="left out of the store"):
        for place in places:
            read_record_at([source.parent], place)


def test_archive_goes_on_behind_what_was_released(tmp_path: Path, store: CentralStore) -> None:
    with filled(tmp_path / "c") as collection:
        collection.warc.finish_file()
        bring_all(collection, store)
        last = max(released_files(collection.state))
    with CollectionStore.open(tmp_path / "c") as collection:
        assert not collection.recovery.short
        batch = Batch()
        page(collection, batch, PAGES)
        collection.commit(batch)
        row = collection.state.get(Family.PAGE, PAGES.to_bytes(4))
        assert row is not None
        assert WarcLocation.unpack(row).file_number == last + 1
        assert len(all_records(collection)) == PAGES + 1


def test_packed_file_is_a_warc_under_zstd_and_becomes_the_same_gzip_file_again(tmp_path: Path) -> None:
    with filled(tmp_path / "c") as collection:
        source = min(collection.warc_folder.glob("*.warc.gz"))
    pack_warc(source, tmp_path / "packed")
    data = (tmp_path / "packed").read_bytes()
    packed = PackedWarc(lambda at, size: data[at : at + size], len(data), name="packed")
    assert unpack_warc(packed, tmp_path / "again.warc.gz")
    assert (tmp_path / "again.warc.gz").read_bytes() == source.read_bytes()
    plain = tmp_path / "plain.warc"
    with plain.open("wb") as out:
        zstandard.ZstdDecompressor().copy_stream((tmp_path / "packed").open("rb"), out)
    with plain.open("rb") as stream, source.open("rb") as original:
        ids = [[record.rec_headers["WARC-Record-ID"] for record in ArchiveIterator(one)] for one in (stream, original)]
    assert sorted(ids[0]) == sorted(ids[1])
    assert len(ids[0]) == len(packed)


def of_many_hosts(folder: Path) -> tuple[Path, dict[WarcLocation, bytes]]:
    """A WARC file in which hosts take turns, and the URL of every place."""
    folder.mkdir()
    writer, places = WarcWriter(folder, info={}, first_number=1), {}
    writer.recover({})
    for number in range(90):
        host = f"h{number * 7 % 13}.example"
        request = Request(url=f"http://{host}/{number}", host=host, port=80, address="192.0.2.1")
        head = b"HTTP/1.1 200 OK\r\n\r\n"
        response = Response(url=request.url, status=200, header_block=head, body=b"%d " % number * 99 * (number % 7))
        members = response_exchange(request, response, fetched_s=float(number)).members
        places |= dict.fromkeys(writer.append(members), request.url.encode())
    writer.close()
    return writer.path(1), places


def test_hosts_lie_together_and_every_place_is_found(tmp_path: Path) -> None:
    source, places = of_many_hosts(tmp_path / "warc")
    pack_warc(source, tmp_path / "packed", block_bytes=10_000)
    data = (tmp_path / "packed").read_bytes()
    packed = PackedWarc(lambda at, size: data[at : at + size], len(data), name="packed")
    assert len(packed.index.blocks) > 5
    for place, url in places.items():
        record = packed.record(place)
        assert ((record.url or "").encode(), record.offset, record.length) == (url, place.offset, place.length)
        assert record.block == read_record(source, place).block
    hosts = [split_url(record.url).host for record in packed.records() if record.url]
    assert hosts == sorted(hosts)
    assert unpack_warc(packed, tmp_path / "again.warc.gz")
    assert (tmp_path / "again.warc.gz").read_bytes() == source.read_bytes()
    with pytest.raises(StoreError):
        packed.record(WarcLocation(1, 3, 5))


def test_unpacking_with_another_compressor_gives_all_records_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, places = of_many_hosts(tmp_path / "warc")
    pack_warc(source, tmp_path / "packed")
    data = (tmp_path / "packed").read_bytes()
    packed = PackedWarc(lambda at, size: data[at : at + size], len(data), name="packed")
    monkeypatch.setattr(packing, "recompress_record", gzip.compress)
    assert not unpack_warc(packed, tmp_path / "again.warc.gz")
    with WarcReader(tmp_path / "again.warc.gz") as reader:
        assert {(record.url or "").encode() for record in reader} == {b"", *places.values()}
        assert not reader.problems


@pytest.mark.slow
def test_archive_in_a_store_is_unpacked_for_other_tools(tmp_path: Path) -> None:
    place, before = tmp_path / "store", {}
    with filled(tmp_path / "c") as collection:
        collection.warc.finish_file()
        before = {file.name: file.read_bytes() for file in collection.warc_folder.glob("*.warc.gz")}
        claim_store(open_central_store(str(place)), "mine", tmp_path)
        bring_all(collection, open_central_store(str(place)))
    words = [sys.executable, "-m", "lycosa", "cluster", "unpack", str(place), "-o", str(tmp_path / "out")]
    ran = subprocess.run(words, env=ENV, stderr=-1, check=False)
    assert (ran.returncode, ran.stderr.decode().strip()) == (0, f"{len(before)} files in {tmp_path / 'out'}")
    assert {file.name: file.read_bytes() for file in (tmp_path / "out").iterdir()} == before
    words[-3] = str(tmp_path / "c")
    ran = subprocess.run(words, env=ENV, stderr=-1, check=False)
    assert ran.returncode == 2
    assert b"no central store" in ran.stderr


@pytest.mark.parametrize("where", ["cut", "changed", "empty"])
def test_packed_file_that_is_not_whole_is_refused(tmp_path: Path, where: str) -> None:
    with filled(tmp_path / "c", 5) as collection:
        source = min(collection.warc_folder.glob("*.warc.gz"))
    index = pack_warc(source, tmp_path / "packed")
    data = bytearray((tmp_path / "packed").read_bytes())
    if where == "changed":
        data[len(data) // 4] ^= 1
    else:
        del data[0 if where == "empty" else -1 :]
    with pytest.raises(StoreError):
        packed = PackedWarc(lambda at, size: bytes(data[at : at + size]), len(data), name="packed")
        assert packed.digest() == index.digest


def test_store_that_changes_what_it_is_given_gets_nothing_released(tmp_path: Path) -> None:
    class Lying(central.FolderStore):
        def put(self, name: str, file: Path) -> None:
            super().put(name, file)
            whole = Path(self.url) / name
            data = bytearray(whole.read_bytes())
            data[10] ^= 1
            whole.write_bytes(data)

    with filled(tmp_path / "c") as collection:
        here = set(collection.warc_folder.glob("*.warc.gz"))
        with pytest.raises(StoreError, match="not what was put there"):
            bring_all(collection, Lying(tmp_path / "store"))
        assert set(collection.warc_folder.glob("*.warc.gz")) == here
        assert not released_files(collection.state)


def test_shard_that_may_have_been_replaced_brings_nothing(tmp_path: Path) -> None:
    store = open_central_store(str(tmp_path / "store"))
    with filled(tmp_path / "c") as collection:
        number, length = min(collection.finished_files().items())
        source = warc_path(collection.warc_folder, number)
        with pytest.raises(StoreError, match="taken over"):
            upload_warc(source, length, store, tmp_path, may_go_on=lambda: False)
    assert store.names("warc") == []


def test_store_of_another_collection_is_refused(tmp_path: Path, store: CentralStore) -> None:
    claim_store(store, "mine", tmp_path)
    claim_store(store, "mine", tmp_path)
    with pytest.raises(SettingsError, match="another collection"):
        claim_store(store, "theirs", tmp_path)


def test_folder_with_other_things_in_it_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "letters").write_text("dear")
    with pytest.raises(SettingsError, match="not empty"):
        claim_store(open_central_store(str(tmp_path / "store")), "mine", tmp_path)


def test_url_without_fsspec_says_how_to_get_it(tmp_path: Path) -> None:
    words = (
        "import sys; sys.modules['fsspec'] = None\nfrom lycosa.store.central import open_central_store as open_store\n"
    )
    words += "from lycosa.errors import MissingExtra\n"
    words += "try:\n open_store('s3://bucket/crawl')\nexcept MissingExtra as error:\n print(error)\n"
    words += f"print(open_store({str(tmp_path)!r}).names(''))\n"
    ran = subprocess.run([sys.executable, "-c", words], env=ENV, stdout=-1, check=False)
    assert ran.stdout.decode().splitlines() == [
        "the store s3://bucket/crawl needs an optional package: pip install 'lycosa[store]'",
        "[]",
    ]


def test_url_without_an_adapter_says_what_is_missing() -> None:
    pytest.importorskip("fsspec", reason="stores at URLs need the extra store")
    with pytest.raises((MissingExtra, SettingsError), match="nonsense"):
        open_central_store("nonsense://x/y")


STEPS = {
    "packing": "lycosa.store.released.pack_warc",
    "put": "lycosa.store.central.os.fsync",
    "seen": "lycosa.store.released._is_there",
    "noted": "lycosa.store.state.State.write",
    "released": "pathlib.Path.unlink",
}
KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_central import bring_all
from lycosa.store import CollectionStore
from lycosa.store.central import open_central_store
import importlib

def armed(name, after):
    owner, _, attribute = name.rpartition(".")
    try:
        holder = importlib.import_module(owner)
    except ImportError:
        above, _, one = owner.rpartition(".")
        holder = getattr(importlib.import_module(above), one)
    real, count = getattr(holder, attribute), [0]
    def call(*args, **kinds):
        count[0] += 1
        if {late} and count[0] == after:
            real(*args, **kinds)
        if count[0] == after:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kinds)
    setattr(holder, attribute, call)

with CollectionStore.open(Path({path!r})) as collection:
    collection.warc.finish_file()
    armed({step!r}, {after})
    bring_all(collection, open_central_store({store!r}))
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("is_late", [False, True])
def test_killed_at_any_step_nothing_is_lost_doubled_or_half(tmp_path: Path, step: str, is_late: bool) -> None:
    path, place = tmp_path / "c", tmp_path / "store"
    with filled(path) as collection:
        before = all_records(collection)
    words = KILLED.format(
        tests=str(Path(__file__).parent),
        path=str(path),
        store=str(place),
        step=STEPS[step],
        after=random.Random(step).randrange(2, 4),
        late=is_late,
    )
    ran = subprocess.run([sys.executable, "-c", words], env=ENV, stderr=-1, check=False)
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    store = open_central_store(str(place))
    for name in store.names("warc"):
        packed = open_packed(store, f"warc/{name}")  # whole, or not there
        assert packed is not None
        assert packed.digest() == packed.index.digest
    with CollectionStore.open(path) as collection:
        assert not collection.recovery.short
        assert all_records(collection) == before
        here = {int(file.name[7:13]) for file in collection.warc_folder.glob("*.warc.gz")}
        assert not here & released_files(collection.state).keys()
        collection.warc.finish_file()
        store.sweep("warc", {packed_name(number)[5:] for number in collection.finished_files()})
        bring_all(collection, store)
        assert all_records(collection) == before
        known = {packed_name(number)[5:] for number in released_files(collection.state)}
        assert {file.name for file in (place / "warc").iterdir()} == known
