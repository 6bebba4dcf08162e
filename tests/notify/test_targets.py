"""Targets and the outbox: what is kept, what is refused, and what is said of it."""

import asyncio
import time
from base64 import b64encode
from ipaddress import ip_network
from pathlib import Path

import pytest

from lycosa.errors import SettingsError
from lycosa.fetch import CurlDownloader, TransferLimits
from lycosa.mapping import AddressGuard
from lycosa.notify import NotDelivered, Notice, NoticeOutbox
from lycosa.notify.atom import ENTRIES_MOST, AtomTarget
from lycosa.notify.message import notice_id, pieces_between, webhook_body, webhook_fields
from lycosa.notify.services import service_targets
from lycosa.notify.webhook import WebhookTarget, webhook_secret
from lycosa.records import Resolved
from lycosa.settings import CrawlSettings
from lycosa.store import Batch
from lycosa.store.state import State
from lycosa.web import analyse_page
from tests.cli.command import lycosa
from tests.notify.receivers import is_signed, site

SECRET = b"0123456789abcdef"


def notice(number: int, url: str = "https://example.org/x") -> Notice:
    at_s = 1_000.0 + number
    return Notice(notice_id(url, number), url, at_s, "changed", "text", title="<T> & \x0b", added=("a\x00b",))


def fill(outbox: NoticeOutbox, state: State, *numbers: int) -> None:
    batch = Batch()
    for number in numbers:
        outbox.append(batch, notice(number))
    state.write(batch)


def told(outbox: NoticeOutbox, target: str) -> list[int]:
    return [int(each.at_s) - 1_000 for _, each in outbox.pending(target, 100)]


def test_outbox_keeps_what_a_target_has_not_acknowledged(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    outbox = NoticeOutbox(state, ["webhook:a", "atom:b"])
    fill(outbox, state, 1, 2, 3)
    outbox.acknowledge("webhook:a", 2)
    assert (told(outbox, "webhook:a"), told(outbox, "atom:b")) == ([3], [1, 2, 3])

    again = NoticeOutbox(state, ["webhook:a", "atom:b"])
    assert (told(again, "webhook:a"), told(again, "atom:b")) == ([3], [1, 2, 3])
    again.acknowledge("atom:b", 3)
    again.acknowledge("webhook:a", 3)
    assert (again.waiting("webhook:a"), again.waiting("atom:b")) == (0, 0)
    assert not [key for key, _ in state.walk("meta", b"notice:row:", b"notice:row;")]  # type: ignore[arg-type]
    fill(again, state, 4)
    assert told(again, "atom:b") == [4]


def test_outbox_new_target_hears_from_now_on_and_a_replaced_one_goes_on(tmp_path: Path) -> None:
    state = State.open(tmp_path / "state")
    outbox = NoticeOutbox(state, ["webhook:a"])
    fill(outbox, state, 1, 2)
    outbox.acknowledge("webhook:a", 1)

    outbox = NoticeOutbox(state, ["webhook:other", "atom:new"])
    assert (told(outbox, "webhook:other"), told(outbox, "atom:new")) == ([2], [])


@pytest.mark.parametrize("written", ["short", "whsec_???", ""])
def test_weak_secret_is_refused(tmp_path: Path, written: str) -> None:
    (tmp_path / "webhook.secret").touch(0o600)
    (tmp_path / "webhook.secret").write_text(written)
    with pytest.raises(SettingsError, match="holds no secret"):
        webhook_secret(tmp_path, {})


def test_secret_that_others_can_read_is_refused_and_one_in_the_environment_counts(tmp_path: Path) -> None:
    assert webhook_secret(tmp_path, {}) == webhook_secret(tmp_path, {})  # made once
    (tmp_path / "webhook.secret").chmod(0o640)
    with pytest.raises(SettingsError, match="chmod 600"):
        webhook_secret(tmp_path, {})
    assert webhook_secret(tmp_path, {"LYCOSA_WEBHOOK_SECRET": "x" * 20}) == b"x" * 20


def test_message_is_signed_over_id_time_and_body() -> None:
    secret, now_s = f"whsec_{b64encode(SECRET).decode()}", time.time()
    body = webhook_body([notice(1)], collection="c", now_s=now_s)
    fields = dict(webhook_fields(body, [notice(1)], secret=SECRET, now_s=now_s))
    assert is_signed(secret, fields, body)
    assert not is_signed(secret, {**fields, "webhook-timestamp": str(int(now_s) + 1)}, body)
    assert not is_signed(secret, {**fields, "webhook-id": "msg_other"}, body)


def test_pieces_that_came_and_went_are_few_and_short() -> None:
    added, removed = pieces_between(["a", "b", "b"], ["b", "x" * 1_000, *map(str, range(50))])
    assert removed == ("a", "b")
    assert len(added) == 10
    assert len(added[0]) == 300


class Names:
    """A resolver that knows one name."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def resolve(self, name: str) -> Resolved:
        return Resolved(name, (self.address,), 60.0)

    def flush(self) -> None: ...

    async def close(self) -> None: ...


def post(url: str, allow: str = "127.0.0.0/8", address: str = "127.0.0.1") -> str:
    """What comes of a webhook: nothing, or why it was not delivered."""

    async def main() -> str:
        curl = CurlDownloader(TransferLimits(connect_s=2, first_byte_s=2))
        target = WebhookTarget(
            url,
            CrawlSettings(),
            collection="c",
            secret=SECRET,
            downloader=curl,
            resolver=Names(address),
            guard=AddressGuard([ip_network(allow)]),
        )
        try:
            await target.send([notice(1), notice(2)])
        except NotDelivered as error:
            return str(error)
        finally:
            await curl.close()
        return ""

    return asyncio.run(main())


def test_webhook_passes_the_guard_and_follows_no_redirect() -> None:
    with site() as hook, site() as other:
        assert post(f"{hook.url}/x") == ""
        assert post(f"http://hook.example:{hook.port}/x") == ""
        assert "loopback" in post(f"http://hook.example:{hook.port}/x", allow="10.0.0.0/8")
        assert "link-local" in post(f"http://hook.example:{hook.port}/x", address="169.254.169.254")
        assert len(hook.received) == 2

        def elsewhere(request: object) -> None:
            request.send_response(307)  # type: ignore[attr-defined]
            request.send_header("Location", f"{other.url}/y")  # type: ignore[attr-defined]
            request.send_header("Content-Length", "0")  # type: ignore[attr-defined]
            request.end_headers()  # type: ignore[attr-defined]

        hook.answer = elsewhere
        assert post(f"{hook.url}/x") == "it answers 307, and redirects are not followed"
        assert other.received == []


def test_private_webhook_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    with site() as web:
        said = lycosa("crawl", f"{web.url}/", "--into", tmp_path / "c", "--webhook", "http://10.0.0.1/hook")
        assert (said.code, web.asked) == (2, [])
        assert "--allow-private 10.0.0.1" in said.err


def test_feed_holds_each_change_once_and_the_latest_ones(tmp_path: Path) -> None:
    path = tmp_path / "changes.atom"
    target = AtomTarget(path, collection="c")
    asyncio.run(target.send([notice(1), notice(2)]))
    first = path.read_bytes()
    asyncio.run(target.send([notice(2), notice(3)]))
    text = path.read_text()
    assert [text.count(notice(number).id) for number in (1, 2, 3)] == [1, 1, 1]
    assert text.split("id>")[1] == first.decode().split("id>")[1]  # the feed's own id
    asyncio.run(target.send([notice(number, f"https://example.org/{number}") for number in range(10, 400)]))
    assert path.read_text().count("<entry>") == ENTRIES_MOST
    assert notice(399, "https://example.org/399").id in path.read_text()
    assert analyse_page(path.read_bytes(), url="https://example.org/f").links.hrefs
    assert [each.name for each in tmp_path.iterdir()] == ["changes.atom"]


def test_feed_never_overwrites_another_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(SettingsError, match="is no Atom feed"):
        AtomTarget(path, collection="c")
    target = AtomTarget(tmp_path / "later.atom", collection="c")
    (tmp_path / "later.atom").write_text("<!DOCTYPE x [<!ENTITY a 'b'>]><feed xmlns='http://www.w3.org/2005/Atom'/>")
    with pytest.raises(NotDelivered):
        asyncio.run(target.send([notice(1)]))
    assert path.read_text() == "mine"
    with pytest.raises(SettingsError, match="there is no folder"):
        AtomTarget(tmp_path / "no" / "f.atom", collection="c")


def test_apprise_urls_are_read_from_a_private_file(tmp_path: Path) -> None:
    pytest.importorskip("apprise")
    path = tmp_path / "urls"
    with pytest.raises(SettingsError, match="No such file"):
        service_targets(path, collection="c")
    path.touch(0o600)
    with pytest.raises(SettingsError, match="holds no Apprise URL"):
        service_targets(path, collection="c")
    path.write_text("# mine\nslack://secret-token/b\n\nntfy://topic\n")
    found = service_targets(path, collection="c")
    assert len({target.id for target in found}) == 2
    assert "secret" not in "".join(f"{target!r}{target.name}{target.id}" for target in found)
    path.chmod(0o644)
    with pytest.raises(SettingsError, match="chmod 600"):
        service_targets(path, collection="c")
