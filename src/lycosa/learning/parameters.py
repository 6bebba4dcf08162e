"""Parameters that make no difference: session ids, tracking marks, learned from what a host answers.

Where `/a?sid=1` and `/a?sid=2` have the same text, and so it is on several paths and hardly ever otherwise, `sid` is
*idle* on this host: of all URLs that differ in it alone one is enough. No list of names. A parameter stands in the
query or, as `;jsessionid=…`, at the end of the path. URLs are asked for as written; `plain` is for the seen test only.
Pure; memory: `MOST_NAMES` names and `MOST_SAMPLES` samples a host. `note` after a fetch, `plain` before.
"""

import msgspec
import xxhash

MOST_NAMES = 8
MOST_NAME_CHARS = 32
MOST_SAMPLES = 128  # those with the smallest hashes: the same paths whenever they come by
MOST_PARAMETERS = 4  # of one URL that are looked at
SAME_LEAST = 4  # paths that must agree
SAME_SHARE = 16  # of agreeing for every one that does not


class ParameterEvidence(msgspec.Struct, array_like=True):
    """Paths on which a parameter made no difference, and on which it did."""

    same: int = 0
    other: int = 0

    @property
    def is_idle(self) -> bool:
        return self.same >= SAME_LEAST and self.same >= SAME_SHARE * self.other


class ParameterSample(msgspec.Struct, array_like=True):
    """A path without one parameter: the value it was fetched with, and the text."""

    value: int
    text: int
    is_counted: bool = False


class ParameterRow(msgspec.Struct, array_like=True, omit_defaults=True):
    """What is stored with the host: the names; samples come again."""

    names: dict[str, ParameterEvidence] = {}


class QueryParameters:
    """The query parameters of one host, and which of them make no difference."""

    def __init__(self, row: ParameterRow | None = None) -> None:
        self._names = dict(row.names) if row else {}
        self._samples: dict[int, ParameterSample] = {}

    def __repr__(self) -> str:
        return f"<Parameters idle={self.idle}>"

    @property
    def idle(self) -> list[str]:
        return [name for name, evidence in self._names.items() if evidence.is_idle] if self._names else []

    def plain(self, path: str) -> str:
        """Return the path without its idle parameters: equal for URLs that lead to the same document."""
        if not self._names or "=" not in path:
            return path
        base, parameters = _split(path)
        kept = [(name, text) for name, text in parameters if name not in self._names or not self._names[name].is_idle]
        return path if len(kept) == len(parameters) else _joined(base, kept)

    def was_fetched(self, plain: str) -> bool:
        """Return whether a URL with this plain form was fetched before its parameter was found idle, as far as samples
        go."""
        return any(_hash(f"{name}\n{plain}") in self._samples for name in self.idle)

    def note(self, path: str, text: int) -> None:
        """Compare a page that was fetched with earlier ones; `text` is a hash of its text."""
        if "=" not in path and not self._names:
            return
        base, parameters = _split(path)
        present = {name for name, _ in parameters}
        for i, (name, written) in enumerate(parameters[:MOST_PARAMETERS]):
            if name and self._is_watched(name):
                self._compare(name, _joined(base, parameters[:i] + parameters[i + 1 :]), written, text)
        for name in self._names.keys() - present:
            self._compare(name, path, "", text)

    def _is_watched(self, name: str) -> bool:
        if name not in self._names and len(self._names) < MOST_NAMES and len(name) <= MOST_NAME_CHARS:
            self._names[name] = ParameterEvidence()
        return name in self._names

    def _compare(self, name: str, rest: str, written: str, text: int) -> None:
        key, value = _hash(f"{name}\n{rest}"), _hash(written)
        sample, evidence = self._samples.get(key), self._names[name]
        if sample is None:
            self._samples[key] = ParameterSample(value, text)
            if len(self._samples) > MOST_SAMPLES:
                del self._samples[max(self._samples)]
        elif sample.value != value and not sample.is_counted:
            sample.is_counted = True
            if sample.text == text:
                evidence.same += 1
            else:
                evidence.other += 1

    def pack(self) -> ParameterRow:
        return ParameterRow(self._names)


def _split(path: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the path and its parameters as (name, as written): `/a;s=1?b=2` → `/a`, [(;s, ;s=1), (b, b=2)]."""
    path, _, query = path.partition("?")
    found = [(part.partition("=")[0], part) for part in query.split("&")] if query else []
    base, mark, matrix = path.rpartition(";")
    if mark and "=" in matrix and "/" not in matrix:
        return base, [(f";{matrix.partition('=')[0]}", f";{matrix}"), *found]
    return path, found


def _joined(base: str, parameters: list[tuple[str, str]]) -> str:
    matrix = "".join(text for _, text in parameters if text[:1] == ";")
    query = "&".join(text for _, text in parameters if text[:1] != ";")
    return f"{base}{matrix}?{query}" if query else base + matrix


def _hash(text: str) -> int:
    return xxhash.xxh3_64_intdigest(text.encode("utf-8", "surrogatepass"))
