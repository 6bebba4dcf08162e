"""Writes `lycosa/settings/named.py`: the settings as a TypedDict, so that a type checker refuses a wrong name or type.

A TypedDict has to be written out, so `python -m proof.ground.named_settings` makes it from the schema. A test compares
the two.
"""

import dataclasses
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import lycosa.settings
from lycosa.settings.schema import CrawlSettings
from lycosa.settings.values import SettingTable

# Parameters of their own: the URLs, and parts that may be objects.
LEFT_OUT = frozenset("seeds typed_hosts resolver downloader filters analysers statistics pipelines".split())
HEAD = '''"""The settings by name, for type checkers: the keyword arguments of `Crawl` and `lycosa.crawl`.

Made from the schema by `python -m proof.ground.named_settings`; do not edit it by hand. Where the schema keeps a tuple
any sequence may be given. What has a parameter of its own is left out.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, TypedDict


class NamedSettings(TypedDict, total=False):
    """What can be set; docs/settings.md says what each one means."""

'''


def named_settings() -> str:
    """The source of `settings/named.py`."""
    fields = (field for field in dataclasses.fields(CrawlSettings) if field.name not in LEFT_OUT)
    return HEAD + "".join(f"    {field.name}: {_written(field.type)}\n" for field in fields)


def _written(kind: Any) -> str:
    """A type as it is written in the source."""
    if kind is SettingTable:
        return "Mapping[str, object] | Sequence[str]"
    if get_origin(kind) is Literal:
        return f"Literal[{', '.join(map(_quoted, get_args(kind)))}]"
    if get_origin(kind) is tuple:
        return f"Sequence[{_written(get_args(kind)[0])}]"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _quoted(word: str) -> str:
    return f'"{word}"'


if __name__ == "__main__":
    Path(lycosa.settings.__file__).with_name("named.py").write_text(named_settings())
