"""Long work in steps: a generator that yields every few milliseconds and returns its result.

Whoever must not be held up runs it a step at a time; everyone else lets it `finish` in one go.
"""

from collections.abc import Generator
from typing import TypeAlias, TypeVar

Result = TypeVar("Result")
Steps: TypeAlias = Generator[None, None, Result]


def finish(steps: Steps[Result]) -> Result:
    """Runs all steps; returns what they give."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
