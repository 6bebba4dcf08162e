"""HTML for notebooks: small tables in which everything is escaped, whatever a page says.

A notebook shows the result of `_repr_html_` of the last value in a cell. Used by the records that programs get to see.
"""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

ROWS_SHOWN = 50
LINES_SHOWN = 6  # of a page's text
CHARACTERS_SHOWN = 600


def html_table(title: str, headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table with a title above it. What begins as a URL does is shown as a link."""
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<div><b>{escape(title)}</b><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"


def html_facts(title: str, facts: Mapping[str, object]) -> str:
    """What is known of one thing: a line for each fact that there is."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>{_cell(value)}</tr>"
        for name, value in facts.items()
        if value
    )
    return f"<div><b>{escape(title)}</b><table><tbody>{rows}</tbody></table></div>"


def page_html(url: str, *, title: str, answer: str, text: str) -> str:
    """A page: where it is, what came, and how its text begins."""
    lines = [line for line in text.splitlines() if line.strip()][:LINES_SHOWN]
    return html_facts(title or url, {"URL": url, "answer": answer, "text": "\n".join(lines)[:CHARACTERS_SHOWN]})


def _cell(value: object) -> str:
    text = f"{value:,}" if isinstance(value, int) else str(value)
    shown = escape(text).replace("\n", "<br>")
    if text.startswith(("http://", "https://")):
        shown = f'<a href="{escape(text)}" rel="noreferrer" target="_blank">{shown}</a>'
    return f"<td style='text-align:left'>{shown}</td>"
