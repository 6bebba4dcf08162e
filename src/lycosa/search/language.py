"""The language of a text, as far as tokenising needs to know it, and scripts that are written without spaces.

    language_of("de-AT", "Die Wärmepumpe …")  →  "de"         OTHER for all that has no stemmer here
    spaced("太陽光 power")                     →  "太陽 陽光 power"       accents written apart are put together

The language that a page declares is believed unless the frequent small words of its text plainly belong to another. A
page with too little text is taken to be in the language of its host: scores compare best within one language. Pure.
"""

import re
import unicodedata
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from itertools import pairwise

OTHER = "xx"
# Language → the stemmer's name. Every one of them costs four bytes a document: keep the list short.
STEMMED = {
    "en": "english",
    "de": "german",
    "fr": "french",
    "es": "spanish",
    "it": "italian",
    "pt": "portuguese",
    "nl": "dutch",
    "ru": "russian",
}
LANGUAGES = (*STEMMED, OTHER)

_HOSTS = 10_000
SAMPLE_CHARS = 2_000
_ENOUGH = 5  # different small words: with fewer a text says nothing of its language
_PLAINLY = 2.5  # times as many as a page's own language has: then the text is believed, not the page
_SMALL_WORDS = {
    "en": "the and of to in is that for with as are this be by it from or an which you not have has can will",
    "de": "der die das und ist von nicht mit den des ein eine sich auf auch werden wird im zu als oder wenn dem einer",
    "fr": "le les des est une dans pour que qui sur par pas avec sont cette vous du au aux ce il ou et un",
    "es": "el los las del una por con que para es en como más este esta pero sus al lo se un son y o",
    "it": "il gli della di che per una con non sono nel alla dei delle anche più questo come si è ed un",
    "pt": "os das dos uma com não para que em mais como ao pela são por seu sua ou um do da na no é",
    "nl": "de het een van en dat niet zijn voor met op aan ook door wordt bij worden deze naar als te dit om",
    "ru": "и в не на что с по как это для из от или при его также если они был быть",
}
_LISTED = Counter(word for words in _SMALL_WORDS.values() for word in words.split())
# Words of more than one of them tell nothing.
_TELLING = {
    language: frozenset(word for word in words.split() if _LISTED[word] == 1)
    for language, words in _SMALL_WORDS.items()
}
# Chinese, Japanese and Thai write no spaces; one of their characters alone is a word, too.
UNSPACED = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002ffff"
_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
# In UTF-8 all of these, and all characters that join with the one before them, begin with one of these bytes, and
# little else does: a look at bytes is quicker.
_LEADS = b"\xcc\xcd\xd9\xe0\xe1\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xef\xf0"
_NO_LEADS = bytes(code for code in range(256) if code not in _LEADS)


def language_of(declared: str, text: str, usual: str = OTHER) -> str:
    """The language to tokenise a text in; where neither the page nor its text says, the `usual` one."""
    own = declared.lower().replace("_", "-").partition("-")[0]
    words = set(text[:SAMPLE_CHARS].lower().split())
    found = {language: len(words & telling) for language, telling in _TELLING.items()}
    best = max(found, key=found.__getitem__)
    if found[best] >= _ENOUGH and (not own or found[best] >= _PLAINLY * max(1, found.get(own, 0))):
        return best
    if own:
        return own if own in STEMMED else OTHER
    return usual


class HostLanguages:
    """The usual language of each host, for pages with too little text. Remembers a bounded number of hosts; `counted`
    gives the known pages of a new host by language."""

    def __init__(self, counted: Callable[[str], Mapping[str, int]]) -> None:
        self._counted = counted
        self._hosts: OrderedDict[str, Counter[str]] = OrderedDict()

    def __repr__(self) -> str:
        return f"<HostLanguages hosts={len(self._hosts)}>"

    def language_of(self, host: str, declared: str, text: str) -> str:
        """The language of a page of this host, which is counted for the next ones."""
        counts = self._hosts.get(host)
        if counts is None:
            counts = self._hosts[host] = Counter(self._counted(host))
            if len(self._hosts) > _HOSTS:
                self._hosts.popitem(last=False)
        usual = max(counts, key=counts.__getitem__) if counts else OTHER
        found = language_of(declared, text, usual)
        if found != OTHER:
            counts[found] += 1
        return found


def shown_language(declared: str, tokenised: str) -> str:
    """The language that a page is found under by `lang:`, one of two or three letters; empty if nobody knows."""
    own = declared.lower().replace("_", "-").partition("-")[0]
    if tokenised != OTHER:
        return tokenised
    return own if own.isalpha() and 2 <= len(own) <= 3 else ""


def spaced(text: str) -> str:
    """The text with runs of unspaced characters as overlapping pairs, where one alone stays, and with letters and their
    accents as one character each."""
    if text.isascii() or not text.encode("utf-8", "replace").translate(None, _NO_LEADS):
        return text
    return _UNSPACED_RUN.sub(_pairs, unicodedata.normalize("NFC", text))


def _pairs(run: re.Match[str]) -> str:
    characters = run[0]
    if len(characters) == 1:
        return f" {characters} "
    return " " + " ".join([first + second for first, second in pairwise(characters)]) + " "
