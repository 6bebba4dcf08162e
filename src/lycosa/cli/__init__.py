"""The command `lycosa`: its commands stand in a few modules, joined in `commands`.

Whatever a user can cause ends in one sentence on standard error and an exit code; a traceback is a bug. That holds from
the first moment: Ctrl-C while the libraries are being imported ends the command at once.
"""

from lycosa.cli.startup import prepare

TYPE_CHECKING = False  # as in typing, which this must not wait for
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["main"]


def main() -> "NoReturn":
    """The entry point of the command."""
    prepare()
    # lazy: Ctrl-C is taken care of before the first import that takes time
    from lycosa.cli.commands import main as run

    run()
