"""The frontier decides what is fetched next: which URLs are known and queued, whose turn it is, how long hosts wait.

`Frontier` is its face: URLs come in, leases go out, outcomes come back. It reads committed rows through `Rows`, writes
into the open batch, takes the time as an argument, and does no other I/O. Whoever wants a say in what is fetched is a
`FrontierHook`; whoever learns something of a host tells its `Host`; the order is a `Policy`, and `frontier.policy` says
how to add one. Rows and counters of this room are changed in it and nowhere else.
"""

from lycosa.frontier.forwarding import ForwardedUrl, UrlForwarder
from lycosa.frontier.frontier import Frontier, FrontierStats
from lycosa.frontier.hosts import Host, HostJob, HostPlace
from lycosa.frontier.lease import Lease
from lycosa.frontier.policy import BREADTH, WALKS, HeadReader, LinkCounter, LinkSource, Policy, Ranking, parse_policy
from lycosa.frontier.politeness import HostGroup, HostGroups, PageLimits, Politeness, ProcessStart, delay_of
from lycosa.frontier.rankings import InternalFirst, PValue, Rank, Relevance
from lycosa.frontier.recent_urls import RecentUrls
from lycosa.frontier.rows import (
    KEY_END,
    MOST_BANDS,
    HostRow,
    Origin,
    QueueEntry,
    Reason,
    RequestKind,
    UrlCounts,
    UrlRow,
    UrlState,
    pack_host,
    pack_requisite_hops,
    requisite_hops,
    retry_range,
    state_of,
    unpack_host,
)
from lycosa.frontier.scheduler import FrontierHook

__all__ = [
    "BREADTH",
    "KEY_END",
    "MOST_BANDS",
    "WALKS",
    "ForwardedUrl",
    "Frontier",
    "FrontierHook",
    "FrontierStats",
    "HeadReader",
    "Host",
    "HostGroup",
    "HostGroups",
    "HostJob",
    "HostPlace",
    "HostRow",
    "InternalFirst",
    "Lease",
    "LinkCounter",
    "LinkSource",
    "Origin",
    "PValue",
    "PageLimits",
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
    "UrlCounts",
    "UrlForwarder",
    "UrlRow",
    "UrlState",
    "delay_of",
    "pack_host",
    "pack_requisite_hops",
    "parse_policy",
    "requisite_hops",
    "retry_range",
    "state_of",
    "unpack_host",
]
