"""A process that seems to die before its n-th write, wherever that is."""

from collections.abc import Callable
from typing import Any

import pytest

from lycosa.removal import pages
from lycosa.store import State, warc_edit
from lycosa.store.warc_file import WarcWriter

# Everything that a removal writes goes through these.
WRITES: dict[Any, tuple[str, ...]] = {
    State: ("write",),
    WarcWriter: ("append",),
    warc_edit: ("blank_member", "sync_folder"),
    pages: ("delete_index", "cut_feed", "rebuild_link_index"),
}


class Killed(Exception):
    """The process is dead."""


def kill_at(write: int, patched: pytest.MonkeyPatch) -> None:
    """Lets so many writes happen, and none after them."""
    left = [write]

    def mortal(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return method(*args, **named)

        return called

    for owner, names in WRITES.items():
        for name in names:
            patched.setattr(owner, name, mortal(getattr(owner, name)))
