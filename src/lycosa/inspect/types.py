"""Which media types a user asks for: one (`text/html`), a pattern (`image/*`), or a kind of media (`pdf`).

The filter `--type` of `lycosa urls` and of exports.
"""

from collections.abc import Sequence
from functools import partial

from lycosa.errors import SettingsError
from lycosa.web import MediaKind, matches_pattern, media_kind, pattern_pieces

_KINDS = tuple(map(str, MediaKind))
_MOST_KNOWN = 10_000


def read_type(text: str) -> str:
    """One of them as a user writes it; raises SettingsError for what is none."""
    word = text.strip().lower()
    if "/" not in word and word not in _KINDS:
        raise SettingsError(
            f"--type is {text!r}: give a media type such as text/html or image/*, or {', '.join(_KINDS)}"
        )
    return word


class TypeFilter:
    """Tells whether a media type is one of those that are asked for; remembers its answers."""

    def __init__(self, types: Sequence[str]) -> None:
        self._patterns = [partial(matches_pattern, pattern_pieces(word), to_end=True) for word in types if "/" in word]
        self._kinds = {word for word in types if "/" not in word}
        if "html" in self._kinds:
            self._kinds.add("xhtml")
        self._known: dict[str, bool] = {}

    def __repr__(self) -> str:
        return f"<TypeFilter kinds={sorted(self._kinds)} patterns={len(self._patterns)}>"

    def has(self, essence: str) -> bool:
        found = self._known.get(essence)
        if found is None:
            found = str(media_kind(essence)) in self._kinds or any(fits(essence) for fits in self._patterns)
            if len(self._known) < _MOST_KNOWN:
                self._known[essence] = found
        return found
