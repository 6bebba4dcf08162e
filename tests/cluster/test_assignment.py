"""Who owns which part of the web: disjoint, complete, even, and little moves when a member comes or goes."""

from collections import Counter

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.cluster.assignment import (
    BUCKETS,
    AssignmentTable,
    Member,
    PlaceRanges,
    Scheme,
    build_table,
    even_sum,
    letter_sum,
    odd_sum,
)
from lycosa.cluster.outbox import pack_items, unpack_items
from lycosa.errors import SettingsError
from lycosa.frontier.forwarding import ForwardedUrl

HOST = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?(\.[a-z]{2,8}){1,3}", fullmatch=True)


def members(count: int) -> list[Member]:
    return [Member(f"s{number}", number) for number in range(count)]


@pytest.mark.parametrize(("host", "total"), [("abc", 6), ("www.example.org", 185), ("z", 26), ("0.9", 63), ("a-.b", 3)])
def test_letter_sum_counts_letters_then_digits_and_other_characters_as_nothing(host: str, total: int) -> None:
    assert letter_sum(host) == total


def test_letter_table_is_extensible() -> None:
    assert letter_sum("a1", {"a": 1, "1": 30}) == 31


@settings(deadline=None)
@given(st.sampled_from(Scheme), st.integers(1, 9), HOST)
def test_host_has_one_owner_whoever_asks_and_however_members_are_listed(scheme: Scheme, count: int, host: str) -> None:
    one = build_table(3, members(count), scheme)
    other = build_table(3, list(reversed(members(count))), scheme)
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(one), type=AssignmentTable)
    assert one.owner(host) == other.owner(host) == sent.owner(host)
    assert one.owner(host) in {member.name for member in one.members}


@given(HOST, st.integers(2, 9))
def test_rendezvous_keeps_the_hosts_of_a_domain_together(host: str, count: int) -> None:
    owners = build_table(1, members(count))
    assert owners.owner(f"example{count}.org") == owners.owner(f"www.example{count}.org")


def test_papers_schemes_are_their_sums_modulo_the_members() -> None:
    assert build_table(1, members(7), Scheme.LETTER_SUM).owner("www.example.org") == f"s{185 % 7}"
    machine, thread = even_sum("www.example.org") % 3, odd_sum("www.example.org") % 2
    assert (
        build_table(1, members(6), Scheme.TWO_LEVEL, threads=2).owner("www.example.org") == f"s{2 * machine + thread}"
    )


def moved_buckets(before: AssignmentTable, after: AssignmentTable) -> list[int]:
    """The buckets that have another owner after than before."""
    pairs = [[one.members[index].name for index in np.frombuffer(one.owners, ">u2")] for one in (before, after)]
    return [bucket for bucket, (old, new) in enumerate(zip(*pairs, strict=True)) if old != new]


def shares(table: AssignmentTable) -> dict[str, int]:
    """How many buckets each member owns."""
    counts = np.bincount(np.frombuffer(table.owners, ">u2"), minlength=len(table.members))
    return {member.name: int(count) for member, count in zip(table.members, counts, strict=True)}


@pytest.mark.parametrize("count", [1, 2, 7, 32])
def test_join_moves_only_to_the_new_member_and_little_more_than_its_share(count: int) -> None:
    before, after = build_table(1, members(count)), build_table(2, members(count + 1))
    going = moved_buckets(before, after)
    owners = np.frombuffer(after.owners, ">u2")
    assert {after.members[owners[bucket]].name for bucket in going} == {f"s{count}"}
    assert len(going) <= 1.3 * BUCKETS / (count + 1)


def test_leave_moves_only_what_was_the_leaver_s() -> None:
    before = build_table(1, members(5))
    after = build_table(2, [member for member in members(5) if member.name != "s2"])
    owners = np.frombuffer(before.owners, ">u2")
    assert set(moved_buckets(before, after)) == {bucket for bucket in range(BUCKETS) if owners[bucket] == 2}


def test_capacity_weighs() -> None:
    owned = shares(build_table(1, [Member("small", 1), Member("large", 2, capacity=3)]))
    assert owned["large"] / owned["small"] == pytest.approx(3, rel=0.05)


def test_near_work_goes_to_near_members() -> None:
    both = [Member("east", 1, place="east"), Member("west", 2, place="west")]
    near = build_table(1, both, places={bucket: "west" if bucket % 2 else "east" for bucket in range(BUCKETS)})
    owners = np.frombuffer(near.owners, ">u2")
    assert owners.tolist() == [bucket % 2 for bucket in range(BUCKETS)]


def test_near_members_share_what_is_near() -> None:
    some = [Member("far", 1, place="east"), Member("near", 2, place="west"), Member("too", 3, place="west", capacity=2)]
    owned = shares(build_table(1, some, places=dict.fromkeys(range(BUCKETS), "west")))
    assert owned["far"] == 0
    assert owned["too"] / owned["near"] == pytest.approx(2, rel=0.05)


def test_ip_keeps_what_has_one_address_together_and_moves_little() -> None:
    homes = {bucket: f"192.0.2.{bucket % 50}" for bucket in range(0, BUCKETS, 3)}
    before, after = (
        build_table(1, members(4), Scheme.IP, addresses=homes),
        build_table(2, members(5), Scheme.IP, addresses=homes),
    )
    by_address: dict[str, set[str]] = {}
    for bucket, address in homes.items():
        by_address.setdefault(address, set()).add(before.owner_of_bucket(bucket.to_bytes(2)))
    assert {len(owners) for owners in by_address.values()} == {1}
    assert len({owner for owners in by_address.values() for owner in owners}) == 4
    owners = np.frombuffer(after.owners, ">u2")
    assert {after.members[owners[bucket]].name for bucket in moved_buckets(before, after)} == {"s4"}


def test_narrowest_range_names_the_place() -> None:
    places = PlaceRanges({"10.0.0.0/8": "wide", "10.1.0.0/16": "narrow", "2001:db8::/32": "six"})
    asked = ("10.1.2.3", "10.2.0.1", "2001:db8::1", "192.0.2.1", "no address")
    assert [places.place_of(address) for address in asked] == ["narrow", "wide", "six", "", ""]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: build_table(1, []), "1 to"),
        (lambda: build_table(1, [Member("a"), Member("a")]), "same name"),
        (lambda: build_table(1, members(3), Scheme.TWO_LEVEL, threads=2), "two-level"),
        (lambda: PlaceRanges({"here": "x"}), "no range"),
    ],
    ids=["nobody", "twice", "odd machines", "no range"],
)
def test_what_cannot_be_is_refused_with_a_sentence(make: object, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        make()  # type: ignore[operator]


@given(
    st.lists(
        st.builds(
            ForwardedUrl,
            href=st.text(min_size=1),
            depth=st.integers(0, 300),
            is_evidence_only=st.booleans(),
            credit=st.floats(0, 9),
        )
    )
)
def test_what_is_packed_is_what_comes_back(crossings: list[ForwardedUrl]) -> None:
    assert Counter(unpack_items(pack_items(crossings))) == Counter(crossings)
