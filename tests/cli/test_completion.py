"""Completion in a shell: the command as shells call it, and the scripts that do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import lycosa

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


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("lycosa crawl --scope d", ["domain"]),
        ("lycosa crawl --render ", ["never", "auto", "always"]),
        ("lycosa export my-crawl par", ["parquet"]),
        ("lycosa completion f", ["fish"]),
    ],
)
def test_bash_is_offered_fixed_choices(line: str, words: list[str]) -> None:
    assert completed(line)[0] == words


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_names_the_command_and_the_variable_that_it_looks_for(shell: str) -> None:
    script = lycosa("completion", shell).out
    assert "lycosa" in script and f"_LYCOSA_COMPLETE=complete_{shell}" in script


def test_zsh_script_completes_at_the_first_tab_too() -> None:
    """zsh loads the file as the body of _lycosa when TAB is pressed first: it has to complete by itself then."""
    assert lycosa("completion", "zsh").out.endswith('[[ $funcstack[1] = _lycosa ]] && _lycosa_completion "$@"\n')
