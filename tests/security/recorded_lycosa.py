"""A fork server for `lycosa`, whose libraries are imported once. Its commands write every request that they start, URL
and pinned address, into a file beside what they say.

    python -m tests.security.recorded_lycosa SOCKET     until its standard input ends; says when it listens

Each connection is one command: a line of JSON (the file for what it says, its words); answered by two lines, the
process and its exit code.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from lycosa.api import Crawl  # noqa: F401 -- imported here so that no command has to
from lycosa.cli import crawl as crawl_command  # noqa: F401 -- likewise
from lycosa.cli.commands import main as run_lycosa
from lycosa.fetch.curl import CurlDownloader
from lycosa.fetch.downloader import DoneCallback
from lycosa.records import Request


def record(into: Path) -> None:
    start = CurlDownloader.start

    def recorded(self: CurlDownloader, request: Request, done: DoneCallback) -> None:
        with into.open("a") as file:
            file.write(json.dumps([request.url, request.address, request.port]) + "\n")
        start(self, request, done)

    CurlDownloader.start = recorded  # type: ignore[method-assign]


def run(said: Path, words: list[str]) -> NoReturn:
    nothing = os.open(os.devnull, os.O_RDWR)
    saying = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for old, new in ((nothing, 0), (saying, 1), (saying, 2)):
        os.dup2(old, new)
    record(said.with_suffix(".started"))
    sys.argv, code = ["lycosa", *words], 1
    try:
        run_lycosa()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def attend(connection: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection.makefile("rw") as file:
        said, words = json.loads(file.readline())
        if not (pid := os.fork()):
            run(Path(said), words)
        print(pid, file=file, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=file, flush=True)
    os._exit(0)


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who attend
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(sys.argv[1])
        listener.listen()
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if not os.fork():
                attend(connection)
            connection.close()


if __name__ == "__main__":
    main()
