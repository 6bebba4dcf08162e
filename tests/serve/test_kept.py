"""Answers that take long are made beside the pages, once."""

import threading

import pytest

from lycosa.errors import SettingsError
from lycosa.serve.source import SlowAnswers


def test_whoever_asks_for_a_slow_answer_is_not_kept_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    answers, may_end, made = SlowAnswers(), threading.Event(), list[int]()

    def make() -> int:
        may_end.wait()
        made.append(1)
        return 7

    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 0.0)
    assert answers.ask("ranks", make) is None
    assert answers.ask("ranks", make) is None
    may_end.set()
    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 60.0)
    assert answers.ask("ranks", make) == 7
    assert made == [1]
    assert answers.ask("ranks", lambda: 8, anew=True) == 8


def test_former_answer_stands_while_the_next_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lycosa.serve.source.SLOW_FOR_S", -1.0)
    monkeypatch.setattr("lycosa.serve.source.KEPT_TIMES", 0.0)
    answers, may_end = SlowAnswers(), threading.Event()

    def make() -> int:
        may_end.wait()
        return 8

    assert answers.ask("ranks", lambda: 7) == 7
    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 0.0)
    assert answers.ask("ranks", make) == 7
    may_end.set()
    monkeypatch.setattr("lycosa.serve.source.PATIENCE_S", 60.0)
    assert answers.ask("ranks", make) == 8


def test_what_goes_wrong_is_told_to_whoever_asks_and_tried_again() -> None:
    def fail() -> int:
        raise SettingsError("it cannot be")

    answers = SlowAnswers()
    with pytest.raises(SettingsError, match="cannot be"):
        answers.ask("ranks", fail)
    assert answers.ask("ranks", lambda: 7) == 7
