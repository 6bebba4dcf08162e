"""The progress views: enough and not too much, in every width, on every stream, and never the end of a crawl."""

import errno
import io
import itertools
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from lycosa.cli.progress import LineView, SilentView, TerminalView, drawing, line_of, view_on
from lycosa.cli.wording import LINE_S, REDRAW_S
from lycosa.crawl.stats import CrawlStats, Retry, SlowHost

BUSY = CrawlStats(
    pages=12_345,
    bytes=152_400_000,
    queued=45_678,
    known=1_098_765,
    duplicates=12,
    in_flight=48,
    hosts=1_200,
    hosts_active=12,
    hosts_waiting=1_113,
    hosts_parked=7,
    failed={"connect-timeout": 5, "no-such-host": 30, "first-byte-timeout": 2, "tls": 1, "reset": 1},
    seconds=192.0,
    pages_per_s=87.3,
    bytes_per_s=1_234_567.0,
    slowest=(SlowHost("www.a-very-long-host-name.example.org", 12.3, 4_321), SlowHost("slow.example", 5.1, 12)),
    retrying=3,
    retries=(Retry("http://a.example/x", 1, "first-byte-timeout", 12.0), Retry("http://b.example/", 0, "503", 0.0)),
    left_s=250.0,
    standing="3 hosts wait until 12:03:20, robots of 1 host unreachable",
)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Broken(io.StringIO):
    """A terminal that went away."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error
        self.is_broken = False

    def write(self, text: str) -> int:
        if self.is_broken:
            raise self.error
        return super().write(text)

    def isatty(self) -> bool:
        return True


def drawn(stats: CrawlStats, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, highlight=False, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(drawing(stats, width=width))
    return [line.rstrip() for line in captured.get().splitlines()]


def test_drawing_says_everything_there_is_to_say() -> None:
    assert drawn(BUSY, 140) == [
        "pages    12,345, 87.3/s, 152 MB, 1.2 MB/s",
        "queued   45,678 of 1,098,765 known URLs, 48 in flight, 12 duplicates",
        "hosts    12 active, 1,113 waiting, 7 parked, 1,200 in all",
        "failed   30 no such host, 5 connect timeout, 2 first byte timeout, 1 reset, 1 tls",
        "retries  3 URLs waiting, try 2 of 3 after first byte timeout in 12 s: http://a.example/x, +1",
        "slowest  12 s www.a-very-long-host-name.example.org (4,321 queued), 5.1 s slow.example (12 queued)",
        "time     3m 12s, 4m 10s left",
        "now      3 hosts wait until 12:03:20, robots of 1 host unreachable",
    ]


def test_drawing_of_one_duplicate_is_in_the_singular() -> None:
    assert "queued   0 of 0 known URLs, 0 in flight, 1 duplicate" in drawn(CrawlStats(duplicates=1), 140)


def test_drawing_in_60_columns_counts_what_it_leaves_out() -> None:
    lines = drawn(BUSY, 60)
    assert "failed   30 no such host, 5 connect timeout, +3" in lines
    assert "hosts    12 active, 1,113 waiting, 7 parked, 1,200 in all" in lines
    assert lines[-2:] == ["now      3 hosts wait until 12:03:20, robots of 1 host", "         unreachable"]


@given(st.integers(20, 200), st.text(max_size=300))
def test_drawing_in_any_width_keeps_within_it(width: int, standing: str) -> None:
    stats = CrawlStats(failed=BUSY.failed, slowest=BUSY.slowest, known=10**12, standing=standing)
    console = Console(file=io.StringIO(), width=width)
    lines = console.render_lines(drawing(stats, width=width), pad=False)
    assert all(sum(part.cell_length for part in line) <= width for line in lines)


def test_drawing_of_a_crawl_that_has_just_begun_has_no_empty_rows() -> None:
    assert drawn(CrawlStats(), 80) == [
        "pages    0, 0.0/s, 0 B, 0 B/s",
        "queued   0 of 0 known URLs, 0 in flight",
        "hosts    0 active, 0 waiting, 0 parked, 0 in all",
        "failed   none",
        "time     0.0 s",
    ]


def test_line_says_the_same_in_one_line() -> None:
    assert line_of(BUSY) == (
        "12,345 pages, 87.3/s, 152 MB, 45,678 queued, hosts 12 active 1,113 waiting 7 parked, 39 failed, "
        "3 to be retried, 4m 10s left; "
        "3 hosts wait until 12:03:20, robots of 1 host unreachable"
    )


@given(st.lists(st.floats(0, 20), max_size=50))
def test_line_view_any_pace_writes_at_once_and_then_not_sooner_than_its_interval(waits: list[float]) -> None:
    written_at: list[float] = []
    clock = Clock()

    class Out(io.StringIO):
        def write(self, text: str) -> int:
            assert text.count("\n") == 1
            written_at.append(clock.now_s)
            return super().write(text)

    view = LineView(Out(), clock=clock)
    view.show(CrawlStats())
    for wait in waits:
        clock.now_s += wait
        view.show(BUSY)
    assert written_at[0] == 0
    assert all(later - earlier >= LINE_S * (1 - 1e-9) for earlier, later in itertools.pairwise(written_at))
    assert clock.now_s - written_at[-1] <= LINE_S


def test_line_view_says_at_once_and_once_that_nothing_could_be_fetched_yet() -> None:
    out, clock = io.StringIO(), Clock()
    view = LineView(out, clock=clock)
    for standing in ("", "h.example takes no connections", "h.example takes no connections"):
        view.show(CrawlStats(standing=standing))
    assert [line.partition("; ")[2] for line in out.getvalue().splitlines()] == ["", "h.example takes no connections"]


def test_line_view_on_a_stream_of_few_letters_writes_what_it_can() -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    LineView(out).show(CrawlStats(standing="wait…\x1b[2J\n"))
    assert raw.getvalue().endswith(b"; wait? [2J \n")


@pytest.fixture
def terminal() -> Iterator[tuple[TerminalView, io.StringIO, Clock]]:
    out, clock = io.StringIO(), Clock()
    view = TerminalView(Console(file=out, force_terminal=True, width=80, height=20), clock=clock)
    yield view, out, clock
    view.close()


def test_terminal_view_draws_at_its_pace_without_a_thread(terminal: tuple[TerminalView, io.StringIO, Clock]) -> None:
    view, out, clock = terminal
    threads = threading.active_count()
    view.show(CrawlStats(pages=1))
    clock.now_s = REDRAW_S / 2
    view.show(CrawlStats(pages=2_222))
    clock.now_s = REDRAW_S
    view.show(CrawlStats(pages=3_333))
    assert threading.active_count() == threads
    assert "2,222" not in out.getvalue()
    assert "3,333" in out.getvalue()


def test_terminal_view_closed_gives_the_cursor_back_and_draws_no_more(
    terminal: tuple[TerminalView, io.StringIO, Clock],
) -> None:
    view, out, clock = terminal
    view.show(BUSY)
    view.close()
    length = len(out.getvalue())
    clock.now_s = 100
    view.show(BUSY)
    view.close()
    assert len(out.getvalue()) == length
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


@pytest.mark.parametrize("error", [BrokenPipeError(errno.EPIPE, "pipe"), OSError(errno.EIO, "gone")])
@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_view_whose_terminal_goes_away_falls_silent(monkeypatch: pytest.MonkeyPatch, error: OSError, term: str) -> None:
    monkeypatch.setenv("TERM", term)
    out = Broken(error)
    view = view_on(out)
    assert isinstance(view, TerminalView if term == "xterm" else LineView)
    clock = Clock()
    monkeypatch.setattr(view, "_clock", clock)
    clock.now_s = 1e9
    view.show(BUSY)
    assert "12,345" in out.getvalue()
    out.is_broken = True
    for _ in range(3):
        clock.now_s += 1e9
        view.show(BUSY)
    view.close()


def test_view_on_a_stream_that_is_no_terminal_writes_lines_and_quiet_nothing() -> None:
    assert isinstance(view_on(io.StringIO()), LineView)
    out = io.StringIO()
    view = view_on(out, quiet=True)
    assert isinstance(view, SilentView)
    view.show(BUSY)
    view.close()
    assert out.getvalue() == ""


def test_line_of_a_recrawl_tells_what_was_revisited() -> None:
    line = line_of(CrawlStats(pages=250, run_visits=120, run_changed=7))
    assert line.startswith("250 pages, 120 revisited, 7 changed, ")


def test_view_says_that_politeness_sets_the_pace() -> None:
    said = "one request a second to a.example: this is as fast as politeness allows"
    stats = CrawlStats(pages=5, queued=80, standing="waiting: 1 host between two requests", pace=said)
    assert drawn(stats, 100)[-1] == f"now      {said}"
    assert line_of(stats).endswith(f"; {said}")


def test_note_is_said_at_once_whatever_was_drawn() -> None:
    stream = io.StringIO()
    LineView(stream).note("Stopping: finishing 2 requests")
    assert stream.getvalue() == "Stopping: finishing 2 requests\n"
