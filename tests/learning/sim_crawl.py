"""A small crawler over the simulated web, without network or clock: breadth-first, one request a host and second.

It joins the parts as a crawl does: guesses when a host has nothing else to do or every other turn, `plain` and `ask`
before a request, `learn` or `record_outcome` and `note` after it. What it fetched is in the order of the requests.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import count

import msgspec

from lycosa.crawl.reading import followed_links
from lycosa.learning.mining import HostProfile, MiningLevel, ancestors
from lycosa.learning.series import GuessOutcome
from lycosa.learning.traps import DROPPED, Judgement, PageSignature, path_pattern, sign_page
from lycosa.simweb import SimWeb
from lycosa.simweb.truth import DEFAULT_TRUTH_LIMITS
from lycosa.web import LinkKind, Page, analyse_page
from lycosa.web.url import LinkRules, join_map

FOLLOWING = LinkRules(agent="lycosa")
Job = tuple[int, str, bool]  # depth, path, whether it is a guess


class Fetch(msgspec.Struct, frozen=True):
    host: int
    path: str
    status: int
    is_guess: bool


class SimHost(HostProfile):
    """Everything that is kept of one host."""

    def __init__(self) -> None:
        super().__init__()
        self.queue: deque[Job] = deque()
        self.waiting: list[tuple[float, int, Job]] = []
        self.turns = 0


class SimCrawl:
    """A crawl of everything that is allowed, on the hosts of the seeds."""

    def __init__(
        self, web: SimWeb, *, mine: MiningLevel = MiningLevel.OFF, budgets: bool = False, most: int = 100_000
    ) -> None:
        self.web, self.mine, self.has_budgets, self.most = web, mine, budgets, most
        self.hosts: dict[int, SimHost] = defaultdict(SimHost)
        self.fetches: list[Fetch] = []
        self.known: dict[tuple[int, str], bool] = {}  # whether it is there, as far as one knows
        self.now = 0.0
        self._ticket = count()

    def run(self, hosts: Iterable[int]) -> "SimCrawl":
        for host in hosts:
            self.admit(host, 0, ["/"])
        while len(self.fetches) < self.most:
            turns = [self.turn(host, sim) for host, sim in self.hosts.items()]
            dues = [sim.waiting[0][0] for sim in self.hosts.values() if sim.waiting]
            if not any(turns) and not dues:
                break
            self.now = self.now + 1 if any(turns) else min(dues)
        return self

    def turn(self, host: int, sim: SimHost) -> bool:
        """One request to a host; False if it has none to make now."""
        while sim.waiting and sim.waiting[0][0] <= self.now:
            sim.queue.append(heapq.heappop(sim.waiting)[2])
        sim.turns += 1
        if sim.turns % 2 and sim.queue:
            self.propose(host, sim.miner.guesses(1))
        while not sim.queue and (guesses := sim.miner.guesses(4)):
            self.propose(host, guesses)
        while sim.queue:
            job = sim.queue.popleft()
            if self.may_go(host, sim, job):
                self.fetch(host, *job)
                return True
            if job[2]:
                sim.miner.record_outcome(job[1], GuessOutcome.BARRED)
        return False

    def propose(self, host: int, paths: Iterable[str]) -> None:
        for path in paths:
            place = host, path
            if place in self.known or not self.allows(host, path):
                self.hosts[host].miner.record_outcome(
                    path, GuessOutcome.KNOWN if self.known.get(place) else GuessOutcome.BARRED
                )
            else:
                self.known[place] = True
                self.hosts[host].queue.appendleft((0, path, True))

    def may_go(self, host: int, sim: SimHost, job: Job) -> bool:
        if not self.has_budgets:
            return True
        plain = sim.parameters.plain(job[1])
        if (plain != job[1] and (host, plain) in self.known) or sim.parameters.was_fetched(plain):
            return False
        wait_s = sim.budgets.claim(job[1], self.now)
        if 0 < wait_s < DROPPED and not job[2]:  # a guess into a slowed family is not worth a wait
            heapq.heappush(sim.waiting, (self.now + wait_s, next(self._ticket), job))
        elif not wait_s:
            self.known.setdefault((host, plain), True)
        return not wait_s

    def allows(self, host: int, path: str) -> bool:
        return DEFAULT_TRUTH_LIMITS.allow(self.web.linker.origin(host) + path, path)

    def admit(self, host: int, depth: int, paths: Iterable[str]) -> list[str]:
        """Queues what is new; returns it."""
        new = [path for path in paths if (host, path) not in self.known and self.allows(host, path)]
        for path in new:
            self.known[host, path] = True
            self.hosts[host].queue.append((depth, path, False))
        return new

    def fetch(self, host: int, depth: int, path: str, is_guess: bool) -> None:
        sim, origin = self.hosts[host], self.web.linker.origin(host)
        answer = self.web.answer(host, path)
        page = analyse_page(answer.body, url=origin + path, content_type=answer.content_type)
        is_page = answer.status == 200
        hrefs = (
            followed_links(page, FOLLOWING, origin + path).hrefs
            if is_page
            else [dict(answer.headers).get("Location", "")]
        )
        own = [
            url[len(origin) :]
            for url in dict.fromkeys(join_map(origin + path, hrefs).values())
            if url.startswith(origin + "/")
        ]
        new = self.admit(host, depth + is_page, own)
        self.known[host, path] = answer.status < 400
        pattern = path_pattern(path)
        seen = see(page, depth, sum(sim.budgets.counts(link, pattern) for link in new))
        judgement = sim.budgets.note(path, seen, self.now) if is_page else Judgement.DULL
        if is_guess:
            sim.miner.record_outcome(path, GuessOutcome.HIT if judgement is Judgement.GOOD else GuessOutcome.MISS)
        elif is_page and self.mine is MiningLevel.ALL:
            sim.miner.learn(path)
        if is_page and self.mine is not MiningLevel.OFF:
            self.propose(host, ancestors(path))
        if is_page:
            sim.parameters.note(path, seen.text)
        self.fetches.append(Fetch(host, path, answer.status, is_guess))


def see(page: Page, depth: int, fresh: int) -> PageSignature:
    links = page.links
    images = " ".join(href for href, kind in zip(links.hrefs, links.kinds, strict=True) if kind == LinkKind.IMG)
    return sign_page(
        text=page.text_utf8,
        images=images,
        structure=page.structure_first,
        digest=page.digest,
        depth=depth,
        fresh=fresh,
    )
