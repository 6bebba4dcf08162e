"""A small crawler over the simulated web, without network or clock: breadth-first, one request a host and second.

It joins the parts as the engine does: guesses when a host has nothing else to do or every other turn, `plain` and `ask`
before a request, `learn` or `settle` and `note` after it. What it fetched is in the order of the requests.
"""

import heapq
from collections import defaultdict, deque
from collections.abc import Iterable
from itertools import count

import msgspec

from lycosa.crawl.reading import LinkRules, followed
from lycosa.learning.mining import Guess, GuessOutcome, Miner, MiningLevel
from lycosa.learning.parameters import QueryParameters
from lycosa.learning.traps import Judgement, PageSignature, PatternBudgets, TrapAction, fold, sight
from lycosa.simweb import SimWeb
from lycosa.simweb.truth import DEFAULT_TRUTH_LIMITS
from lycosa.web.document import Page
from lycosa.web.links import LinkKind
from lycosa.web.page import analyse_page
from lycosa.web.url import join_all

FOLLOWING = LinkRules(agent="lycosa")
Job = tuple[int, str, Guess | None]  # depth, path, guess


class Fetch(msgspec.Struct, frozen=True):
    host: int
    path: str
    status: int
    guess: Guess | None


class HostMind:
    """Everything that is kept of one host."""

    def __init__(self, mine: MiningLevel) -> None:
        self.miner, self.budgets, self.parameters = Miner(mine), PatternBudgets(), QueryParameters()
        self.queue: deque[Job] = deque()
        self.waiting: list[tuple[float, int, Job]] = []
        self.turns = 0


class SimCrawl:
    """A crawl of everything that is allowed, on the hosts of the seeds."""

    def __init__(
        self, web: SimWeb, *, mine: MiningLevel = MiningLevel.OFF, budgets: bool = False, most: int = 100_000
    ) -> None:
        self.web, self.has_budgets, self.most = web, budgets, most
        self.minds: dict[int, HostMind] = defaultdict(lambda: HostMind(mine))
        self.fetches: list[Fetch] = []
        self.known: dict[tuple[int, str], bool] = {}  # whether it is there, as far as one knows
        self.now = 0.0
        self._ticket = count()

    def run(self, hosts: Iterable[int]) -> "SimCrawl":
        for host in hosts:
            self.admit(host, 0, ["/"])
        while len(self.fetches) < self.most:
            turns = [self.turn(host, mind) for host, mind in self.minds.items()]
            dues = [mind.waiting[0][0] for mind in self.minds.values() if mind.waiting]
            if not any(turns) and not dues:
                break
            self.now = self.now + 1 if any(turns) else min(dues)
        return self

    def turn(self, host: int, mind: HostMind) -> bool:
        """One request to a host; False if it has none to make now."""
        while mind.waiting and mind.waiting[0][0] <= self.now:
            mind.queue.append(heapq.heappop(mind.waiting)[2])
        mind.turns += 1
        if mind.turns % 2 and mind.queue:
            self.propose(host, mind.miner.guesses(1))
        while not mind.queue and (guesses := mind.miner.guesses(4)):
            self.propose(host, guesses)
        while mind.queue:
            job = mind.queue.popleft()
            if self.may_go(host, mind, job):
                self.fetch(host, *job)
                return True
            if job[2]:
                mind.miner.settle(job[1], GuessOutcome.BARRED)
        return False

    def propose(self, host: int, guesses: list[Guess]) -> None:
        for guess in guesses:
            place = host, guess.path
            if place in self.known or not self.allows(host, guess.path):
                self.minds[host].miner.settle(
                    guess.path, GuessOutcome.KNOWN if self.known.get(place) else GuessOutcome.BARRED
                )
            else:
                self.known[place] = True
                self.minds[host].queue.appendleft((0, guess.path, guess))

    def may_go(self, host: int, mind: HostMind, job: Job) -> bool:
        if not self.has_budgets:
            return True
        plain = mind.parameters.plain(job[1])
        if (plain != job[1] and (host, plain) in self.known) or mind.parameters.was_fetched(plain):
            return False
        verdict = mind.budgets.ask(job[1], self.now)
        if verdict.do is TrapAction.WAIT and job[2] is None:  # a guess into a slowed family is not worth a wait
            heapq.heappush(mind.waiting, (self.now + verdict.wait_s, next(self._ticket), job))
        elif verdict.do is TrapAction.GO:
            self.known.setdefault((host, plain), True)
        return verdict.do is TrapAction.GO

    def allows(self, host: int, path: str) -> bool:
        return DEFAULT_TRUTH_LIMITS.allow(self.web.linker.origin(host) + path, path)

    def admit(self, host: int, depth: int, paths: Iterable[str]) -> list[str]:
        """Queues what is new; returns it."""
        new = [path for path in paths if (host, path) not in self.known and self.allows(host, path)]
        for path in new:
            self.known[host, path] = True
            self.minds[host].queue.append((depth, path, None))
        return new

    def fetch(self, host: int, depth: int, path: str, guess: Guess | None) -> None:
        mind, origin = self.minds[host], self.web.linker.origin(host)
        answer = self.web.answer(host, path)
        page = analyse_page(answer.body, url=origin + path, content_type=answer.content_type)
        is_page = answer.status == 200
        hrefs = followed(page, FOLLOWING).hrefs if is_page else [dict(answer.headers).get("Location", "")]
        own = [url[len(origin) :] for url in join_all(origin + path, hrefs) if url.startswith(origin + "/")]
        new = self.admit(host, depth + is_page, own)
        self.known[host, path] = answer.status < 400
        pattern = fold(path)
        seen = see(page, depth, sum(mind.budgets.counts(link, pattern) for link in new))
        judgement = mind.budgets.note(path, seen, self.now) if is_page else Judgement.DULL
        if guess:
            mind.miner.settle(path, GuessOutcome.HIT if judgement is Judgement.GOOD else GuessOutcome.MISS)
        elif is_page:
            mind.miner.learn(path)
        if is_page:
            mind.parameters.note(path, seen.text)
        self.fetches.append(Fetch(host, path, answer.status, guess))


def see(page: Page, depth: int, fresh: int) -> PageSignature:
    links = page.links
    images = " ".join(href for href, kind in zip(links.hrefs, links.kinds, strict=True) if kind == LinkKind.IMG)
    return sight(
        text=page.text_utf8,
        images=images,
        structure=page.structure_first,
        digest=page.digest,
        depth=depth,
        fresh=fresh,
    )
