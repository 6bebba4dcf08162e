"""The orders of a crawl, judged on the link graph of small simulated webs: the bars of `benchmarks.orders`, reduced."""

from functools import cache

import pytest

from benchmarks.orders import RANK_BAR, SHARE, TOPIC_BAR, Graph, InTurn, RankScores, TopicScores, exactly, first
from lycosa.simweb import SimSettings, SimWeb
from lycosa.simweb.vocabulary import TOPICS
from lycosa.web.relevance import Topic

pytestmark = pytest.mark.slow
TOPIC = 3


@cache
def graph(pages: int) -> Graph:
    return Graph(SimWeb(SimSettings(seed=1, hosts=20, pages=pages)))


def test_topic_order_with_hosts_in_turn_beats_breadth_first() -> None:
    web = graph(4_000)
    count = int(len(web) * SHARE)
    is_on = [web.topic(page) == TOPIC for page in range(len(web))]
    scores = TopicScores(web, Topic.of_words(" ".join(TOPICS[TOPIC])))
    found = sum(is_on[page] for page in first(InTurn(web, scores, slack=1), count))
    breadth = sum(is_on[:count])
    assert found >= min(TOPIC_BAR * breadth, 0.9 * sum(is_on))
    assert found > 1.5 * breadth


@pytest.mark.parametrize("slack", [0, 1, None])
def test_rank_order_has_most_of_what_the_best_order_would(slack: int | None) -> None:
    web = graph(8_000)
    count = int(len(web) * SHARE)
    ranks = web.ranks()
    best = sum(sorted(ranks, reverse=True)[:count])
    scores = RankScores(web)
    order = exactly(web, scores) if slack is None else InTurn(web, scores, slack=slack)
    share = ranks[first(order, count)].sum() / best
    assert share >= RANK_BAR
    assert share > ranks[:count].sum() / best


def test_every_order_visits_every_page_once() -> None:
    web = graph(8_000)
    order = list(InTurn(web, RankScores(web), slack=1))
    assert len(order) == len(set(order)) == len(web)
