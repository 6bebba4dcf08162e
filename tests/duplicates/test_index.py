"""The index of SimHashes: it finds exactly what a comparison of all with all finds, from disk as well."""

import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from lycosa.duplicates import KnownTexts, SimHashIndex
from lycosa.duplicates import index as indexing
from lycosa.duplicates.index import Hashes, near_among, unpacked
from lycosa.web import NEAR_BITS
from tests.resident import needs_smaps, resident_bytes


def some_hashes(count: int, seed: int = 1) -> Hashes:
    """Random SimHashes, a third of them near an earlier one or just beyond."""
    draw, made = random.Random(seed), list[tuple[int, int]]()
    for _ in range(count):
        unsure = sum(1 << 16 * block + bit for block in range(4) for bit in draw.sample(range(16), 2))
        bits = draw.getrandbits(64)
        if made and draw.random() < 0.3:
            other_bits, other_unsure = draw.choice(made)
            sure = [bit for bit in range(64) if not (unsure | other_unsure) >> bit & 1]
            flips = sum(1 << bit for bit in draw.sample(sure, draw.randrange(6)))
            bits = other_bits ^ flips ^ (draw.getrandbits(64) & (unsure | other_unsure))
        made.append((bits, unsure))
    return np.array(made, np.uint64)


pytestmark = pytest.mark.usefixtures("each_kernel")


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MOST_NEWEST", 16)
    monkeypatch.setattr(indexing, "MERGED_AT_ONCE", 3)
    monkeypatch.setattr(indexing, "MOST_IN_SEGMENT", 150)


def test_index_finds_what_a_comparison_of_all_finds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MOST_COMPARED", 50)
    hashes = some_hashes(500)
    index = SimHashIndex(tmp_path)
    index.add(hashes)

    found, wanted = index.near(hashes), near_among(hashes, hashes)
    each_with_each = indexing.distances(hashes[:, None], hashes[None, :]) <= NEAR_BITS

    assert len(index) == 500
    assert [wanted.asked.tolist(), wanted.entry.tolist()] == [part.tolist() for part in np.nonzero(each_with_each)]
    assert [column.tolist() for column in found] == [column.tolist() for column in wanted]
    assert len(found.asked) > 600
    assert (index.entries(np.arange(500)) == hashes).all()


def test_index_is_there_again_and_goes_on(tmp_path: Path) -> None:
    hashes = some_hashes(100)
    index = SimHashIndex(tmp_path)
    index.add(hashes[:90])
    index.flush()

    again = SimHashIndex(tmp_path)
    again.add(hashes[90:])

    assert (again.entries(np.arange(100)) == hashes).all()
    assert again.near(hashes[:1]).entry.tolist() == near_among(hashes[:1], hashes).entry.tolist()
    assert len(list(tmp_path.glob("*.texts"))) < 6, "segments are merged"


def test_damaged_index_begins_anew(tmp_path: Path) -> None:
    index = SimHashIndex(tmp_path)
    index.add(some_hashes(40))
    index.flush()
    damaged = next(tmp_path.glob("*.texts"))
    damaged.write_bytes(damaged.read_bytes()[:-1])

    again = SimHashIndex(tmp_path)

    assert (len(again), list(tmp_path.iterdir())) == (0, [])


def test_full_part_of_a_table_is_looked_at_from_its_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexing, "MOST_IN_PART", 2)
    same = np.repeat(some_hashes(1), 16, axis=0)
    index = SimHashIndex(tmp_path)
    index.add(same)

    assert index.near(same[:1]).entry.tolist() in ([15], [14, 15]), "an entry may stand in a part more than once"


def test_first_text_stands_for_those_that_are_near_it(tmp_path: Path) -> None:
    first, far = (row.astype(">u8").tobytes() for row in some_hashes(2, seed=5))
    near = (int.from_bytes(first[:8]) ^ 1).to_bytes(8) + first[8:]
    texts = KnownTexts(tmp_path)

    told = texts.originals([first, near, far])
    texts.flush()
    again = KnownTexts(tmp_path).originals([near, far])

    assert told == [0, int.from_bytes(first[:8]), 0]
    assert again == [int.from_bytes(first[:8]), int.from_bytes(far[:8])]
    assert len(SimHashIndex(tmp_path)) == 2, "those that are near it are not kept"


def test_known_texts_give_up_where_the_disk_fails(tmp_path: Path) -> None:
    folder = tmp_path / "file" / "similar"
    folder.parent.write_text("no folder")
    texts = KnownTexts(folder)
    packed = [row.astype(">u8").tobytes() for row in some_hashes(40)]

    texts.originals(packed)
    assert texts.originals(packed) == [0] * 40, "nothing is known any more"
    texts.flush()


def test_packed_simhashes_are_read_as_they_were_written() -> None:
    assert unpacked(b"\0" * 7 + b"\1" + b"\x80" + b"\0" * 7).tolist() == [[1, 1 << 63]]


def test_index_with_segments_asked_for_nothing_answers_nothing(tmp_path: Path) -> None:
    """A commit without a page with a text asks so; a crawl that was killed and begun again ended by it."""
    index = SimHashIndex(tmp_path)
    index.add(some_hashes(40))
    assert [len(column) for column in index.near(some_hashes(0).reshape(0, 2))] == [0, 0, 0]
    assert KnownTexts(tmp_path).originals([]) == []


@needs_smaps
@pytest.mark.parametrize(("most", "stays"), [(0, False), (1 << 30, True)])
def test_large_index_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, stays: bool
) -> None:
    monkeypatch.setattr(indexing, "MOST_RESIDENT_BYTES", most)
    hashes = some_hashes(160)
    index = SimHashIndex(tmp_path)
    index.add(hashes)

    index.near(hashes[:20])

    assert [bool(resident_bytes(path)) for path in tmp_path.glob("*.texts")].count(stays) > 1


def test_look_up_among_many_of_one_template_takes_little_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three of their four blocks are the same, and so each is compared with all."""
    monkeypatch.setattr(indexing, "MOST_IN_SEGMENT", 1 << 20)
    entry = some_hashes(1)
    index = SimHashIndex(tmp_path)
    index.add(np.repeat(entry, 1_296, axis=0))
    asked = np.repeat(entry ^ np.array([0xFFFF, 0], np.uint64), 60, axis=0)

    tracemalloc.start()
    found = index.near(asked)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert len(found.asked) == 0
    assert most < 8_000_000
