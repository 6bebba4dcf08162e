"""Every command and program of the documentation: all commands are understood, and all that can be run are run.

The tour and the how-to pages begin in an empty folder, as a reader does; other pages have a collection `my-crawl`.
"""

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from proof import registry
from tests.cli.command import lycosa
from tests.docs.blocks import OPERATORS, REPOSITORY, Block, blocks, pages, words_of
from tests.docs.example_site import SITE, replace_the_web

FROM_NOTHING = ("README.md", "docs/tour.md", "docs/howto/")
ENDLESS = {"serve", "replay", "watch", "shell", "simweb", "demo"}  # they run until they are stopped, or ask for input
VARIABLE = re.compile(r"[A-Z_]+=\S*")  # PYTHONPATH=. lycosa crawl …
SHELL = {*"cat chmod cp echo export grep head ls mkdir mv printf sed sort touch wc".split()}
PLACEHOLDER = re.compile(r"…|\.\.\.|\b[A-Z]{2,}\b(?![:=/.]|-)|\[")  # lycosa get URL --in DIR
VARIES = [
    (re.compile(r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d)?Z?)?"), "DATE"),
    (re.compile(r"[\d.,]+ ?(s|ms|µs|kB|B|MB|pages/s)\b"), "N"),
    (re.compile(r"score [\d.]+"), "score N"),
]
BLOCKS = [block for page in pages() for block in blocks(page)]
RUNNING = {page: [b for b in BLOCKS if b.page == page] for page in dict.fromkeys(b.page for b in BLOCKS if b.is_run)}


def documented_commands() -> list[tuple[str, str]]:
    return [
        (f"{block.page}:{block.line}", command)
        for block in BLOCKS
        for command in block.commands()
        if command.startswith("lycosa ") and not PLACEHOLDER.search(re.sub(r"'[^']*'", "''", command))
    ]


def parse(words: list[str]) -> None:
    """Has the command line read by the command that it names, which raises what the user would be told."""
    command, name, context = typer.main.get_command(importlib.import_module("lycosa.cli.commands").app), "lycosa", None
    with contextlib.suppress(typer.Exit):  # --help and --version
        while True:
            context = command.make_context(name, list(words), parent=context)
            words = [*getattr(context, "_protected_args", []), *context.args]
            if not hasattr(command, "resolve_command") or not words:
                return
            name, command, words = command.resolve_command(context, words)


@pytest.mark.parametrize("page", sorted({place.partition(":")[0] for place, _ in documented_commands()}))
def test_documented_commands_have_the_options_they_are_given(page: str) -> None:
    for place, command in documented_commands():
        if place.partition(":")[0] == page:
            try:
                parse(words_of(command)[1:])
            except typer.exceptions.TyperException as error:
                pytest.fail(f"{place}: {command}: {error}")


def test_every_command_stands_in_a_block_whose_language_says_whether_it_is_run() -> None:
    written = [b for b in BLOCKS if not b.page.startswith(("docs/results/", "docs/commands.md"))]  # not by programs
    silent = [f"{b.page}:{b.line}" for b in written if not b.language and b.is_of_commands]
    assert written and not silent, f"use ```sh, ```console or ```python, or say <!-- not run: REASON -->: {silent}"


def test_make_is_told_what_it_knows() -> None:
    said = re.findall(r"(?:`|^ *)(make [a-z][^`\n#…]+)", "".join(page.read_text() for page in pages()), re.MULTILINE)
    assert len(said) > 50
    for command in said:
        check_target(shlex.split(re.split(r"  +", command)[0]))


def test_toml_of_the_documentation_is_toml() -> None:
    found = [tomllib.loads(block.text) for block in BLOCKS if block.language == "toml"]
    assert found and all(found)


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A crawl of the site in which a price has changed since."""
    folder = tmp_path_factory.mktemp("docs")
    battery = shutil.copytree(SITE, folder / "site") / "shop" / "battery.html"
    with pytest.MonkeyPatch.context() as patch:
        replace_the_web(patch)
        patch.chdir(folder)
        assert lycosa("crawl", "https://example.org", "--into", "my-crawl", LYCOSA_DELAY_S="0").code == 0
        battery.write_text(battery.read_text().replace("2400.00", "2150.00"))
        assert lycosa("recrawl", "my-crawl", "--all", LYCOSA_DELAY_S="0").code == 0
    return folder / "my-crawl"


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNING)
def test_documented_page_runs_from_top_to_bottom(
    page: str, collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace_the_web(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    shutil.copytree(REPOSITORY / "docs" / "site", tmp_path / "docs" / "site")
    if not page.startswith(FROM_NOTHING):
        shutil.copytree(collection, tmp_path / "my-crawl")
    Path("cookies.txt").write_text("forum.example\tFALSE\t/\tTRUE\t0\tsession\tof-ann\n")
    names: dict[str, object] = {"__name__": "__main__"}
    for block in RUNNING[page]:
        for secret in re.findall(r"\$\{(\w+)\}", block.text):
            monkeypatch.setenv(secret, "secret")
        if block.language in ("python", "toml") and (file := re.match(r"# (\S+\.(?:py|toml))\n", block.text)):
            Path(file[1]).write_text(block.text)
            monkeypatch.delitem(sys.modules, Path(file[1]).stem, raising=False)  # that of another page
        elif block.is_run and block.language == "python":
            run_python(block, names)
        elif block.is_run and block.language == "sql":
            run_command(f"{page}:{block.line}", shlex.join(["lycosa", "sql", "my-crawl", block.text]))
        elif block.is_run:
            for command in block.commands():
                said = run_command(f"{page}:{block.line}", command)
                if block.language == "console":
                    assert_shown(block, command, said)


def run_python(block: Block, names: dict[str, object]) -> None:
    code = compile(block.text, f"{block.page}:{block.line}", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    with contextlib.redirect_stdout(io.StringIO()):
        if code.co_flags & inspect.CO_COROUTINE:
            asyncio.run(eval(code, names))
        else:
            exec(code, names)


def run_command(place: str, command: str) -> str:
    """Runs a line of a shell: `lycosa` in this process, what stands behind it and a few other programs in a shell."""
    words = [word for word in words_of(command) if not VARIABLE.fullmatch(word)]
    rest = command_behind(command)
    if words[0] in NOT_HERE:
        NOT_HERE[words[0]](words)
        return ""
    if words[:3] == ["python", "-m", "lycosa"]:
        words = words[2:]
    if words[0] != "lycosa":
        assert words[0] in SHELL, f"{place}: {command}: mark it with <!-- not run: REASON -->"
        return in_shell(place, command)
    if {"--keep-fresh", "--time"} & {*words} == {"--keep-fresh"} or (words[1] in ENDLESS and "-c" not in words):
        parse(words[1:])
        return ""
    given, rest = given_to(rest)
    words = [part for word in words for part in (sorted(map(str, Path().glob(word))) if "warc/*" in word else [word])]
    said = lycosa(*words[1:], given=given, LYCOSA_DELAY_S="0")
    assert said.code == 0, f"{place}: {command}: {said.err}"
    return in_shell(place, f"cat {rest}", said.out) if rest else said.out


def check_extras(words: list[str]) -> None:
    """What pip installs in the book are other packages, or extras of this one."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for extra in re.findall(r"lycosa\[(.+?)\]", " ".join(words)):
        assert {*extra.split(",")} <= {*project["optional-dependencies"]}, words


def check_target(words: list[str]) -> None:
    """What make is told: a target, and names of experiments and benchmarks."""
    _, target, *values = words
    assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text(), re.MULTILINE), words
    for name in [value.removeprefix("NAME=") for value in values if value.startswith("NAME=")]:
        assert name in {"all", "list", "X", *registry.names(target), *registry.SCENARIOS}, words


NOT_HERE = {"pip": check_extras, "make": check_target}  # these install, or take long: what they are told is looked at


def given_to(rest: str) -> tuple[str, str]:
    """The text that a command is given by <, and what stands behind it apart from that."""
    file = re.search(r"(?:^| )< (\S+)", rest)
    return (Path(file[1]).read_text(), rest.replace(file[0], "").strip()) if file else ("", rest)


def command_behind(command: str) -> str:
    """What stands behind the first operator, with it."""
    found = next((word for word in re.findall(r"'[^']*'|\"[^\"]*\"|\S+", command) if word in OPERATORS), None)
    return command[command.index(f" {found} ") :] if found else ""


def in_shell(place: str, command: str, given: str = "") -> str:
    done = subprocess.run(["bash", "-c", command], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{place}: {command}: {done.stderr}"
    return done.stdout


def assert_shown(block: Block, command: str, said: str) -> None:
    """What the page shows below a command is what it said: … stands for anything, a line of it for any lines."""
    shown = block.text.partition(f"$ {command}")[2].partition("\n")[2].partition("\n$ ")[0].strip("\n")
    if not shown:
        return
    for pattern, name in VARIES:
        shown, said = pattern.sub(name, shown), pattern.sub(name, said)
    said = "\n".join(line.rstrip() for line in said.strip("\n").splitlines())
    lines = ["(?s:.*)" if line == "…" else re.escape(line).replace("…", ".*") for line in shown.splitlines()]
    wanted = "\n".join(lines)
    assert re.fullmatch(wanted, said), f"{block.page}:{block.line}: {command}\nshown:\n{shown}\nsaid:\n{said}"
