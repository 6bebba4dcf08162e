"""What comes next: known URLs, host queues with a bounded front in memory, politeness per host and per address."""

from lycosa.frontier.frontier import Frontier, Ledger
from lycosa.frontier.host_cache import ProcessStart
from lycosa.frontier.hosts import Host, HostPlace, TimedLane, due_of
from lycosa.frontier.lease import ForwardedUrl, FrontierStats, Lease, Politeness, UrlForwarder
from lycosa.frontier.policy import LinkCounter, LinkSource, Policy, Ranking, Walk
from lycosa.frontier.politeness import HostGroup
from lycosa.frontier.rankings import BREADTH, PLAIN, WALKS, InternalFirst, PValue, Rank, Relevance
from lycosa.frontier.recent import RecentUrls
from lycosa.frontier.rows import (
    KEY_END,
    MOST_BANDS,
    RETRY_LANE,
    HostRow,
    Origin,
    QueueEntry,
    Reason,
    RequestKind,
    UrlRow,
    UrlState,
    state_of,
    unpack_host,
)

__all__ = [
    "BREADTH",
    "KEY_END",
    "MOST_BANDS",
    "PLAIN",
    "RETRY_LANE",
    "WALKS",
    "ForwardedUrl",
    "Frontier",
    "FrontierStats",
    "Host",
    "HostGroup",
    "HostPlace",
    "HostRow",
    "InternalFirst",
    "Lease",
    "Ledger",
    "LinkCounter",
    "LinkSource",
    "Origin",
    "PValue",
    "Policy",
    "Politeness",
    "ProcessStart",
    "QueueEntry",
    "Rank",
    "Ranking",
    "Reason",
    "RecentUrls",
    "Relevance",
    "RequestKind",
    "TimedLane",
    "UrlForwarder",
    "UrlRow",
    "UrlState",
    "Walk",
    "due_of",
    "state_of",
    "unpack_host",
]
