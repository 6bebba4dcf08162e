"""The address guard: what is refused, by the registries, whatever the spelling."""

import ipaddress
import json
from ipaddress import ip_network
from pathlib import Path

import ada_url
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.mapping.guard import AddressGuard, is_literal_host, literal_address
from lycosa.settings.values import PRIVATE_NETWORKS

GUARD = AddressGuard()


def registry(conformance: Path) -> list[dict[str, object]]:
    lines = (conformance / "ssrf/iana_special_purpose.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def test_guard_every_unreachable_prefix_is_refused_at_both_ends(conformance: Path) -> None:
    rows = [row for row in registry(conformance) if not row["globally_reachable"]]

    open_ends = [end for row in rows for end in (str(row["first"]), str(row["last"])) if GUARD.refusal(end) is None]

    assert len(rows) > 30
    assert open_ends == []


def test_guard_reachable_exceptions_inside_refused_prefixes_are_open(conformance: Path) -> None:
    rows = [row for row in registry(conformance) if row["globally_reachable"] and row["prefix"] != "64:ff9b::/96"]

    closed = [end for row in rows for end in (str(row["first"]), str(row["last"])) if GUARD.refusal(end) is not None]

    assert closed == []


def test_guard_ipv4_inside_ipv6_is_refused_for_every_unreachable_prefix(conformance: Path) -> None:
    rows = [row for row in registry(conformance) if row["family"] == 4 and not row["globally_reachable"]]
    packed = [int(ipaddress.IPv4Address(str(row[end]))) for row in rows for end in ("first", "last")]

    wraps = [0xFFFF << 32, 0, 0x64FF9B << 96, (0x64FF9B << 96) | (1 << 80)]
    spelled = [str(ipaddress.IPv6Address(wrap | number)) for wrap in wraps for number in packed]
    spelled += [str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))) for number in packed]

    assert [address for address in spelled if GUARD.refusal(address) is None] == []


def test_guard_funky_ipv4_spellings_are_seen_as_the_address(conformance: Path) -> None:
    forms: dict[str, str | None] = json.loads((conformance / "ssrf/funky_ipv4.json").read_text())
    refused = []

    for form, address in forms.items():
        try:
            host = ada_url.URL(f"http://{form}/").hostname
        except ValueError:
            assert address is None, form
            continue
        assert literal_address(host) == address, form  # a form that is no number at all stays a name
        if address is not None:
            assert host == address
            refused.append(GUARD.refusal(host) is not None)

    assert refused.count(True) > 10  # 0.0.0.0/8, 10.0.0.0/8, 192.168.0.1 in their many spellings


@pytest.mark.parametrize("address", ["8.8.8.8", "1.1.1.1", "2606:4700::1111", "64:ff9b::808:808", "192.0.0.9"])
def test_guard_public_address_is_open(address: str) -> None:
    assert GUARD.refusal(address) is None


@pytest.mark.parametrize(
    "address",
    [
        "fe80::1%eth0",
        "2606:4700::1%1",
        "127.1",
        "0x7f000001",
        "2130706433",
        "example.org",
        "",
        "[::1]",
        "1.2.3.4\0",
        "１.1.1.1",
        "4000::1",
        "fec0::1",
        "::ffff:8.8.8.8",
        "::8.8.8.8",
        "2001:0:808:808::1",
        "2002:808:808::1",
    ],
)
def test_guard_odd_address_is_refused(address: str) -> None:
    assert GUARD.refusal(address) is not None


def test_guard_allowed_network_opens_only_itself() -> None:
    guard = AddressGuard(allow=(ipaddress.ip_network(net) for net in ("10.1.0.0/16", "fd00::/8")))

    assert guard.refusal("10.1.2.3") is None
    assert guard.refusal("fd00::1") is None
    assert guard.refusal("10.2.0.0") is not None
    assert guard.refusal("fc00::1") is not None
    assert guard.refusal("::ffff:10.1.2.3") is not None


def test_guard_private_networks_leave_link_local_refused() -> None:
    guard = AddressGuard(allow=map(ip_network, PRIVATE_NETWORKS))

    assert guard.refusal("192.168.1.1") is None
    assert guard.refusal("::1") is None
    assert guard.refusal("169.254.169.254") is not None


def test_guard_one_bad_address_refuses_the_answer() -> None:
    assert GUARD.refusal_of_any(["8.8.8.8", "1.1.1.1"]) is None
    assert "10.0.0.1" in (GUARD.refusal_of_any(["8.8.8.8", "10.0.0.1"]) or "")


def test_guard_typed_literal_opens_that_host_and_port_only() -> None:
    guard = AddressGuard()
    guard.allow_literal("127.0.0.1", 8000)
    guard.allow_literal("[::1]", 8000)
    guard.allow_literal("internal.example", 80)

    assert guard.is_typed("127.0.0.1", 8000)
    assert guard.is_typed("::1", 8000)
    assert not guard.is_typed("127.0.0.1", 8001)
    assert not guard.is_typed("127.0.0.2", 8000)
    assert not guard.is_typed("internal.example", 80)
    assert guard.refusal("127.0.0.1") is not None


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("localhost", "127.0.0.1"),
        ("LOCALHOST.", "127.0.0.1"),
        ("a.localhost", "127.0.0.1"),
        ("[::1]", "::1"),
        ("10.0.0.1", "10.0.0.1"),
        ("[2606:4700:0::1]", "2606:4700::1"),
        ("localhost.example", None),
        ("example.org", None),
    ],
)
def test_literal_address_of_a_host_is_found_without_dns(host: str, address: str | None) -> None:
    assert literal_address(host) == address
    assert is_literal_host(host) == (address is not None)


@given(st.ip_addresses(v=4))
def test_guard_open_ipv4_is_never_private_for_the_standard_library_either(address: ipaddress.IPv4Address) -> None:
    known = [ipaddress.ip_network(net) for net in ("192.0.0.0/24", "192.88.99.0/24")]
    if GUARD.refusal(str(address)) is None:
        assert not address.is_private or any(address in net for net in known)
        assert not address.is_multicast
        assert not address.is_loopback
        assert not address.is_link_local


@given(st.text())
def test_guard_any_text_gives_a_verdict(text: str) -> None:
    verdict = GUARD.refusal(text)

    assert verdict is None or verdict
