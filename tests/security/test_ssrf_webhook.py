"""Webhooks are posted to no special-purpose address, however its URL is written and whatever its name resolves to."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from lycosa.errors import SettingsError
from lycosa.mapping import AddressGuard
from lycosa.notify.notifier import NotDelivered
from lycosa.notify.webhook import WebhookTarget, refuse_private_webhook
from lycosa.records import Request, Resolved, Response
from lycosa.settings import CrawlSettings
from tests.security.targets import literals, spellings

GOOD = "1.0.0.1"


class RecordingDownloader:
    """Answers 204, and keeps what it was asked for."""

    def __init__(self) -> None:
        self.started: list[Request] = []

    def start(self, request: Request, done: Any) -> None:
        self.started.append(request)
        asyncio.get_running_loop().call_soon(done, Response(request.url, 204))


class ListedResolver:
    """Gives these answers, one after the other."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self._answers = list(answers)

    async def resolve(self, name: str) -> Resolved:
        return Resolved(name, self._answers.pop(0), 60.0)


def post(href: str, *answers: tuple[str, ...]) -> tuple[list[str], int]:
    """Posts once for each answer; the addresses that were asked, and how often it was refused."""
    downloader, refused = RecordingDownloader(), 0
    parts: Any = {"downloader": downloader, "resolver": ListedResolver(*answers), "guard": AddressGuard()}

    async def main() -> None:
        nonlocal refused
        target = WebhookTarget(href, CrawlSettings(), collection="c", secret=b"s" * 32, **parts)
        for _ in answers or [()]:
            try:
                await target.send([])
            except NotDelivered:
                refused += 1

    asyncio.run(main())
    return [request.address for request in downloader.started], refused


def test_webhook_to_a_special_address_is_refused_before_the_crawl_and_when_sent(conformance: Path) -> None:
    targets = [*literals(conformance), *spellings(conformance)]

    for target in targets:
        with pytest.raises(SettingsError, match="allow-private"):
            refuse_private_webhook(CrawlSettings(webhook=[target.url]), AddressGuard())
        assert post(target.url) == ([], 1), target.url
    assert len(targets) >= 300


def test_webhook_to_a_name_with_a_special_address_is_refused(conformance: Path) -> None:
    addresses = [target.address for target in literals(conformance)]
    answers = [answer for bad in addresses for answer in ((bad,), (GOOD, bad), (bad, GOOD))]

    assert post("http://hook.test/", *answers) == ([], len(answers))
    assert len(answers) >= 600


def test_webhook_whose_name_changes_goes_to_checked_addresses_only(conformance: Path) -> None:
    addresses = [target.address for target in literals(conformance)]
    answers = [answer for bad in addresses for answer in ((GOOD,), (bad,))]

    assert post("http://hook.test/", *answers) == ([GOOD] * len(addresses), len(addresses))
