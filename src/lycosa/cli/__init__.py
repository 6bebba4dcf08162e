"""The command `lycosa`: one file a command, joined here.

Whatever a user can cause ends in one sentence on standard error and an exit code; a traceback is a bug.
"""

from lycosa.cli.main import main

__all__ = ["main"]
