"""What the experiments on tables rest on, and small runs of them."""

import io
from typing import Any

import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.layout import PagePlace
from lycosa.simweb.pages import DAY_S
from lycosa.tables.formats import Tol, parse_tol
from lycosa.web import analyse_page
from proof.experiment import ExperimentResult, perform
from proof.lab import tol as tol_experiment
from proof.lab import tvi as tvi_experiment
from proof.lab.tol import LINKS, LocalSite
from proof.lab.tvi import CountedLine, StoredPage, by_table, conditional
from proof.progress import ProgressSteps


def links_of(site: LocalSite, path: str) -> set[str]:
    return set(analyse_page(site.answer(0, path).body, url=site.front(), content_type="text/html").links.hrefs)


@pytest.mark.parametrize("window", [3, None])
def test_local_site_has_sixty_links_a_page_and_first_ones_near(window: int | None) -> None:
    site = LocalSite(seed=2, count=80, window=window)
    seen: set[str] = {"/"}
    for number in range(80):
        path = f"/p{number}.html" if number else "/"
        links = links_of(site, path)
        assert len(links) == LINKS
        assert path in seen
        new = {int(href[2:-5]) for href in links - seen if href.startswith("/p")}
        assert all(page > number and (window is None or page - number <= window) for page in new)
        seen |= links
    assert {f"/p{number}.html" for number in range(1, 80)} <= seen
    assert site.answer(0, "/p80.html").status == 404


def test_local_site_has_the_tables_of_its_pages() -> None:
    site = LocalSite(seed=2, count=10, window=2)
    for path, where in (("/", "/index.tol"), ("/p7.html", "/p7.tol")):
        table = parse_tol(site.answer(0, where).body)
        assert isinstance(table, Tol)
        assert set(table.links.hrefs) == links_of(site, path)


def test_visits_by_table_leave_the_truth_and_take_less() -> None:
    web = SimWeb(SimSettings(hosts=1, pages=300, tables=1.0))
    places = [PagePlace(0, folder, page) for folder in range(3) for page in range(1, 9)]
    marked = [place for place in places if web.pages.has_marked_volatile(place)]
    assert marked
    lines = {visit: CountedLine(web.answer) for visit in (conditional, by_table)}
    for place in marked:
        path = web.layout.path_of(place)
        for visit, line in lines.items():
            stored = StoredPage()
            for day in range(12):
                stored = visit(line, 0, path, day * DAY_S, stored)
                answer = web.answer(0, path, day * DAY_S)
                assert stored.body == (answer.body if answer.status == 200 else None)
    assert lines[by_table].bytes < lines[conditional].bytes


def small(experiment: Any) -> ExperimentResult:
    return perform(experiment, seed=3, quick=True, view=ProgressSteps(io.StringIO()))


@pytest.mark.slow
def test_tol_on_a_small_site_saves_time_and_misses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tol_experiment, "QUICK_PAGES", 60)
    monkeypatch.setattr(tol_experiment, "QUICK_SEEDS", 1)
    assert small(tol_experiment.EXPERIMENT).held


@pytest.mark.slow
def test_tvi_on_a_small_site_keeps_it_fresh_for_less(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tvi_experiment, "QUICK_PAGES", 40)
    assert small(tvi_experiment.EXPERIMENT).held
