"""Progress says enough and not too much."""

import io
import itertools
import threading

from hypothesis import given
from hypothesis import strategies as st

from proof.progress import CLEAR, LINE_S, ProgressSteps


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_progress_start_says_what_is_to_come_at_once() -> None:
    out = io.StringIO()
    with ProgressSteps(out, clock=Clock()).task(1000, "crawls"):
        assert out.getvalue() == "crawls: 0 of 1,000\n"


@given(st.lists(st.floats(0, 20), max_size=50))
def test_progress_any_pace_writes_at_most_one_line_in_its_interval(waits: list[float]) -> None:
    written_at: list[float] = []
    clock = Clock()

    class Out(io.StringIO):
        def write(self, text: str) -> int:
            written_at.append(clock.now_s)
            return super().write(text)

    view = ProgressSteps(Out(), clock=clock)
    for _ in range(2):
        with view.task(len(waits), "crawls") as step:
            for wait in waits:
                clock.now_s += wait
                step.advance()
    assert all(later - earlier >= LINE_S * (1 - 1e-9) for earlier, later in itertools.pairwise(written_at))


def test_progress_after_a_long_step_says_how_far() -> None:
    out, clock = io.StringIO(), Clock()
    with ProgressSteps(out, clock=clock).task(10, "crawls") as step:
        clock.now_s = LINE_S
        step.advance(7)
    assert out.getvalue().splitlines()[-1] == "crawls: 7 of 10"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_in_a_terminal_writes_over_its_line_without_a_thread_and_leaves_it_empty() -> None:
    out, clock = Terminal(), Clock()
    view, threads = ProgressSteps(out, clock=clock), threading.active_count()
    with view.task(10, "crawls") as step:
        clock.now_s = 1
        step.advance(4)
        view.say("half way")
        assert threading.active_count() == threads
    assert out.getvalue() == f"{CLEAR}crawls: 0 of 10{CLEAR}crawls: 4 of 10{CLEAR}· half way\n{CLEAR}"
