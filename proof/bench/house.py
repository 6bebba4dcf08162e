"""Measures of the source tree: files, lines, class names, comments, and how many files the life of a URL crosses.

The life is counted by running it in this process: `lycosa crawl` of a small site on loopback, then `lycosa search`. A
file counts when one of its functions runs between the start of the crawl's loop and the last commit, or when it stands
on the way from the command to the loop; for the search, when one of its functions runs until the results are printed.
Imports, class bodies and what is set up before the loop starts do not count.
"""

import ast
import contextlib
import functools
import http.server
import io
import sys
import tempfile
import threading
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from lycosa.cli import main as run_command
from proof import Bar, Experiment, Run

SOURCE = Path(__file__).parent.parent.parent / "src" / "lycosa"
LOOP = str(SOURCE / "crawl" / "loop.py")
COMMENTED_ROOMS = ("frontier", "cluster")
PAGES = 4
TO_COMMIT = "files from crawl to commit"
TO_RESULT = "files from crawl to a search result"
FILES, LINES, TWICE = "files in src", "lines in src", "class names used more than once"
IS_FUNCTION = 1  # CO_OPTIMIZED: class bodies and modules do not have it


class Trace:
    """The files of the tree whose functions ran while the trace was on."""

    def __init__(self, is_start: Callable[[CodeType], bool]) -> None:
        self.files: dict[str, set[str]] = {}
        self._is_start, self._is_on = is_start, False

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(str(SOURCE)) or not code.co_flags & IS_FUNCTION:
            return
        if not self._is_on and self._is_start(code):
            self._is_on = True
            self._note_callers(frame)
        if self._is_on and not _is_importing(frame):
            self._note(code)

    def _note(self, code: CodeType) -> None:
        self.files.setdefault(code.co_filename.removeprefix(f"{SOURCE}/"), set()).add(code.co_name)

    def _note_callers(self, frame: FrameType | None) -> None:
        while frame is not None:
            if frame.f_code.co_filename.startswith(str(SOURCE)):
                self._note(frame.f_code)
            frame = frame.f_back


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(SOURCE)):
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def site() -> Iterator[str]:
    """A few pages that link to each other, on loopback."""
    with tempfile.TemporaryDirectory() as name:
        for number in range(PAGES):
            link = f"<a href='{number + 1}.html'>on</a>"
            Path(name, f"{number}.html").write_text(f"<title>Page {number}</title><p>A wolf spider hunts. {link}")
        handler = functools.partial(_Quiet, directory=name)
        with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_port}/0.html"
            server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


def _nowhere() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


def files_of(words: list[str], is_start: Callable[[CodeType], bool]) -> dict[str, set[str]]:
    """Runs a command in this process and returns the files whose functions ran."""
    trace, before = Trace(is_start), sys.argv
    sys.argv = ["lycosa", *words]
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        with contextlib.redirect_stdout(_nowhere()), contextlib.redirect_stderr(_nowhere()):
            run_command()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"lycosa {' '.join(words)} ended with {end.code}") from end
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        sys.argv = before
    return trace.files


def life_of_a_url() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """Files from `crawl` to the commit, and the further ones to a search result."""
    with tempfile.TemporaryDirectory() as folder, site() as url:
        into = f"{folder}/c"
        words = ["crawl", url, "--into", into, "--allow-private", "127.0.0.0/8", "--delay", "0", "--quiet"]
        crawled = files_of(words, lambda code: code.co_filename == LOOP and code.co_name == "run")
        found = files_of(["search", into, "wolf spider"], lambda code: True)
    return crawled, {file: names for file, names in found.items() if file not in crawled}


def comment_share(room: str) -> float:
    """Lines with a comment in percent of all lines."""
    comments = lines = 0
    for path in (SOURCE / room).rglob("*.py"):
        text = path.read_text()
        lines += len(text.splitlines())
        comments += sum(
            token.type == tokenize.COMMENT for token in tokenize.generate_tokens(io.StringIO(text).readline)
        )
    return 100 * comments / lines


def measure(run: Run) -> None:
    paths = sorted(SOURCE.rglob("*.py"))
    trees = [ast.parse(path.read_text()) for path in paths]
    classes = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    crawled, found = life_of_a_url()
    run.figure(TO_COMMIT, len(crawled))
    run.figure(TO_RESULT, len(crawled) + len(found))
    run.figure(FILES, len(paths))
    run.figure(LINES, sum(len(path.read_text().splitlines()) for path in paths))
    run.figure(TWICE, sum(count > 1 for count in classes.values()))
    for room in COMMENTED_ROOMS:
        run.figure(f"lines with a comment in {room}", comment_share(room), "%")
    for until, files in (("the commit", crawled), ("a search result", found)):
        rows = [(file, ", ".join(sorted(names))[:60]) for file, names in sorted(files.items())]
        run.table([f"file on the way to {until}", "functions that ran"], rows)


EXPERIMENT = Experiment(
    name="house",
    summary="the source tree in numbers: files, lines, class names, comments, files that the life of a URL crosses",
    run=measure,
    bars=(
        Bar("a URL's life is short", TO_COMMIT, "<=", 25),
        Bar("on to a search result", TO_RESULT, "<=", 45),
        Bar("few files", FILES, "<=", 190),
        Bar("few lines", LINES, "<=", 37_000),
        Bar("one name for each class", TWICE, "<=", 0),
        Bar("reasons in the frontier", "lines with a comment in frontier", ">=", 4),
        Bar("reasons in the cluster", "lines with a comment in cluster", ">=", 4),
    ),
)
