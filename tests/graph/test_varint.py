"""Numbers in bytes: what is written is what is read, and small numbers are small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.graph.packing import decode_varints, deltas, encode_varints


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
