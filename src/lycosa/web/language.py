"""The language of a text, by py3langid, a detector that knows 140 of them: `detect_language(text)`.

Detection looks at some hundred characters from the middle of a text, which takes 0.1 ms; what is asked first waits for
the model, half a second and 100 MB. So it runs when somebody asks for it: the search index tells the languages that it
has stemmers for by their small words, which is quicker. English, which most pages are in, is plain from its small
words, and `language_of_text` asks the detector of other texts only: no other language has many of those. Pure; any text
gives a result. Used by stored pages and exports.
"""

from functools import cache
from typing import Any, NamedTuple

SAMPLE_CHARS = 300
# Below this score a text says nothing of its language; 0.9 is as good as certain. A few words seldom reach it.
LEAST_SCORE = 0.5
ENGLISH_CHARS = 1_000  # that are looked at for small words
ENGLISH_WORDS, ENGLISH_SHARE = 5, 0.15  # so many different ones, and such a share of all words, make a text English
_ENGLISH = frozenset(
    "the and of to that for with are this by it from which you not have has can will these when other been their "
    "should only where would such any into than if".split()
)
_NO_LANGUAGE = frozenset(("zxx", "und"))


class DetectedLanguage(NamedTuple):
    """A language, of two or three letters (ISO 639), and how sure the detector is, from 0 to 1. Empty: it is not."""

    language: str = ""
    score: float = 0.0


def language_of_text(text: str) -> str:
    """The language that a text is written in, without a score; empty where that cannot be told."""
    start = max(0, len(text) - ENGLISH_CHARS) // 3
    words = text[start : start + ENGLISH_CHARS].lower().split()
    small = [word for word in words if word in _ENGLISH]
    is_english = len(set(small)) >= ENGLISH_WORDS and len(small) >= ENGLISH_SHARE * len(words)
    return "en" if is_english else detect_language(text).language


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
