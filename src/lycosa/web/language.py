"""The language of a text, by py3langid, a detector that knows 140 of them: `detect_language(text)`.

Detection looks at some hundred characters from the middle of a text, which takes 0.1 ms; what is asked first waits for
the model, half a second and 100 MB. So it runs when somebody asks for it: the search index tells the languages that it
has stemmers for by their small words, which is quicker. Pure; any text gives a result. Used by stored pages and
exports.
"""

from functools import cache
from typing import Any, NamedTuple

SAMPLE_CHARS = 300
# Below this score a text says nothing of its language; 0.9 is as good as certain. A few words seldom reach it.
LEAST_SCORE = 0.5
_NO_LANGUAGE = frozenset(("zxx", "und"))


class DetectedLanguage(NamedTuple):
    """A language, of two or three letters (ISO 639), and how sure the detector is, from 0 to 1. Empty: it is not."""

    language: str = ""
    score: float = 0.0


def detect_language(text: str) -> DetectedLanguage:
    """The language that a text is written in."""
    sample = _sample(text)
    detector = _detector() if any(map(str.isalpha, sample)) else None
    if detector is None:
        return DetectedLanguage()
    found, score = detector.classify(sample)
    if score < LEAST_SCORE or found in _NO_LANGUAGE:
        return DetectedLanguage("", round(score, 4))
    return DetectedLanguage(found, round(score, 4))


def _sample(text: str) -> str:
    """Some of a text, whole words from behind its first third: at the beginning there are names and menus."""
    start = max(0, len(text) - SAMPLE_CHARS) // 3
    piece = text[start : start + SAMPLE_CHARS]
    cut = piece.partition(" ")[2].rpartition(" ")[0] if start else piece
    return " ".join((cut or piece).split()).encode("utf-8", "replace").decode()


@cache
def _detector() -> Any:
    """The detector; None where it is not installed, so that no language is known."""
    try:
        from py3langid.langid import MODEL_FILE, LanguageIdentifier  # lazy: half a second, when it is first asked for
    except ImportError:
        return None
    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
