"""The exchange loses no URL, whatever is killed, restored from an older copy, dropped, doubled or answered late."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lycosa.cluster.assignment import AssignmentTable, Member, build_table
from lycosa.cluster.exchange import UrlInbox
from lycosa.cluster.outbox import Message, Reply, ReplyCode, UrlOutbox
from lycosa.frontier.forwarding import ForwardedUrl
from lycosa.records import Family
from lycosa.store import Batch
from lycosa.web.url import split_url
from tests.cluster.memory_state import MemoryState

PAGES, LINKS = 60, 5


def members(*names: str) -> list[Member]:
    return [Member(name, number) for number, name in enumerate(names)]


class Shard:
    """A shard without a crawl: pages are done in commits, their links are known here or leave through the outbox."""

    def __init__(self, name: str, state: MemoryState, incarnation: int, owners: AssignmentTable) -> None:
        self.name, self.state, self.incarnation = name, state, incarnation
        self.outbox = UrlOutbox(state, name, incarnation, owners)  # type: ignore[arg-type]
        self.inbox = UrlInbox(state)  # type: ignore[arg-type]
        self.inbox.wait_for_checkpoints()
        self.batch = Batch()

    def know(self, href: str) -> None:
        self.batch.put(Family.URL, href.encode(), b"")

    def find(self, page: str, links: Iterable[str]) -> None:
        self.batch.put(Family.PAGE, page.encode(), b"")
        for link in links:
            if self.outbox.owns(split_url(link).host):
                self.know(link)
            else:
                self.outbox.send([ForwardedUrl(link)])

    def take(self, message: Message) -> Reply | None:
        if message.epoch != self.outbox.table.epoch:
            return self.inbox.reply(message.sender, ReplyCode.EPOCH)
        crossings = self.inbox.new_items(message)
        if crossings is None:
            return self.inbox.reply(message.sender, ReplyCode.GAP)
        for crossing in crossings:
            if self.outbox.owns(split_url(crossing.href).host):
                self.know(crossing.href)
            else:
                self.outbox.send([crossing])
        self.inbox.record(message)
        return None  # the answer comes with the commit

    def commit(self) -> None:
        self.outbox.write(self.batch)
        self.inbox.write(self.batch)
        self.state.write(self.batch)
        self.batch = Batch()
        self.outbox.on_committed()
        self.inbox.on_committed()

    def knows(self) -> set[str]:
        return {key.decode() for key, _ in self.state.walk(Family.URL)}

    def pages(self) -> set[str]:
        return {key.decode() for key, _ in self.state.walk(Family.PAGE)}


class Cluster:
    """Three shards, and everything that can go wrong between them."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.table = build_table(1, members("a", "b", "c"))
        self.incarnation = 3
        names = ("a", "b", "c")
        self.shards = {name: Shard(name, MemoryState(), i + 1, self.table) for i, name in enumerate(names)}
        self.copies = {name: MemoryState() for name in names}
        hosts = [f"h{number}.example{number}.org" for number in range(12)]
        self.links = {
            f"https://{chance.choice(hosts)}/page{number}": [
                f"https://{chance.choice(hosts)}/{chance.randrange(200)}" for _ in range(LINKS)
            ]
            for number in range(PAGES)
        }

    def fetch(self, some: int) -> None:
        """Pages that are not done are fetched by their owner."""
        for page in self.chance.sample(sorted(self.links), some):
            shard = self.shards[self.table.owner(split_url(page).host)]
            if page not in shard.pages():
                shard.find(page, self.links[page])

    def exchange(self, shard: Shard, *, trouble: float) -> None:
        for receiver in shard.outbox.receivers():
            message = shard.outbox.next_message(receiver)
            if message is None or self.chance.random() < trouble:
                continue
            other = self.shards[receiver]
            reply = other.take(message)
            if self.chance.random() < trouble:
                other.take(message)  # it came twice
            if reply is None:
                if self.chance.random() < trouble:
                    continue  # the answer is lost, or the receiver dies before its commit
                other.commit()
                reply = other.inbox.reply(shard.name, ReplyCode.TAKEN)
            shard.outbox.on_reply(receiver, message, reply)

    def restart(self, name: str, state: MemoryState) -> None:
        """A shard begins anew from a state; its incarnation was never used before, and the others hear of it."""
        self.incarnation += 1
        self.shards[name] = Shard(name, state, self.incarnation, self.table)
        for other in self.shards.values():
            other.outbox.on_receiver_restarted(name)

    def checkpoint(self, name: str) -> None:
        shard = self.shards[name]
        positions = shard.inbox.positions()
        self.copies[name] = shard.state.copy()
        shard.inbox.cover(positions)

    def step(self) -> None:
        name = self.chance.choice("abc")
        shard = self.shards[name]
        what = self.chance.random()
        if what < 0.35:
            self.fetch(3)
        elif what < 0.55:
            shard.commit()
        elif what < 0.80:
            self.exchange(shard, trouble=0.2)
        elif what < 0.88:
            self.checkpoint(name)
        elif what < 0.95:
            self.restart(name, shard.state)  # killed: what was not committed is gone
        else:
            self.restart(name, self.copies[name].copy())  # its machine is gone

    def settle(self) -> None:
        """Everything goes well from here on."""
        for _ in range(30):
            self.fetch(PAGES)
            for shard in self.shards.values():
                shard.commit()
                self.exchange(shard, trouble=0)

    def assert_whole(self) -> None:
        wanted = {link for links in self.links.values() for link in links}
        known = {name: shard.knows() for name, shard in self.shards.items()}
        assert set().union(*known.values()) == wanted
        for name, urls in known.items():
            assert {self.table.owner(split_url(url).host) for url in urls} <= {name}
        assert all(not shard.outbox.unsent for shard in self.shards.values())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_no_url_is_lost_whoever_dies_or_rolls_back(seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    for _ in range(120):
        cluster.step()
    cluster.settle()
    cluster.assert_whole()


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32))
def test_rows_are_forgotten_once_a_checkpoint_covers_them(seed: int) -> None:
    cluster = Cluster(random.Random(seed))
    for _ in range(60):
        cluster.step()
    cluster.settle()
    for name in "abc":
        cluster.checkpoint(name)
    for shard in cluster.shards.values():  # one more URL for everyone brings the news
        shard.find(f"https://{shard.name}/", [f"https://news{number}.example/{shard.name}" for number in range(40)])
        shard.commit()
        cluster.exchange(shard, trouble=0)
        shard.commit()
    assert all(shard.outbox.uncovered <= 2 for shard in cluster.shards.values())


def test_number_used_again_for_other_urls_would_lose_them() -> None:
    """Why the incarnation must never be given twice: a sender restored from before its rows, with the old number."""
    owners = build_table(1, members("a", "b"))
    link = next(f"https://x{n}.org/" for n in range(50) if owners.owner(f"x{n}.org") == "b")
    receiver = Shard("b", MemoryState(), 2, owners)

    def send(incarnation: int, href: str) -> None:
        sender = Shard("a", MemoryState(), incarnation, owners)
        sender.find("https://page/", [href])
        sender.commit()
        message = sender.outbox.next_message("b")
        assert message is not None
        receiver.take(message)
        receiver.commit()

    send(1, link)
    send(1, link + "lost")
    assert receiver.knows() == {link}
    send(3, link + "kept")
    assert receiver.knows() == {link, link + "kept"}


def test_message_after_rows_that_never_came_is_refused() -> None:
    owners = build_table(1, members("a", "b"))
    receiver = Shard("b", MemoryState(), 2, owners)
    reply = receiver.take(Message("a", 1, (1, 5), (((1, 6), b""),)))
    assert reply is not None
    assert (reply.code, reply.committed) == (ReplyCode.GAP, (0, 0))


def test_idle_sender_sends_again_what_a_restored_receiver_has_lost() -> None:
    owners = build_table(1, members("a", "b"))
    link = next(f"https://x{n}.org/" for n in range(50) if owners.owner(f"x{n}.org") == "b")
    sender, receiver = Shard("a", MemoryState(), 1, owners), Shard("b", MemoryState(), 2, owners)
    before = receiver.state.copy()
    sender.find("https://page/", [link])
    sender.commit()
    message = sender.outbox.next_message("b")
    assert message is not None
    receiver.take(message)
    receiver.commit()
    sender.outbox.on_reply("b", message, receiver.inbox.reply("a", ReplyCode.TAKEN))
    assert sender.outbox.next_message("b") is None
    restored = Shard("b", before, 3, owners)
    sender.outbox.on_receiver_restarted("b")
    again = sender.outbox.next_message("b")
    assert again is not None
    restored.take(again)
    restored.commit()
    assert restored.knows() == {link}


def test_message_by_another_table_is_refused() -> None:
    receiver = Shard("b", MemoryState(), 2, build_table(2, members("a", "b")))
    reply = receiver.take(Message("a", 1, (0, 0), ()))
    assert reply is not None
    assert reply.code is ReplyCode.EPOCH


def test_url_sent_a_moment_ago_is_not_sent_again_unless_it_brings_credit() -> None:
    shard = Shard("a", MemoryState(), 1, build_table(1, members("a", "b")))
    assert shard.outbox.send([ForwardedUrl("https://x.org/")]) == [ForwardedUrl("https://x.org/")]
    assert shard.outbox.send([ForwardedUrl("https://x.org/")]) == []
    assert len(shard.outbox.send([ForwardedUrl("https://x.org/", credit=1.0)])) == 1


def test_rows_for_a_member_that_is_gone_are_routed_anew() -> None:
    before, after = build_table(1, members("a", "b", "c")), build_table(2, members("a", "c"))
    links = [f"https://x{n}.org/" for n in range(60)]
    shard = Shard("a", MemoryState(), 1, before)
    shard.find("https://page/", links)
    shard.commit()
    assert set(shard.outbox.receivers()) == {"b", "c"}
    shard.outbox.route(after)
    for own in shard.outbox.take_own():
        shard.know(own.href)
    shard.commit()
    assert shard.outbox.receivers() == ["c"]
    other = Shard("c", MemoryState(), 2, after)
    while (message := shard.outbox.next_message("c")) is not None:
        other.take(message)
        other.commit()
        shard.outbox.on_reply("c", message, other.inbox.reply("a", ReplyCode.TAKEN))
    assert shard.knows() | other.knows() == set(links)


def test_own_urls_wait_in_no_row_until_they_are_taken_back() -> None:
    """A shard starts with rows for a member that is gone, and commits before it has taken its own ones back."""
    before, after = build_table(1, members("a", "b", "c")), build_table(2, members("a", "c"))
    links = [f"https://x{n}.org/" for n in range(60)]
    shard = Shard("a", MemoryState(), 1, before)
    shard.find("https://page/", links)
    shard.commit()
    again = Shard("a", shard.state, 2, after)
    again.commit()
    own = [one.href for one in again.outbox.take_own()]
    assert own
    again.commit()
    assert again.outbox.receivers() == ["c"]
    assert not [key for _, key in again.state.rows if key.startswith(b"out:a")]


@pytest.mark.parametrize("rows", [1, 200])
def test_message_is_bounded(rows: int) -> None:
    shard = Shard("a", MemoryState(), 1, build_table(1, members("a", "b")))
    for number in range(rows):
        shard.outbox.send([ForwardedUrl(f"https://x{number}-{k}.org/") for k in range(40)])
        shard.commit()
    message = shard.outbox.next_message("b")
    assert message is not None
    assert 1 <= len(message.rows) <= 64
