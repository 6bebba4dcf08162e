"""Writes settings as the `lycosa.toml` of a collection: every setting with its meaning, in groups.

Law: what `to_toml` writes, `read_file` and `merge` read back equal. The caller writes it as UTF-8.
"""

from lycosa.settings.schema import GROUPS, CrawlSettings
from lycosa.settings.values import NONE

HEADER = """\
# The settings of this crawl. The same command again goes on with them; change one here, or for good on the command
# line. Times are in seconds, or "500ms", "10m", "2h"; sizes in bytes, or "500MB", "2GiB"; "none" is no limit.
"""
# From here on digits are set apart by threes.
LONG_NUMBER = 10_000
# A setting's meaning stands behind it from this column on, or above it where the line would get too long.
COMMENT_COLUMN = 36
LINE_CHARS = 120


def to_toml(settings: CrawlSettings) -> str:
    """All settings in force, commented."""
    parts = [HEADER]
    for group in GROUPS:
        parts.append(f"\n# -- {group.title} --\n")
        parts += (_line(name, getattr(settings, name), field.description) for name, field in group.model_fields.items())
    return "".join(parts)


def _line(name: str, value: object, meaning: str | None) -> str:
    setting = f"{name} = {_value(value)}"
    line = f"{setting:<{COMMENT_COLUMN}}  # {meaning}"
    return f"{line}\n" if len(line) <= LINE_CHARS else f"# {meaning}\n{setting}\n"


def _value(value: object) -> str:
    match value:
        case None:
            return _text(NONE)
        case bool():
            return "true" if value else "false"
        case int():
            return f"{value:_}" if value >= LONG_NUMBER else str(value)
        case float():
            return repr(value)
        case tuple():
            return _list([_text(item) for item in value])
        case _:
            return _text(str(value))


def _list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    return line if len(line) <= LINE_CHARS else "[\n" + "".join(f"    {item},\n" for item in items) + "]"


def _text(value: str) -> str:
    """A basic string. The settings hold printable text only, so nothing but these two needs an escape."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
