"""Services by way of Apprise (the extra `apprise`): chats, mail, phones and 170 more, named by URLs in a file.

The URLs hold passwords and tokens, so the file may be read by its owner alone; each of its lines is a target of its
own, and they are handed to the child on its standard input. Apprise is a large library that talks to anybody, so it
runs in a process of its own (`apprise_child`), which is killed when it takes too long.
"""

import asyncio
import importlib.util
import sys
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

from lycosa.errors import MissingExtra, SettingsError
from lycosa.notify.message import notification
from lycosa.notify.notifier import NotDelivered
from lycosa.notify.outbox import Notice
from lycosa.notify.webhook import require_private

CHILD_S = 50.0  # less than the notifier's patience: it is killed from here
# The exit codes of the child, as in `apprise_child`.
REFUSED, UNKNOWN = 3, 4


class ServiceTarget:
    """The service that an Apprise URL names; `line` is where it stands in its file."""

    def __init__(self, url: str, line: int, *, collection: str) -> None:
        self._url, self._collection = url, collection
        self.id = f"apprise:{sha256(url.encode()).hexdigest()[:16]}"
        self.name = f"{url.partition('://')[0]} (line {line} of the Apprise URLs)"

    def __repr__(self) -> str:
        return f"<ServiceTarget {self.name}>"

    async def send(self, notices: Sequence[Notice]) -> None:
        title, text = notification(notices, collection=self._collection)
        message = msgspec.json.encode({"url": self._url, "title": title, "body": text})
        # -P: the folder of the program is not for imports. Ctrl-C is for the parent: it is in a session of its own.
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            str(Path(__file__).with_name("apprise_child.py")),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,  # Apprise may name the URL there
            start_new_session=True,
        )
        try:
            await asyncio.wait_for(child.communicate(message), CHILD_S)
        except TimeoutError:
            raise NotDelivered(f"Apprise has not finished within {CHILD_S:g} s") from None
        finally:
            if child.returncode is None:
                child.kill()
                await child.wait()
        if child.returncode == UNKNOWN:
            raise NotDelivered("Apprise cannot read this URL")
        if child.returncode:
            raise NotDelivered("the service refused it" if child.returncode == REFUSED else "Apprise has failed")


def service_targets(path: Path, *, collection: str) -> list[ServiceTarget]:
    """The targets in a file, one a line; raises an error that says what to do."""
    if importlib.util.find_spec("apprise") is None:
        raise MissingExtra.of("apprise", what="--apprise")
    try:
        require_private(path)
        lines = path.read_text().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise SettingsError(f"cannot read the Apprise URLs in {path}: {reason}") from error
    found = dict[str, ServiceTarget]()
    for number, line in enumerate(lines, 1):
        url = line.strip()
        if url and not url.startswith("#"):
            if "://" not in url:
                raise SettingsError(f"{path}, line {number}, is no Apprise URL, such as ntfy://topic")
            found.setdefault(url, ServiceTarget(url, number, collection=collection))
    if not found:
        raise SettingsError(f"{path} holds no Apprise URL, such as ntfy://topic")
    return list(found.values())
