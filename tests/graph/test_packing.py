"""Packed numbers: what goes in comes out, small numbers are small, and sorted ones are found where they stand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.graph.columns import (
    decode_varints,
    deltas,
    encode_varints,
    find_sorted,
    pack_bits,
    pack_frames,
    pack_sorted,
    unpack_bits,
    unpack_frames,
    unpack_sorted,
)

WIDEST = 57  # bits that a packed number may have

numbers_of_a_width = st.integers(1, WIDEST).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.integers(0, 2**width - 1), max_size=300))
)


@settings(max_examples=100, deadline=None)
@given(numbers_of_a_width)
def test_numbers_of_one_width_come_back_at_every_place(given_: tuple[int, list[int]]) -> None:
    width, numbers = given_
    packed = pack_bits(np.array(numbers, dtype=np.uint64), width)
    assert unpack_bits(packed, width, np.arange(len(numbers))).tolist() == numbers
    assert unpack_bits(packed, width, np.arange(len(numbers))[::-3]).tolist() == numbers[::-3]
    assert len(packed) <= (len(numbers) * width + 7) // 8 + 8


@settings(max_examples=100, deadline=None)
@given(st.sets(st.integers(0, 2**WIDEST - 1), max_size=400), st.lists(st.integers(0, 2**WIDEST - 1), max_size=20))
def test_sorted_numbers_come_back_and_are_found(numbers: set[int], others: list[int]) -> None:
    ordered = np.array(sorted(numbers), dtype=np.uint64)
    packed = pack_sorted(ordered)
    assert unpack_sorted(packed).tolist() == ordered.tolist()
    wanted = np.array([*ordered.tolist(), *others], dtype=np.uint64)
    at, is_known = find_sorted(packed, wanted)
    assert is_known.tolist() == [number in numbers for number in wanted.tolist()]
    assert ordered[at[is_known]].tolist() == wanted[is_known].tolist()


def test_random_ids_take_little_more_than_their_differences() -> None:
    ids = np.unique(np.random.default_rng(1).integers(0, 1 << 42, 100_000).astype(np.uint64))
    packed = pack_sorted(ids)
    taken = 8 * (packed.lower.nbytes + packed.upper.nbytes) / len(ids)
    assert taken < 42 - np.log2(len(ids)) + 2.6


def test_many_numbers_with_the_same_upper_bits_are_told_apart() -> None:
    near = np.concatenate([np.arange(1_000), [1 << 50]]).astype(np.uint64)
    at, is_known = find_sorted(pack_sorted(near), np.array([0, 7, 999, 1_000, 1 << 50, 1 << 51], dtype=np.uint64))
    assert is_known.tolist() == [True, True, True, False, True, False]
    assert at[is_known].tolist() == [0, 7, 999, 1_000]


@pytest.mark.parametrize("edges", [[], [0], [3, 3, 7], [1, 2, 3, 4, 5, 6, 7]])
def test_frames_are_opened_one_by_one_or_all_at_once(edges: list[int]) -> None:
    numbers = np.array([0, 1, 127, 128, 2**40, 5, 5][: edges[-1] if edges else 0], dtype=np.uint64)
    packed = pack_frames(numbers, np.array(edges, dtype=np.int64))
    assert unpack_frames(packed).tolist() == numbers.tolist()
    starts = [0, *edges]
    for place, end in enumerate(edges):
        assert unpack_frames(packed, [place]).tolist() == numbers[starts[place] : end].tolist()


@given(st.lists(st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 300)), max_size=200))
def test_encoded_numbers_come_back(numbers: list[int]) -> None:
    data, starts = encode_varints(np.array(numbers, dtype=np.uint64))
    assert decode_varints(data).tolist() == numbers
    assert [int(decode_varints(data[start:])[0]) for start in starts.tolist()] == numbers


@pytest.mark.parametrize(("number", "size_bytes"), [(0, 1), (127, 1), (128, 2), (16_383, 2), (16_384, 3)])
def test_size_grows_by_seven_bits(number: int, size_bytes: int) -> None:
    assert len(encode_varints(np.array([number]))[0]) == size_bytes


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1).map(sorted))
def test_deltas_add_up_to_the_numbers(numbers: list[int]) -> None:
    steps = deltas(np.array(numbers, dtype=np.uint64))
    assert np.cumsum(steps, dtype=np.uint64).tolist() == numbers
