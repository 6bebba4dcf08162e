"""Completion in a shell: the command as bash calls it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

pytestmark = pytest.mark.slow

# Completing the name of a command must not import the modules of all commands.
ASKED = """
import sys
from lycosa.cli import main
try:
    main()
finally:
    print([name for name in sys.modules if name in ("lycosa.cli.crawl", "lycosa.cli.search")], file=sys.stderr)
"""


def completed(line: str) -> tuple[list[str], str]:
    """What bash is offered for the last word of the line, and which modules of commands that took."""
    words = line.split(" ")
    asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1), "_LYCOSA_COMPLETE": "complete_bash"}
    environment = os.environ | asked | {"PYTHONPATH": str(REPOSITORY / "src")}
    done = subprocess.run([sys.executable, "-c", ASKED], capture_output=True, text=True, env=environment, check=True)
    return done.stdout.split(), done.stderr.strip()


def test_bash_is_offered_commands_without_their_modules() -> None:
    assert completed("lycosa do") == (["doctor"], "[]")


def test_bash_is_offered_the_options_of_a_command() -> None:
    assert completed("lycosa crawl --del")[0] == ["--delay"]
