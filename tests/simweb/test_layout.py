"""Names and numbers are inverse, sizes and topics keep their promises."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lycosa.errors import SettingsError
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace


def all_places(web: SimWeb) -> list[PagePlace]:
    layout = web.layout
    return [
        PagePlace(host, index, page)
        for host in range(web.settings.hosts)
        for index in range(layout.folder_count(host))
        for page in range(1 + layout.folder(host, index).articles + layout.folder(host, index).series)
    ]


def test_every_page_is_found_under_its_own_path(web: SimWeb) -> None:
    places = all_places(web)
    assert len(places) == 3000
    assert all(web.layout.locate(p.host, web.layout.path_of(p)) == p for p in places)
    assert len({web.url(p) for p in places}) == 3000


@given(path=st.text(max_size=60).map(lambda text: "/" + text))
def test_any_path_gives_a_page_with_that_path_or_nothing(path: str) -> None:
    web = SMALL
    place = web.layout.locate(0, path)
    assert place is None or web.layout.path_of(place) == path


SMALL = SimWeb(SimSettings(hosts=1, pages=40))


@pytest.mark.parametrize(
    ("hosts", "pages"), [(50, 20_000), (1000, 1000), (13, 13_000), (11, 110), (12, 3000), (3, 100), (1, 1)]
)
@pytest.mark.parametrize("sizes", ["heavy", "uniform"])
def test_sizes_add_up_and_no_host_is_too_large(hosts: int, pages: int, sizes: str) -> None:
    found = SimWeb(SimSettings(hosts=hosts, pages=pages, sizes=sizes)).layout.sizes
    assert sum(found) == pages
    assert min(found) >= 1
    if hosts > 10:
        assert max(found) <= 0.1 * pages
    if sizes == "uniform":
        assert max(found) - min(found) <= 1


def test_host_with_more_pages_than_names_is_refused() -> None:
    with pytest.raises(SettingsError, match="a host has at most 1073741824"):
        SimWeb(SimSettings(hosts=1, pages=2_000_000_000))
    web = SimWeb(SimSettings(hosts=1, pages=1_073_741_824))
    last = PagePlace(0, web.layout.folder_count(0) - 1, 1)
    assert web.layout.locate(0, web.layout.path_of(last)) == last


def test_heavy_sizes_are_uneven() -> None:
    sizes = sorted(SimWeb(SimSettings(hosts=200, pages=50_000)).layout.sizes)
    assert sum(sizes[-20:]) > 3 * sum(sizes[:20])


@pytest.mark.parametrize(
    ("hosts", "pages", "sizes"),
    [(50, 20_000, "heavy"), (12, 3000, "heavy"), (160, 42_240, "uniform"), (11, 2816, "heavy"), (90, 6746, "heavy")],
)
def test_topics_have_no_more_than_a_tenth_each(hosts: int, pages: int, sizes: str) -> None:
    web = SimWeb(SimSettings(hosts=hosts, pages=pages, sizes=sizes))
    topics = Counter(web.layout.folder(p.host, p.folder).topic for p in all_places(web))
    assert len(topics) >= min(12, hosts)
    assert max(topics.values()) <= 0.1 * sum(topics.values())


def test_series_are_long_and_mostly_unlinked() -> None:
    web = SimWeb(SimSettings())
    layout = web.layout
    folders = [layout.folder(h, i) for h in range(50) for i in range(layout.folder_count(h))]
    series = [f for f in folders if f.series]
    unlinked = sum(not layout.is_linked_member(f, n) for f in series for n in range(1, f.series + 1))
    assert sum(f.series for f in series) / len(series) >= 10
    assert all(any(layout.is_linked_member(f, n) for n in range(1, f.series + 1)) for f in series)
    assert unlinked > 0.5 * sum(f.series for f in series)
    assert any(f.hidden for f in folders)


def test_several_hosts_share_an_address_by_default(web: SimWeb) -> None:
    shared = Counter(web.layout.address_of(h) for h in range(12))
    assert len(shared) == 3
    assert all(address.startswith("127.") for address in shared)
