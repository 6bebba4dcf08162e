"""The pattern of a path: what the pages of one family have in common, numbers and ids folded.

    /thread/4711?sid=9f3a…  →  /thread/#?sid=*        /loop/a/b/a/b/a/  →  /loop/+/

A number is `#`; a hash, UUID or random-looking id is `*`; from the first folder that comes back in a path on, all
folders are one `+`, so that a path loop stays one family however deep it gets and whatever turns it takes. Parameters
are sorted. Escapes (`%2F`) are no numbers.
Pure, linear in the length, never raises, the result at most `MOST_CHARS` long. Called by mining and budgets.
"""

import re
from collections import Counter
from functools import lru_cache

import xxhash

CACHED = 1_024  # a URL is folded when its turn comes, and again when its page is there
MOST_CHARS = 160  # of a pattern; what is longer ends in a hash of the rest
ID_LEAST = 8  # shorter words of letters and digits are names with a number in them: `h264`, `s01e02`
ID_GROUP = 2.6  # letters or digits in a row, on average: below it a word is no human's. `dQw4w9WgXcQ` has 1.3
NUMBERS_IN_A_ROW = 4  # segments that are nothing but a number; further ones are a loop

# A UUID, an escape, or a word. Fixed lengths and one plain run: linear.
_UUID = r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])"
WORD = re.compile(rf"{_UUID}|%[0-9A-Fa-f]{{2}}|[0-9A-Za-z]+")
_DIGIT = re.compile("[0-9]")
_DIGITS = re.compile("[0-9]+")
_GROUP = re.compile("[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_HEX = re.compile("[0-9a-f]+|[0-9A-F]+")


@lru_cache(CACHED)
def fold(path: str) -> str:
    """The pattern of a path with its query, as `Url.path` has them."""
    path, mark, query = path.partition("?")
    pattern = _fold_path(path)
    if mark:
        pattern += "?" + "&".join(sorted(map(_fold_parameter, query.split("&"))))
    if len(pattern) > MOST_CHARS:
        rest = xxhash.xxh3_64_hexdigest(pattern.encode("utf-8", "surrogatepass"))
        pattern = f"{pattern[: MOST_CHARS - 17]}~{rest}"
    return pattern


def is_id(word: str) -> bool:
    """Whether a word of letters and digits was made by a machine: hexadecimal, a UUID, base 36 or base 62."""
    if len(word) < ID_LEAST or word.isdigit() or not _DIGIT.search(word):
        return False
    return bool(_HEX.fullmatch(word)) or "-" in word or len(word) < ID_GROUP * len(_GROUP.findall(word))


def _fold_path(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return _fold_folder(folder) + slash + _fold_words(name)


@lru_cache(CACHED)
def _fold_folder(path: str) -> str:
    """Of most paths this was asked a moment ago."""
    folders = path.split("/")
    words = [folder for folder in folders if folder and not folder.isdigit()]
    again = {word for word, times in Counter(words).items() if times > 1} if len(set(words)) < len(words) else ()
    numbers, folded = 0, []
    for folder in folders:
        if folder in again:
            folded.append("+")
            break
        numbers = numbers + 1 if folder.isdigit() else 0
        if numbers <= NUMBERS_IN_A_ROW:
            folded.append(_fold_words(folder))
    return "/".join(folded)


def _fold_words(text: str) -> str:
    return WORD.sub(_folded, text) if _DIGIT.search(text) else text


def _folded(match: re.Match[str]) -> str:
    word = match[0]
    if word[0] == "%":
        return word
    return "*" if is_id(word) else _DIGITS.sub("#", word)


def _fold_parameter(parameter: str) -> str:
    """A value with a digit in it is a number or an id, whatever it looks like."""
    name, equals, value = parameter.partition("=")
    if _DIGIT.search(value):
        value = "#" if value.isdigit() else "*"
    return f"{_fold_words(name)}{equals}{value}"
