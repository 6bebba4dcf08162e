"""The real command, in this process or in one of its own, and a simulated web for it to crawl."""

import gc
import importlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

REPOSITORY = Path(__file__).parents[2]
TIMEOUT_S = 180
PROGRESS = re.compile(r"[\d,]+ pages?, ")


class Said(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def complaints(self) -> list[str]:
        """What stands on standard error besides the lines of progress."""
        return [line for line in self.err.splitlines() if line and not PROGRESS.match(line)]

    @property
    def facts(self) -> dict[str, Any]:
        """The JSON object on standard output."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def started(*words: str | Path, before: tuple[str, ...] = (), terminal: int | None = None) -> subprocess.Popen[str]:
    """The command, running; on a terminal if one is given."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LYCOSA_")}
    environment["PYTHONPATH"] = str(REPOSITORY / "src")
    command = [*before, sys.executable, "-m", "lycosa", *map(str, words)]
    stdin, out = (subprocess.DEVNULL, subprocess.PIPE) if terminal is None else (terminal, terminal)
    return subprocess.Popen(command, stdin=stdin, stdout=out, stderr=out, text=True, env=environment)


def ended(process: subprocess.Popen[str]) -> Said:
    """The command, once it is over."""
    try:
        out, err = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
    return Said(process.returncode, out, err)


def lycosa(*words: str | Path, given: str = "", **variables: str) -> Said:
    """The command in this process, which costs no start: for all that is not about signals and limits of a process.
    `given` stands on its standard input; `variables` are those of Lycosa in its environment."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LYCOSA_")}
    environment |= variables
    main = importlib.import_module("lycosa.cli.commands").main
    pace, code = gc.get_threshold(), 0
    with (
        mock.patch.multiple(sys, argv=["lycosa", *map(str, words)], stdin=io.StringIO(given), stdout=out, stderr=err),
        mock.patch.dict(os.environ, environment, clear=True),
    ):
        try:
            main()
        except SystemExit as leave:
            code = leave.code if isinstance(leave.code, int) else 0
    gc.set_threshold(*pace)
    gc.unfreeze()
    return Said(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))  # type: ignore[attr-defined]


class Web(NamedTuple):
    """A simulated web that runs. `log` holds one line for every request it got."""

    port: int
    dns_port: int
    log: Path

    def url(self, path: str = "/", host: int = 0) -> str:
        return f"http://h{host}.sim:{self.port}{path}"

    def crawl(self, into: Path, *words: str | Path, delay: str = "0") -> list[str | Path]:
        """The words of a crawl of it."""
        reach: list[str | Path] = ["--dns", f"127.0.0.1:{self.dns_port}", "--allow-private", "127.0.0.0/8"]
        return ["crawl", self.url(), "--into", into, "--delay", delay, *reach, *words]

    def requests(self) -> list[dict[str, Any]]:
        whole = self.log.read_text().rpartition("\n")[0]  # the last line may be on its way
        entries = [json.loads(line) for line in whole.splitlines()]
        return [entry for entry in entries if "path" in entry]


@contextmanager
def simulated_web(folder: Path, *words: str) -> Iterator[Web]:
    log = folder / "requests.jsonl"
    process = started("simweb", "--port", "0", "--dns-port", "0", "--log", log, "--json", *words)
    assert process.stdout is not None
    try:
        ports = json.loads(process.stdout.readline())
        yield Web(ports["port"], ports["dns_port"], log)
    finally:
        process.terminate()
        process.communicate(timeout=TIMEOUT_S)
