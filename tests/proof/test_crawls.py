"""What the experiments that crawl rest on: the known web, crawls measured against it, and a line shared fairly."""

import io
from pathlib import Path

import numpy as np
import pytest

from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.log import LoggedRequest
from proof.experiment import perform
from proof.ground.assigned_crawl import AssignedCrawl, crawl_by
from proof.lab import assignment, policies
from proof.lab.policies import KnownGround, KnownWeb
from proof.lab.tarantula import Race, judged, lycosa_command, race_of
from proof.progress import ProgressSteps


def test_known_web_ranks_all_reachable_pages_and_knows_their_topics() -> None:
    web = SimWeb(SimSettings(seed=1, hosts=4, pages=200))
    known = KnownWeb(web)
    assert known.ranks.sum() == pytest.approx(1)
    assert known.best_masses()[-1] == pytest.approx(1)
    assert (np.diff(known.best_masses()) >= 0).all()
    assert known.number(known.pages[3]) == 3
    assert known.number(known.seeds[0] + "nothing-here.html") is None
    assert known.topic_of(known.seeds[0]) == web.layout.topic_of(0, 0)


def test_crawl_of_a_known_web_to_its_end_has_all_its_rank() -> None:
    ground = KnownGround(1, hosts=4, pages=200)
    done = ground.crawl("breadth", mine="off")
    assert done.mass[-1] == pytest.approx(1)
    assert done.on_topic[-1] == ground.on_topic_pages()
    assert done.crawled.is_polite
    assert done.at(ground.fifth).pages >= ground.fifth
    assert done.at(ground.fifth).time_s <= done.crawled.seconds


@pytest.mark.slow
def test_topic_pages_that_a_sitemap_named_first_are_still_found_early() -> None:
    """All pages on the topic are on one host, and the first that names them says nothing of what they are about."""
    ground = KnownGround(1, hosts=20, pages=2_500)
    found = {policy: ground.crawl(policy, pages=ground.fifth).on_topic[-1] for policy in ("topic", "breadth")}
    assert found["topic"] >= 4 * found["breadth"]


@pytest.mark.slow
def test_policies_on_a_small_web_reports_every_policy_and_way_of_mining(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policies, "QUICK", policies.WebSize(hosts=4, pages=250, webs=1))
    result = perform(policies.EXPERIMENT, seed=1, quick=True, view=ProgressSteps(io.StringIO()))
    rows = {(row[0], row[1]): row for row in result.findings.tables[0].rows}
    assert set(rows) == {(policy, "ancestors") for policy in policies.POLICIES} | {
        ("breadth", "off"),
        ("breadth", "all"),
    }
    assert {row[-1] for row in rows.values()} == {"clean"}
    assert rows["breadth", "all"][6] > rows["breadth", "ancestors"][6] >= rows["breadth", "off"][6]
    held = {verdict.bar.name: verdict.held for verdict in result.verdicts}
    assert held["polite under every policy"]
    assert held["mining finds"]


def test_race_is_judged_by_what_came_in_its_time() -> None:
    settings = SimSettings(seed=1, hosts=2, pages=80, line_bytes_s=1_000)
    race = Race(settings, seconds=10, transfers=1)
    ends = {
        "/robots.txt": (0.0, 1.0, 1_000),
        "/": (2.0, 4.0, 2_000),
        "/nothing": (5.0, 5.5, 500),
        "/late": (9.0, 11.0, 0),
    }
    entries = [
        LoggedRequest(
            start=start,
            end=end,
            host="h0.sim",
            address="127.1.0.1",
            path=path,
            status=404 if path == "/nothing" else 200,
            bytes=size,
            agent="lycosa",
            method="GET",
            retry_after_s=0.0,
        )
        for path, (start, end, size) in ends.items()
    ]
    ran = judged(race, settings, entries)
    assert ran.document_ends == [4.0]
    assert ran.requests == 3
    assert ran.found[0] > 10  # the links of the front page
    assert sum(ran.line_use) / len(ran.line_use) == pytest.approx(3_500 / 10_000)
    assert ran.line_use[0] == pytest.approx(1)


@pytest.mark.slow
def test_race_of_a_real_crawl_keeps_to_the_line_and_to_the_rules() -> None:
    race = Race(SimSettings(seed=1, hosts=10, pages=400, line_bytes_s=50_000), seconds=5, transfers=4)
    ran = race_of(race, lycosa_command(race, 'mine = "off"'), lambda: None)
    assert ran.documents > 2
    assert ran.broken == 0
    assert 0.2 < sum(ran.line_use) / len(ran.line_use) < 1.1


@pytest.mark.slow
def test_crawlers_that_forget_at_a_join_what_others_know_fetch_it_again_and_ours_do_not(tmp_path: Path) -> None:
    web = SimWeb(SimSettings(seed=1, hosts=9, pages=60, sites=3))
    ways = {way.name: way for way in assignment._ways(web)}
    joined = {
        name: crawl_by(ways[name], web, tmp_path / name, crawlers=3, joins=True, seed=1)
        for name in ("letter-sum", "Nutch by host", "rendezvous")
    }
    assert [one.missed for one in joined.values()] == [0, 0, 0]
    assert [one.pages_twice > 0 for one in joined.values()] == [True, False, False]
    assert joined["Nutch by host"].pages_of_shared_hosts > joined["rendezvous"].pages_of_shared_hosts
    assert joined["rendezvous"].is_polite


def test_assignment_says_where_the_claim_of_the_paper_does_not_hold() -> None:
    def outcome(twice: float, shared: float) -> AssignedCrawl:
        return AssignedCrawl(twice, shared, 0, 0, 0, 0, 0, is_polite=True)

    found = {(name, joins): outcome(0, 60) for name in assignment.NUTCH for joins in (False, True)}
    found |= {("letter-sum", False): outcome(0, 0), ("letter-sum", True): outcome(40, 80)}
    without, with_join = assignment._verdict(found).split(" With a join ")
    assert "does not hold (they are equal)" in without
    assert without.endswith("so by websites it holds.")
    assert with_join.count("does not hold") == 2
