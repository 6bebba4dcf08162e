"""Who gets which host: every scheme, and Nutch's partitions, over a million host names and 2 to 64 agents (H1, H4).

Counted, not timed: the same seed gives the same numbers. The exchange is what agents would send each other while they
crawl with `rendezvous`: links to hosts as well known as they are large, packed by the code that a crawl packs with.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from lycosa.cluster.assignment import draw, keys_of, table
from lycosa.cluster.letters import HostArray, Integers
from lycosa.cluster.members import Member
from lycosa.cluster.packing import pack
from lycosa.frontier.crossing import Crossing
from lycosa.lab import Axis, Bar, Experiment, Line, Lines, Mark, Run
from lycosa.lab.host_names import Hosts, make_hosts
from lycosa.web.url import bucket_of

AGENTS = (2, 4, 8, 16, 32, 64)
HOSTS, QUICK_HOSTS = 1_000_000, 30_000
OURS, NUTCH = "rendezvous", "Nutch by host"
# What an agent does in a second of the exchange: pages it fetches, and links on each that lead to another site.
PAGES_A_SECOND, LINKS_AWAY = 100, 6
SECONDS = 5

Owners = Callable[[int], Integers]  # number of agents → owner of every host, one column an address


class Numbers(NamedTuple):
    """One scheme with one number of agents; shares in percent."""

    by_hosts: float
    by_pages: float
    sites: float
    hosts: float
    moved: float
    refetched: float


class Exchanged(NamedTuple):
    """What one mode of the exchange costs, a page."""

    messages: float
    bytes: float


def measure(run: Run) -> None:
    hosts = make_hosts(QUICK_HOSTS if run.quick else HOSTS, run.seed)
    run.setting("hosts", len(hosts.names))
    run.setting("sites", len(hosts.domains))
    run.setting("agents", ", ".join(map(str, AGENTS)))
    run.setting("pages an agent fetches in a second", PAGES_A_SECOND)
    schemes = _schemes(hosts)
    found: dict[tuple[str, int], Numbers] = {}
    with run.progress(len(AGENTS) * (len(schemes) + 1), "schemes") as step:
        for name, owners in schemes.items():
            for agents in AGENTS:
                found[name, agents] = _judge(hosts, owners(agents), owners(agents + 1))
                step.advance()
        exchanged = {}
        for agents in AGENTS:
            exchanged[agents] = _exchange(hosts, schemes[OURS](agents)[:, 0], agents, run.seed)
            step.advance()
    _report(run, list(schemes), found, exchanged)


def _members(agents: int) -> list[Member]:
    return [Member(f"agent-{number}", number) for number in range(agents)]


def _schemes(hosts: Hosts) -> dict[str, Owners]:
    """Name → owners. Nutch partitions by the hash of the host, the domain or the address, modulo their number."""
    names, domains = HostArray(hosts.names), HostArray(hosts.domains)
    letters, even, host_hash = names.letter_sums(), names.even_sums(), names.java_hashes()
    domain_hash = domains.java_hashes()[hosts.site]
    bucket = np.fromiter(map(bucket_of, hosts.domains), np.int64, len(hosts.domains))[hosts.site]
    address_keys = keys_of(hosts.addresses.reshape(-1))

    def by_address(agents: int) -> Integers:
        return draw(address_keys, _members(agents)).reshape(hosts.addresses.shape)

    def rendezvous(agents: int) -> Integers:
        return np.frombuffer(table(1, _members(agents)).owners, ">u2").astype(np.int64)[bucket][:, None]

    return {
        "letter-sum": lambda agents: (letters % agents)[:, None],
        "two-level": lambda agents: (even % agents)[:, None],
        "ip": by_address,
        OURS: rendezvous,
        NUTCH: lambda agents: (host_hash % agents)[:, None],
        "Nutch by domain": lambda agents: (domain_hash % agents)[:, None],
        "Nutch by IP": lambda agents: hosts.addresses % agents,
    }


def _judge(hosts: Hosts, owners: Integers, after: Integers) -> Numbers:
    """`after` are the owners when one more agent has joined."""
    first, agents = owners[:, 0], int(owners.max()) + 1
    fetched = np.bincount(first, weights=hosts.pages, minlength=agents)
    is_moved = (owners != after).any(axis=1)
    return Numbers(
        by_hosts=_variation(np.bincount(first, minlength=agents)),
        by_pages=_variation(fetched),
        sites=100 * _sites_of_several(hosts.site, owners, len(hosts.domains)),
        hosts=100 * float((owners != owners[:, :1]).any(axis=1).mean()),
        moved=100 * float(is_moved.mean()),
        # The agent joins when half of every host is fetched: that half is fetched again unless it is handed over.
        refetched=100 * float(hosts.pages[is_moved].sum() / hosts.pages.sum()) / 2,
    )


def _variation(parts: Any) -> float:
    return float(parts.std() / parts.mean())


def _sites_of_several(site: Integers, owners: Integers, sites: int) -> float:
    """The share of sites, among those of several hosts, that more than one agent asks."""
    least, most = np.full(sites, np.iinfo(np.int64).max), np.full(sites, -1)
    np.minimum.at(least, site, owners.min(axis=1))
    np.maximum.at(most, site, owners.max(axis=1))
    several = np.bincount(site, minlength=sites) > 1
    return float((least != most)[several].mean())


def _exchange(hosts: Hosts, owner: Integers, agents: int, seed: int) -> tuple[Exchanged, Exchanged]:
    """(direct, through the coordinator): an agent sends each other one a batch a second, or the coordinator one."""
    chance = np.random.default_rng(seed)
    known = np.sqrt(hosts.pages)  # a host of a hundred times the pages has ten times the links
    cumulated = np.cumsum(known / known.sum())
    messages = sent = relayed = relays = 0
    for sender in range(agents):
        for _ in range(SECONDS):
            to = np.searchsorted(cumulated, chance.random(PAGES_A_SECOND * LINKS_AWAY)).clip(max=len(owner) - 1)
            away = to[owner[to] != sender]
            for batch in _batches(away, owner):
                messages += 1
                sent += len(_packed(hosts, batch))
            relays += 1
            relayed += len(_packed(hosts, away))
    pages = agents * SECONDS * PAGES_A_SECOND
    # To the coordinator in one batch a second; from it to every agent what has come in for it, one batch a second.
    down = agents * SECONDS if agents > 1 else 0
    return Exchanged(messages / pages, sent / pages), Exchanged((relays + down) / pages, 2 * relayed / pages)


def _batches(away: Integers, owner: Integers) -> Iterator[Integers]:
    for receiver in np.unique(owner[away]):
        yield away[owner[away] == receiver]


def _packed(hosts: Hosts, to: Integers) -> bytes:
    return pack([Crossing(f"https://{hosts.names[host]}/articles/{host % 97}.html", 4) for host in set(to.tolist())])


def _report(
    run: Run,
    names: list[str],
    found: dict[tuple[str, int], Numbers],
    exchanged: dict[int, tuple[Exchanged, Exchanged]],
) -> None:
    run.table(
        [
            "scheme", "agents", "variation by hosts", "variation by pages", "sites of several agents %",
            "hosts of several agents %", "hosts moved by a join %", "pages fetched again without hand-over %",
        ],
        [(name, n, *(f"{value:.3g}" for value in found[name, n])) for name in names for n in AGENTS],
    )  # fmt: skip
    ours = [found[OURS, n] for n in AGENTS]
    run.figure("variation by hosts, 64 agents", found[OURS, 64].by_hosts)
    run.figure("variation by hosts, letter-sum, 64 agents", found["letter-sum", 64].by_hosts)
    run.figure("sites of several agents", max(one.sites for one in ours), "%")
    run.figure("sites of several agents, Nutch by host", max(found[NUTCH, n].sites for n in AGENTS), "%")
    run.figure("hosts of several agents", max(one.hosts for one in ours), "%")
    least = [100 / (n + 1) for n in AGENTS]
    run.figure("hosts moved beside the least", max(a.moved / b for a, b in zip(ours, least, strict=True)), "×")
    again = [found[NUTCH, n].refetched / found[OURS, n].refetched for n in AGENTS]
    run.figure("pages fetched again, Nutch by host beside ours", min(again), "×")
    for n in (2, 64):
        direct, relayed = exchanged[n]
        run.figure(f"direct: messages a page, {n} agents", direct.messages)
        run.figure(f"coordinator: messages a page, {n} agents", relayed.messages)
        run.figure(f"direct: bytes a page, {n} agents", direct.bytes, "bytes")
        run.figure(f"coordinator: bytes a page, {n} agents", relayed.bytes, "bytes")
    agents = Axis("agents", log=True)
    panels: list[tuple[str, Axis, Callable[[Numbers], float]]] = [
        ("Balance: variation over agents, by hosts", Axis("coefficient of variation"), lambda one: one.by_hosts),
        ("Sites asked by more than one agent", Axis("sites", "%"), lambda one: one.sites),
        ("Hosts that move when an agent joins", Axis("hosts", "%"), lambda one: one.moved),
    ]
    for title, axis, value in panels:
        lines = tuple(Line(name, AGENTS, [value(found[name, n]) for n in AGENTS]) for name in names)
        marks = (Mark(100, "all"),) if axis.unit else ()
        run.plot(Lines(title, agents, axis, lines, marks))
    modes = [("direct", 0), ("through the coordinator", 1)]
    lines = tuple(Line(name, AGENTS, [exchanged[n][mode].bytes for n in AGENTS]) for name, mode in modes)
    run.plot(Lines("The exchange: bytes on the wire a page", agents, Axis("bytes"), lines))
    lines = tuple(Line(name, AGENTS, [1000 * exchanged[n][mode].messages for n in AGENTS]) for name, mode in modes)
    run.plot(Lines("The exchange: messages for 1,000 pages", agents, Axis("messages"), lines))


EXPERIMENT = Experiment(
    name="assignment",
    summary="who owns which host: balance, sites asked by several agents, what moves when an agent joins",
    claim_id="H1, H4",
    claim="The parts are disjoint and even, and fewer pages are fetched by more than one crawler than with Nutch's.",
    bars=(
        Bar("a site has one agent", "sites of several agents", "<=", 0),
        Bar("a host has one agent", "hosts of several agents", "<=", 0),
        Bar("as even as may be", "variation by hosts, 64 agents", "<=", 0.15),
        Bar("little moves", "hosts moved beside the least", "<=", 1.3),
        Bar("fewer fetched twice than with Nutch", "pages fetched again, Nutch by host beside ours", ">=", 1),
    ),
    run=measure,
)
