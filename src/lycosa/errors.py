"""The errors Lycosa raises, and the exit code each one means.

    LycosaError
    ├── SettingsError    a setting is wrong: says which, its value, and what is allowed
    ├── MissingExtra     an optional dependency is not installed: says how to install it
    ├── PartError        a part that the settings name cannot be had: names it, chained from the original
    ├── NoPage           a collection has no such page; it is a LookupError too
    ├── StoreError       a file of ours cannot be read or written
    └── ClusterError     another node, agent or the coordinator cannot be reached, or has refused us

Every message is one sentence a user can act on; the command line prints it and nothing else.
All of them survive pickling: each takes exactly the message it shows.
"""


class LycosaError(Exception):
    """The root of the tree. `exit_code` is what the command line ends with."""

    exit_code = 1


class SettingsError(LycosaError):
    """What the user asked for cannot be; the message names the setting and what is allowed."""

    exit_code = 2


class MissingExtra(LycosaError):
    """An optional part is not installed; the message is the command that installs it."""

    exit_code = 2

    @classmethod
    def of(cls, extra: str, *, what: str) -> "MissingExtra":
        return cls(f"{what} needs an optional package: pip install 'lycosa[{extra}]'")


class PartError(LycosaError):
    """A part named in the settings cannot be found or made."""

    exit_code = 2


class NoPage(LycosaError, LookupError):
    """The collection that was asked for a page does not have it."""

    exit_code = 2


class StoreError(LycosaError):
    """A file of ours failed: unreadable, not ours, or no space left."""

    exit_code = 4


class ClusterError(LycosaError):
    """A node, an agent or the coordinator is gone, or does not want to know us."""
