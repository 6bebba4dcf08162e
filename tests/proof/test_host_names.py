"""Sums over many host names at once are those of each."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.cluster.assignment import letter_sum
from proof.ground.host_names import HostArray

HOST = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{2,8}){1,3}", fullmatch=True)


@given(st.lists(HOST, min_size=1, max_size=20))
def test_sums_over_many_hosts_are_those_of_each(hosts: list[str]) -> None:
    assert HostArray(hosts).letter_sums().tolist() == [letter_sum(host) for host in hosts]


def test_java_hash_is_that_of_java() -> None:
    assert HostArray(["abc", "www.example.org"]).java_hashes().tolist() == [96354, 269205129]


def test_host_without_a_name_is_refused() -> None:
    with pytest.raises(ValueError, match="has a name"):
        HostArray(["a.example", ""])
