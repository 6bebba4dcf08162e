"""Crawls that are killed again and again, judged from outside: by the simulated web's truth and by its log.

A round is a crawl of a simulated web with a search index and small archive files. It is killed with `kill -9` (at
random moments, at named write points, and while it recovers from the kill before) and started again, then let
run to its end. After every kill the campaign reads what the collection had acknowledged and compares it with what it
had acknowledged at the kill before: no URL that was done may be open again, no committed byte of the archive may have
changed. At the end of a round everything is held against the truth, the log and the state's own promises. The last part
measures how soon a crawl of a million URLs that was killed asks for its first page.

Rounds that are done are remembered: the same command goes on where it was interrupted, by the same code.
"""

import hashlib
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

import proof
from lycosa.errors import LycosaError
from lycosa.frontier import UrlRow, UrlState
from lycosa.records import Family
from lycosa.simweb import AuditRules, LoggedRequest, SimSettings, SimWeb, audit, read_log, truth_of
from lycosa.store import CollectionStore, is_collection
from lycosa.store.collection import committed_lengths
from lycosa.store.warc_file import warc_path
from lycosa.store.warc_read import WarcReader
from proof import Bar, Experiment, Run
from proof.bench.start import first_request_s
from proof.ground.commands import run_command, scratch
from proof.ground.ledger import Ledger
from proof.ground.mortal import INDEX_COMMIT, PASSAGES, POINTS, RECOVERY, Life, LifeEnd
from proof.ground.servers import ServedWeb, simulated_web
from tests.crawl.consistency import problems

KILLS, QUICK_KILLS = 1_000, 12
ROUND_KILLS = 60  # or until the crawl is complete
HOSTS, PAGES, QUICK_PAGES = 40, 3_000, 900
DELAY_S = 0.02
WARC_BYTES = 150_000  # so that files are rotated
LONGEST_S = 300.0
NOT_PAGES = ("robots.txt", ".xml", ".gz")
EXPLAINED_S = 1.0  # a request that ended so long before a kill may not have been committed
URLS, QUICK_URLS = 1_000_000, 20_000
INDEXED = (INDEX_COMMIT, "text-log")
INDEX_SHARE = 0.15  # of the other lives: the process that writes the index takes longer to start than a life
KILLED = "kills"
RANDOM, AT_POINTS, IN_RECOVERY, MILLION = "random", "points", "recovery", "million"


class RoundResult(msgspec.Struct, frozen=True):
    """What one round showed: the kills by point, and for each promise what broke it."""

    kills: dict[str, int]
    lost: list[str] = []
    strange: list[str] = []
    undone: list[str] = []
    damaged: list[str] = []
    inconsistent: list[str] = []
    refetched: int = 0
    unexplained: list[str] = []
    impolite: list[str] = []
    wrong_ends: list[str] = []

    def wrongs(self) -> dict[str, list[str]]:
        return {name: getattr(self, field) for field, name in PROMISES.items()}


PROMISES = {
    "lost": "lost URLs",
    "strange": "pages that are not there",
    "undone": "acknowledged URLs that came undone",
    "damaged": "damaged records",
    "inconsistent": "promises of the state that do not hold",
    "unexplained": "refetches without a reason",
    "impolite": "politeness violations",
    "wrong_ends": "wrong ends",
}


class Acknowledged:
    """What a collection had acknowledged at the last kill; `look` compares it with what it acknowledges now."""

    def __init__(self, into: Path) -> None:
        self._into = into
        self._done: set[bytes] = set()
        self._archive: dict[int, tuple[int, bytes]] = {}
        self.undone: list[str] = []
        self.damaged: list[str] = []

    def look(self) -> None:
        if not is_collection(self._into):
            return
        with CollectionStore.open(self._into, read_only=True) as collection:
            rows = collection.state.walk(Family.URL)
            done = {key for key, row in rows if UrlRow.unpack(row).state is not UrlState.QUEUED}
            lengths = committed_lengths(collection.state)
        self.undone += [repr(key) for key in self._done - done]
        self._done = done
        for number, (length, digest) in self._archive.items():
            if lengths.get(number, 0) < length or self._digest(number, length) != digest:
                self.damaged.append(f"file {number}, its first {length} bytes")
        self._archive = {number: (length, self._digest(number, length)) for number, length in lengths.items()}

    def _digest(self, number: int, length: int) -> bytes:
        path = warc_path(self._into / "warc", number)
        with path.open("rb") as file:
            return hashlib.sha256(file.read(length)).digest()


class Kill(NamedTuple):
    """When a crawl ended by a kill, and when the server had read all that it had sent."""

    ended_s: float
    heard_s: float


class MortalCrawl:
    """A crawl of a served web that is killed and begun again."""

    def __init__(self, server: "subprocess.Popen[str]", web: ServedWeb, folder: Path, chance: random.Random) -> None:
        self._server, self._web, self._chance = server, web, chance
        self.into, self.said = folder / "crawl", folder / "said"
        options = ["--scope", "any", "--delay", str(DELAY_S), *web.options(), "--quiet"]
        self._words = ["crawl", web.front_page(), "--into", str(self.into), *options]
        self.kills: Counter[str] = Counter()
        self.killed_at: list[Kill] = []
        self.wrong_ends: list[str] = []

    def live(self, kind: str) -> LifeEnd:
        """One life, ended by a kill of this kind; it may be complete before."""
        point = ""
        if kind == AT_POINTS:
            point = self._chance.choice([name for name in POINTS if name not in RECOVERY])
        elif kind == IN_RECOVERY and self._chance.random() < 0.7:
            point = self._chance.choice(RECOVERY)
        nth = self._chance.randint(1, PASSAGES.get(point, 3))
        has_index = point in INDEXED or self._chance.random() < INDEX_SHARE
        words = [*self._words, "--index"] if has_index else [*self._words]
        words += ["--durability", "power" if point.startswith("fsync") else "process"]  # only one of them syncs
        pid = self._begin(Life(words=words, said=str(self.said), point=point, nth=nth))
        if not point:
            time.sleep(self._chance.uniform(0, 0.25 if kind == IN_RECOVERY else 0.9))
            with_kill = _kill(pid)
            end = self._end()
            return self._count(kind if with_kill else "", end)
        return self._count(point, self._end())

    def finish(self) -> LifeEnd:
        self._begin(Life(words=[*self._words, "--index"], said=str(self.said)))
        return self._count("", self._end())

    def _count(self, what: str, end: LifeEnd) -> LifeEnd:
        if end.code == -signal.SIGKILL and what:
            self.kills[what] += 1
            self._web.served()  # the server reads in turn, so that it has read all that the crawl had sent
            self.killed_at.append(Kill(end.ended_s, time.monotonic()))
        elif end.code:
            tail = self.said.read_text(errors="replace")[-300:] if self.said.exists() else ""
            self.wrong_ends.append(f"{what or 'no kill'}: exit code {end.code}: {tail}")
        return end

    def _begin(self, life: Life) -> int:
        assert self._server.stdin is not None
        self._server.stdin.write(msgspec.json.encode(life).decode() + "\n")
        self._server.stdin.flush()
        return int(self._answer())

    def _end(self) -> LifeEnd:
        return msgspec.json.decode(self._answer(), type=LifeEnd)

    def _answer(self) -> str:
        assert self._server.stdout is not None
        if not (line := self._server.stdout.readline()):
            raise LycosaError("the fork server has ended")
        return line


def _kill(pid: int) -> bool:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@contextmanager
def fork_server() -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "proof.ground.mortal"]
    paths = [str(Path(proof.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    env = os.environ | {"LYCOSA_WARC_BYTES": str(WARC_BYTES), "PYTHONPATH": os.pathsep.join(paths)}
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
    try:
        yield server
    finally:
        server.kill()
        server.communicate()


def round_of(seed: int, pages: int, most_kills: int, kinds: tuple[str, ...]) -> RoundResult:
    """Kills one crawl up to so many times, lets it end and judges it."""
    chance = random.Random(seed)
    with scratch() as folder:
        with simulated_web(folder / "log", *_shape(pages)) as web, fork_server() as server:
            crawl = MortalCrawl(server, web, folder, chance)
            acknowledged = Acknowledged(crawl.into)
            code = -signal.SIGKILL
            while code and crawl.kills.total() < most_kills and len(crawl.wrong_ends) < 3:
                code = crawl.live(chance.choice(kinds)).code
                acknowledged.look()
            if code:
                code = crawl.finish().code
                acknowledged.look()
        # The log is whole once its server has ended: the latest lines may wait to be written until then.
        return judged(crawl, acknowledged, list(read_log(web.log)[1]), _truth(pages, web))


def _shape(pages: int) -> list[str]:
    return ["--hosts", str(HOSTS), "--pages", str(pages)]


def _truth(pages: int, web: ServedWeb) -> SimWeb:
    return SimWeb(SimSettings(hosts=HOSTS, pages=pages, port=web.port))


def judged(crawl: MortalCrawl, acknowledged: Acknowledged, entries: list[LoggedRequest], web: SimWeb) -> RoundResult:
    got = [entry for entry in entries if entry.status == 200 and not entry.path.endswith(NOT_PAGES)]
    fetched = {f"http://{entry.host}:{web.settings.port}{entry.path}" for entry in got}
    wanted = truth_of(web, [f"http://h0.sim:{web.settings.port}/"], scope="any", mine="ancestors").pages
    broken = audit(web.settings, entries, AuditRules(delay_s=DELAY_S)).broken()
    return RoundResult(
        kills=dict(crawl.kills),
        lost=sorted((wanted - fetched) | (wanted - archived(crawl.into))),
        strange=sorted(fetched - wanted),
        undone=acknowledged.undone,
        damaged=acknowledged.damaged + damaged_records(crawl.into),
        inconsistent=problems(crawl.into, sampled=10),
        refetched=len(got) - len(fetched),
        unexplained=unexplained_refetches(got, crawl.killed_at),
        impolite=[str(finding) for finding in broken],
        wrong_ends=crawl.wrong_ends,
    )


def archived(into: Path) -> set[str]:
    """The URLs of the answers in the archive."""
    found: set[str] = set()
    for path in sorted((into / "warc").iterdir()):
        with WarcReader(path) as reader:
            found |= {record.url or "" for record in reader if record.type in ("response", "revisit")}
    return found


def damaged_records(into: Path) -> list[str]:
    """What a reader of the whole archive stumbles over."""
    found: list[str] = []
    for path in sorted((into / "warc").iterdir()):
        with WarcReader(path) as reader:
            for _ in reader:
                pass
        found += [f"{path.name}: {problem}" for problem in reader.problems]
    return found


def unexplained_refetches(got: list[LoggedRequest], kills: list[Kill]) -> list[str]:
    """URLs that were fetched again although no kill came while they were asked for, or within a second after that."""
    by_url: dict[str, list[LoggedRequest]] = defaultdict(list)
    for entry in sorted(got, key=lambda e: e.start):
        by_url[f"{entry.host}{entry.path}"].append(entry)
    return [
        url
        for url, fetches in by_url.items()
        for before, after in pairwise(fetches)
        if not any(
            before.start <= kill.heard_s and kill.ended_s - EXPLAINED_S < before.end and kill.ended_s <= after.start
            for kill in kills
        )
    ]


def recovery_s(urls: int, times: int) -> list[float]:
    """Seconds from the start of a crawl that was killed to its first request, less what it waited for a processor."""
    with scratch() as folder, socket.create_server(("127.0.0.1", 0)) as silent:
        silent.settimeout(60)
        run_command([sys.executable, "-m", "proof.ground.killed_collection", folder / "killed", str(urls)])
        took: list[float] = []
        for number in range(times):
            shutil.copytree(folder / "killed", folder / str(number))
            took.append(first_request_s(silent, folder / str(number)))
        return took


def measure(run: Run) -> None:
    wanted = run.runs if run.runs > 1 else QUICK_KILLS
    pages, round_kills = (QUICK_PAGES, QUICK_KILLS) if run.quick else (PAGES, ROUND_KILLS)
    kinds = tuple(kind for kind in run.chosen if kind != MILLION)
    run.setting("pages of a round", pages)
    ledger = Ledger("chaos", RoundResult, run.seed, pages, kinds)
    run.after_publishing(ledger.close)
    if ledger.parts:
        run.say(f"going on after {len(ledger.parts)} rounds")
    if kinds:
        with run.progress(wanted, "kills") as step:
            step.advance(_kills(ledger.parts))
            while (left := wanted - _kills(ledger.parts)) > 0:
                number = len(ledger.parts)
                done = round_of(run.seed * 10_000 + number, pages, min(left, round_kills), kinds)
                ledger.add(done)
                step.advance(sum(done.kills.values()))
                for promise, broken in done.wrongs().items():
                    if broken:
                        run.say(f"round {number}: {promise}: {broken[:3]}")
    _report(run, ledger.parts)
    if MILLION in run.chosen:
        urls = QUICK_URLS if run.quick else URLS
        run.setting("URLs of the large collection", urls)
        run.figure("recovery of the large collection", median(recovery_s(urls, 1 if run.quick else 3)), "s")
    else:
        run.leave_out("recovery of the large collection", "--only")


def _kills(rounds: list[RoundResult]) -> int:
    return sum(sum(each.kills.values()) for each in rounds)


def _report(run: Run, rounds: list[RoundResult]) -> None:
    if run.quick:
        run.figure("kills of a quick run", _kills(rounds))
        run.leave_out(KILLED, "a quick run")
    elif rounds:
        run.figure(KILLED, _kills(rounds))
    else:
        run.leave_out(KILLED, "--only")
    if not rounds:
        for promise in PROMISES.values():
            run.leave_out(promise, "--only")
        return
    run.figure("rounds", len(rounds))
    for field, promise in PROMISES.items():
        run.figure(promise, sum(len(getattr(each, field)) for each in rounds))
    run.figure("pages fetched again, all for a reason", sum(each.refetched for each in rounds))
    by_point: Counter[str] = Counter()
    for each in rounds:
        by_point.update(each.kills)
    run.table(["killed at", "kills"], by_point.most_common())


EXPERIMENT = Experiment(
    name="chaos",
    summary="crawls killed at random moments, at every write point and in recovery, judged from outside",
    run=measure,
    runs=KILLS,
    choices=(RANDOM, AT_POINTS, IN_RECOVERY, MILLION),
    bars=(
        Bar("long enough", KILLED, ">=", KILLS),
        *(Bar(promise, promise, "<=", 0) for promise in PROMISES.values()),
        Bar("recovery", "recovery of the large collection", "<=", 5.0),
    ),
)
