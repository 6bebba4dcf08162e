"""The notifier puts changes into the outbox, and delivers them to every target beside the crawl.

A change enters the outbox in the commit that records it. Each target has a task that sends what waits, a batch at a
time and in order, retries with growing pauses, and notes what was acknowledged. So a change reaches a target at least
once, and is never sent again after it was acknowledged; whoever is killed between the two is told twice, with the same
id. A target that does not answer holds up neither the crawl nor the others. When the crawl is over each target has one
more try; what is left is told by the next run.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from lycosa.crawl import CommitParticipant, RunCompanion, Shard
from lycosa.errors import StoreError
from lycosa.notify.message import notice_id, pieces_between
from lycosa.notify.outbox import Notice, NoticeOutbox
from lycosa.recrawl import ChangeKind, PageChange
from lycosa.settings import WatchRule, read_rule
from lycosa.web import UrlPatterns, matches_pattern, parse_url, pattern_pieces

BATCH_MOST = 50  # changes of one message: with their excerpts less than half a megabyte
GATHER_S = 1.0  # a change waits so long for others to be told with it
SEND_S = 60.0  # a target that takes longer has failed
FIRST_RETRY_S, LONGEST_RETRY_S = 5.0, 3600.0
FINISH_S, HURRIED_S = 60.0, 1.0  # that the end of a crawl waits for targets which still take something


class NotDelivered(Exception):
    """A target has not acknowledged a message; the reason names no secret."""


class Target(Protocol):
    """Whom changes are told to. `id` begins with the kind; `name` is for people and has no secret in it."""

    id: str
    name: str

    async def send(self, notices: Sequence[Notice]) -> None:
        """Returns when the target has acknowledged the changes; raises NotDelivered."""
        ...


class _TellWhen(NamedTuple):
    """A rule of the setting `tell`, ready to be asked."""

    rule: WatchRule
    urls: UrlPatterns | None
    pieces: tuple[str, ...]

    @classmethod
    def of(cls, entry: str) -> "_TellWhen":
        rule = read_rule(entry)
        return cls(rule, UrlPatterns((rule.where,)) if rule.where else None, pattern_pieces(f"*{rule.value.lower()}*"))

    def has_text(self, texts: Sequence[str]) -> bool:
        return matches_pattern(self.pieces, " ".join(texts).lower(), to_end=True)


class Notifier(CommitParticipant, RunCompanion):
    """Tells `targets` of the changes of one shard."""

    def __init__(self, shard: Shard, targets: Sequence[Target]) -> None:
        self._shard, self._targets = shard, targets
        self._outbox = NoticeOutbox(shard.collection.state, [target.id for target in targets])
        self._rules = [_TellWhen.of(entry) for entry in shard.settings.tell]
        self._news = {target.id: asyncio.Event() for target in targets}
        self._closing = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._why: dict[str, str] = {}
        self._has_new = False

    def __repr__(self) -> str:
        return f"<Notifier {', '.join(target.name for target in self._targets)} {self._outbox!r}>"

    # the crawl's side

    def take(self, change: PageChange) -> None:
        """Puts a change into the outbox, in the open commit, if it is to be told."""
        texts: tuple[Sequence[str], Sequence[str]] | None = None

        def read() -> tuple[Sequence[str], Sequence[str]]:
            nonlocal texts
            texts = texts or change.texts()
            return texts

        if self._rules and not self._is_wanted(change.url, read):
            return
        verdict = change.verdict
        added, removed = ((), ()) if verdict.kind is ChangeKind.NEW else pieces_between(*read())
        notice = Notice(
            id=notice_id(change.url, change.at_s),
            url=change.url,
            at_s=change.at_s,
            word=verdict.word,
            kind=verdict.kind,
            also=tuple(verdict.also),
            where=verdict.where,
            size=verdict.size,
            title=change.title,
            status=change.status,
            added=added,
            removed=removed,
        )
        self._outbox.append(self._shard.committer.batch, notice)
        self._has_new = True

    def _is_wanted(self, url: str, read: Callable[[], tuple[Sequence[str], Sequence[str]]]) -> bool:
        parsed = parse_url(url)
        for when in self._rules:
            if when.urls is not None and (parsed is None or not when.urls.match(parsed)):
                continue
            if not when.rule.kind:
                return True
            before, after = read()
            if when.rule.kind == "disappears":
                before, after = after, before
            if when.has_text(after) and not when.has_text(before):
                return True
        return False

    def on_committed(self) -> None:
        if self._has_new:
            self._has_new = False
            for event in self._news.values():
                event.set()

    # the targets' side

    def begin(self) -> None:
        self._tasks = [asyncio.get_running_loop().create_task(self._serve(target)) for target in self._targets]

    async def _serve(self, target: Target) -> None:
        news, fails = self._news[target.id], 0
        while True:
            news.clear()
            if not self._outbox.pending(target.id, 1):
                if self._closing.is_set():
                    return
                await self._until_closing(None, news)
                if not fails:
                    await self._until_closing(GATHER_S)
                continue
            is_last = self._closing.is_set()
            reason = await self._send(target, self._outbox.pending(target.id, BATCH_MOST))
            if not reason:
                fails = 0
                continue
            fails += 1
            wait_s = min(FIRST_RETRY_S * 2 ** (fails - 1), LONGEST_RETRY_S) * (1 + self._shard.roll() / 4)
            waiting = self._outbox.waiting(target.id)
            self._log("not-told", to=target.name, reason=reason, waiting=waiting, fails=fails)
            if is_last:
                return
            await self._until_closing(wait_s)

    async def _send(self, target: Target, rows: list[tuple[int, Notice]]) -> str:
        """Sends a batch; returns why it was not acknowledged, or nothing."""
        try:
            await asyncio.wait_for(target.send([notice for _, notice in rows]), SEND_S)
        except TimeoutError:
            reason = f"no answer within {SEND_S:g} s"
        except NotDelivered as error:
            reason = str(error)
        except Exception as error:  # a mistake of a target must neither end the crawl nor lose what waits
            reason = f"{type(error).__name__}"
        else:
            self._why.pop(target.id, None)
            self._log("told", to=target.name, changes=len(rows))
            try:
                self._outbox.acknowledge(target.id, rows[-1][0])
            except StoreError as error:
                self._log("not-told", to=target.name, reason=str(error))
            return ""
        self._why[target.id] = reason
        return reason

    def _log(self, event: str, **fields: object) -> None:
        """Writes an event at once: there need not be another commit."""
        self._shard.events.write(event, **fields)
        self._shard.events.flush()

    async def _until_closing(self, most_s: float | None, news: asyncio.Event | None = None) -> None:
        """Waits until the crawl is over, there is news, or so long."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._closing, news) if event is not None]
        try:
            await asyncio.wait(waits, timeout=most_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def finish(self, *, is_hurried: bool) -> None:
        self._closing.set()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=HURRIED_S if is_hurried else FINISH_S)
        self.close()

    def hurry(self) -> None:
        self.close()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()

    def leftover(self) -> str:
        left = [(target, waiting) for target in self._targets if (waiting := self._outbox.waiting(target.id))]
        words = ", ".join(f"{count} to {target.name} ({self._why.get(target.id, 'cut off')})" for target, count in left)
        return f"changes that are not told yet: {words}; the next run tells them" if words else ""
