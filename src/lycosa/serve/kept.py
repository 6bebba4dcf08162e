"""Answers that many viewers ask for, or that take long to make: kept for a while, so that each is made once.

`Kept` makes its value when it is asked for, while others wait. `SlowAnswers` makes one after the other on a thread of
its own, and whoever asks is told to come back.
"""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

KEPT_TIMES = 10.0  # so many times as long as it took to make is a value kept
PATIENCE_S = 0.4  # a page is to come up within a second
SLOW_FOR_S = 60.0
MOST_KEPT = 16  # slow answers

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that is made anew when it is `for_s` old, or later where it takes long to make."""

    def __init__(self, make: Callable[[], T], *, for_s: float) -> None:
        self._make, self._for_s = make, for_s
        self._value: T | None = None
        self._until = 0.0
        self._lock = threading.Lock()

    def value(self) -> T:
        with self._lock:
            began = time.monotonic()
            if self._value is None or began > self._until:
                self._value = self._make()
                ended = time.monotonic()
                self._until = ended + max(self._for_s, KEPT_TIMES * (ended - began))
            return self._value


class _SlowAnswer:
    """One answer, from when it is begun; `until` says how long it counts once it is there. `former` is the one before,
    which stands for it meanwhile."""

    def __init__(self, former: Any = None) -> None:
        self.former = former
        self.future: Future[Any] = Future()
        self.until = float("inf")

    @property
    def value(self) -> Any:
        """The value, or as long as there is none the former one."""
        return self.future.result() if self.future.done() and not self.future.exception() else self.former

    def make(self, make: Callable[[], Any], turn: threading.Lock) -> None:
        with turn:
            began = time.monotonic()
            try:
                self.future.set_result(make())
            except BaseException as error:  # it belongs to whoever asks
                self.until = 0.0
                self.future.set_exception(error)
                return
            ended = time.monotonic()
            self.until = ended + max(SLOW_FOR_S, KEPT_TIMES * (ended - began))


class SlowAnswers:
    """The answers of one collection, by names that tell them apart."""

    def __init__(self) -> None:
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._answers: dict[str, _SlowAnswer] = {}

    def __repr__(self) -> str:
        return f"<SlowAnswers {len(self._answers)}>"

    def ask(self, name: str, make: Callable[[], T], *, anew: bool = False) -> T | None:
        """The answer, or None while it is made for the first time. What goes wrong is raised here."""
        with self._lock:
            answer = self._answers.get(name)
            if answer is None or time.monotonic() > answer.until or (anew and answer.future.done()):
                answer = self._answers[name] = _SlowAnswer(None if anew or answer is None else answer.value)
                while len(self._answers) > MOST_KEPT:
                    del self._answers[next(iter(self._answers))]
                # A daemon: Ctrl-C does not wait for it.
                threading.Thread(target=answer.make, args=(make, self._turn), daemon=True).start()
        try:
            found: T | None = answer.future.result(PATIENCE_S)
        except TimeoutError:
            found = answer.former
        return found
