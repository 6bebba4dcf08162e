"""Notify: changes are told by webhook, by an Atom feed and through Apprise, at least once each and in order.

`make_notifier` makes a `Notifier` for what the settings name. It takes changes from `recrawl`, writes them into an
outbox with the commit that records them, and delivers them beside the crawl. A crawl without these settings does not
import this room.
"""

from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING

from lycosa.mapping import AddressGuard
from lycosa.notify.notifier import NotDelivered, Notifier, Target
from lycosa.notify.outbox import Notice, NoticeOutbox, delete_notices, undelivered_changes
from lycosa.notify.webhook import SECRET_FILE, WebhookTarget, refuse_private_webhook, webhook_secret
from lycosa.settings import CrawlSettings
from lycosa.store import sharded_parent

if TYPE_CHECKING:
    from lycosa.crawl import Parts, Shard

__all__ = [
    "NotDelivered", "Notice", "NoticeOutbox", "Notifier", "Target", "delete_notices", "make_notifier",
    "require_targets", "undelivered_changes",
]  # fmt: skip


def make_notifier(shard: "Shard", parts: "Parts") -> Notifier:
    """The notifier of a shard; raises an error for settings that cannot be."""
    return Notifier(shard, _targets(shard, parts))


def require_targets(settings: CrawlSettings, folder: Path) -> None:
    """Raises an error for settings that cannot be, before the crawl into `folder` begins, wherever its shards are."""
    if settings.webhook:
        refuse_private_webhook(settings, AddressGuard(ip_network(network) for network in settings.allow_private))
        if (folder / SECRET_FILE).exists():
            webhook_secret(folder)
    _other_targets(settings, folder.absolute().name)


def _targets(shard: "Shard", parts: "Parts") -> Sequence[Target]:
    settings, folder = shard.settings, shard.collection.path
    whole = sharded_parent(folder) or folder
    name, found = whole.absolute().name, list[Target]()
    if settings.webhook:
        refuse_private_webhook(settings, parts.guard)
        secret = webhook_secret(whole)
        for href in settings.webhook:
            found.append(
                WebhookTarget(
                    href,
                    settings,
                    collection=name,
                    secret=secret,
                    downloader=parts.downloader,
                    resolver=parts.resolver,
                    guard=parts.guard,
                )
            )
    return [*found, *_other_targets(settings, name)]


def _other_targets(settings: CrawlSettings, name: str) -> Sequence[Target]:
    found = list[Target]()
    if settings.atom:
        from lycosa.notify.atom import AtomTarget  # lazy: XML, for a feed alone

        found.append(AtomTarget(Path(settings.atom), collection=name))
    if settings.apprise:
        from lycosa.notify.services import service_targets  # lazy: processes, for Apprise alone

        found += service_targets(Path(settings.apprise), collection=name)
    return found
