"""The code blocks of the documentation, and the commands in them.

A block is fenced or indented by four spaces. Blocks of `sh`, `console`, `python` and `sql` are run; what cannot be run
in a test has the comment `<!-- not run: REASON -->` before it. A line of a block is a command if it begins with a
program's name; what stands behind two spaces or more, or behind a #, explains it.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).parents[2]
RUN = ("sh", "console", "python", "sql")
PROGRAMS = {"lycosa", "make", "pip", "python", "curl", "wb-manager"}
MARK = re.compile(r"<!-- not run: (.+?) -->")
QUOTED = r"'[^']*'|\"[^\"]*\""
COMMAND = re.compile(rf"(?:{QUOTED}|\\.|[^'\"\\\s]|\s(?!\s|#))+")
OPERATORS = {"|", ">", "<", "&", "&&", "||", ";", "2>"}


class Block(NamedTuple):
    """A code block of a page. `reason` says why it is not run; it is empty where it is."""

    page: str
    line: int
    language: str
    text: str
    reason: str

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.reason

    @property
    def is_of_commands(self) -> bool:
        """Whether it begins with one, so that a reader would type it in."""
        words = self.text.removeprefix("$ ").split(maxsplit=1)
        return bool(words) and words[0] in PROGRAMS

    def commands(self) -> Iterator[str]:
        """Its commands, without prompts and explanations."""
        lines = self.text.replace("\\\n", " ").splitlines()
        if self.language == "console":
            lines = [line for line in lines if line.startswith("$ ")]
        for line in lines:
            if found := COMMAND.match(re.sub(r"^(?:\w+)?\$ +", "", line.strip())):
                yield found[0].strip()


def pages() -> list[Path]:
    """The README and all pages below docs/."""
    return [REPOSITORY / "README.md", REPOSITORY / "CONTRIBUTING.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def blocks(page: Path) -> list[Block]:
    found, name = [], str(page.relative_to(REPOSITORY))
    lines, at, reason = page.read_text().splitlines(), 0, ""
    while at < len(lines):
        line, begin = lines[at], at
        if fence := re.match(r"( *)(`{3,})(\w*)", line):
            indent, ticks, language = len(fence[1]), fence[2], fence[3]
            at += 1
            while at < len(lines) and lines[at].strip() != ticks:
                at += 1
            text = "\n".join(row[indent:] for row in lines[begin + 1 : at])
            found.append(Block(name, begin + 1, language, text + "\n", reason))
            reason = ""
        elif line.startswith("    ") and not (begin and lines[begin - 1].strip()):
            while at + 1 < len(lines) and (lines[at + 1].startswith("    ") or not lines[at + 1].strip()):
                at += 1
            text = "\n".join(row[4:] for row in lines[begin : at + 1])
            found.append(Block(name, begin + 1, "", text + "\n", reason))
            reason = ""
        elif mark := MARK.match(line):
            reason = mark[1]
        elif line.strip():
            reason = ""
        at += 1
    return found


def words_of(command: str) -> list[str]:
    """The words of a command up to a pipe or the like, as a shell would split it."""
    words = []
    for word in shlex.split(command, comments=True):
        if word in OPERATORS:
            break
        words.append(word)
    return words
