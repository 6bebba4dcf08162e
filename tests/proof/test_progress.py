"""Progress says enough and not too much."""

import io
import itertools
import threading

from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from proof.progress import LINE_S, LineSteps, TerminalSteps, view_on


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_line_view_start_says_what_is_to_come_at_once() -> None:
    out = io.StringIO()
    with LineSteps(out, clock=Clock()).task(1000, "crawls"):
        assert out.getvalue() == "crawls: 0 of 1,000\n"


@given(st.lists(st.floats(0, 20), max_size=50))
def test_line_view_any_pace_writes_at_most_one_line_in_its_interval(waits: list[float]) -> None:
    written_at: list[float] = []
    clock = Clock()

    class Out(io.StringIO):
        def write(self, text: str) -> int:
            written_at.append(clock.now_s)
            return super().write(text)

    view = LineSteps(Out(), clock=clock)
    for _ in range(2):
        with view.task(len(waits), "crawls") as step:
            for wait in waits:
                clock.now_s += wait
                step.advance()
    assert all(later - earlier >= LINE_S * (1 - 1e-9) for earlier, later in itertools.pairwise(written_at))


def test_line_view_after_a_long_step_says_how_far() -> None:
    out, clock = io.StringIO(), Clock()
    with LineSteps(out, clock=clock).task(10, "crawls") as step:
        clock.now_s = LINE_S
        step.advance(7)
    assert out.getvalue().splitlines()[-1] == "crawls: 7 of 10"


def test_terminal_view_run_draws_bars_without_a_thread_and_gives_the_cursor_back() -> None:
    out, clock = io.StringIO(), Clock()
    view = TerminalSteps(Console(file=out, force_terminal=True, width=80), clock=clock)
    threads = threading.active_count()
    with view.shown(), view.task(10, "[crawls]") as step:
        clock.now_s = 1
        step.advance(4)
        assert threading.active_count() == threads
    assert "[crawls]" in out.getvalue()
    assert "4/10" in out.getvalue()
    assert out.getvalue().rindex("\x1b[?25h") > out.getvalue().rindex("\x1b[?25l")


def test_view_on_a_stream_that_is_no_terminal_writes_lines() -> None:
    assert isinstance(view_on(io.StringIO()), LineSteps)
