"""`lycosa completion`: prints the script by which a shell completes commands and options.

The script calls `lycosa` with _LYCOSA_COMPLETE set, which `commands.main` looks for. Nothing of this is imported in any
other start.
"""

from enum import StrEnum
from typing import Annotated

import typer
from typer._completion_shared import get_completion_script

from lycosa.cli.commands import COMPLETION_VARIABLE
from lycosa.cli.options import CommandTable

app = CommandTable()

# zsh runs the file as a function at the first TAB of a session: without this line that one would find nothing.
ZSH_FIRST = '\n[[ $funcstack[1] = _lycosa ]] && _lycosa_completion "$@"'


class CompletedShell(StrEnum):
    """The shells for which there is a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


@app.command(
    epilog="""
        lycosa completion bash > ~/.local/share/bash-completion/completions/lycosa
        lycosa completion zsh > ~/.zfunc/_lycosa     fpath+=~/.zfunc before compinit
        lycosa completion fish > ~/.config/fish/completions/lycosa.fish
    """
)
def completion(
    shell: Annotated[CompletedShell, typer.Argument(metavar="SHELL", help="The shell: bash, zsh or fish.")],
) -> None:
    """Print a script that completes words in a shell.

    Save it where the shell looks for such scripts, and open a new shell.
    """
    script = get_completion_script(prog_name="lycosa", complete_var=COMPLETION_VARIABLE, shell=shell.value)
    print(script + ZSH_FIRST * (shell is CompletedShell.ZSH))
