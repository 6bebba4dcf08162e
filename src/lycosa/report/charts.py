"""The plots of a report: drawings in SVG without a library, in the colours of the page they stand in.

Every one is an image with a title and a text that says all its values, and shows them as text as well. Pure.
"""

from collections.abc import Sequence
from html import escape

from lycosa.report.making import Bar

WIDTH = 460
ROW = 22  # pixels of a row of a bar chart
LABEL_CHARS = 26
COLUMN_HEIGHT = 130
MOST_COLUMNS = 14


def bar_chart(name: str, title: str, bars: Sequence[Bar], classes: Sequence[str] = ()) -> str:
    """Rows: for names. `classes` are those of the bars, which give them their colours."""
    largest = max((bar.count for bar in bars), default=0) or 1
    label = min(LABEL_CHARS, max((len(bar.name) for bar in bars), default=0)) * 7 + 12
    room = WIDTH - label - 78
    parts = []
    for place, bar in enumerate(bars):
        y, width = place * ROW, max(1.5, room * bar.count / largest)
        kind = classes[place] if classes else "bar"
        parts.append(
            f'<text class="label" x="{label - 8}" y="{y + 15}" text-anchor="end">{escape(shorten(bar.name))}</text>'
            f'<rect class="{kind}" x="{label}" y="{y + 3}" width="{width:.1f}" height="{ROW - 7}" rx="2"/>'
            f'<text class="value" x="{label + width + 6:.1f}" y="{y + 15}">{bar.count:,}</text>'
        )
    return _drawing(name, title, bars, len(bars) * ROW + 4, parts)


def column_chart(name: str, title: str, bars: Sequence[Bar]) -> str:
    """Columns: for what has an order."""
    largest = max((bar.count for bar in bars), default=0) or 1
    step = min(64.0, WIDTH / max(1, len(bars)))
    left = (WIDTH - step * len(bars)) / 2
    parts = [f'<line class="axis" x1="0" x2="{WIDTH}" y1="{COLUMN_HEIGHT + 18}" y2="{COLUMN_HEIGHT + 18}"/>']
    for place, bar in enumerate(bars):
        height = max(1.5, COLUMN_HEIGHT * bar.count / largest) if bar.count else 0.0
        x, middle = left + place * step, left + (place + 0.5) * step
        parts.append(
            f'<rect class="bar" x="{x + 4:.1f}" y="{18 + COLUMN_HEIGHT - height:.1f}" width="{step - 8:.1f}"'
            f' height="{height:.1f}" rx="2"/>'
            f'<text class="value" x="{middle:.1f}" y="{12 + COLUMN_HEIGHT - height:.1f}" text-anchor="middle">'
            f"{compact(bar.count)}</text>"
            f'<text class="label small" x="{middle:.1f}" y="{COLUMN_HEIGHT + 33}" text-anchor="middle">'
            f"{escape(bar.name)}</text>"
        )
    return _drawing(name, title, bars, COLUMN_HEIGHT + 42, parts)


def folded(bars: Sequence[Bar]) -> list[Bar]:
    """No more columns than can be read: what is beyond goes into the last one."""
    if len(bars) <= MOST_COLUMNS:
        return list(bars)
    kept = list(bars[: MOST_COLUMNS - 1])
    return [*kept, Bar(f"{bars[MOST_COLUMNS - 1].name}+", sum(bar.count for bar in bars[MOST_COLUMNS - 1 :]))]


def compact(count: int) -> str:
    """`12`, `3.4k`, `1.2M`: short enough for a column."""
    if count < 10_000:
        return f"{count:,}"
    return f"{count / 1_000:.3g}k" if count < 1_000_000 else f"{count / 1_000_000:.3g}M"


def shorten(text: str) -> str:
    return text if len(text) <= LABEL_CHARS else text[: LABEL_CHARS - 1] + "…"


def _drawing(name: str, title: str, bars: Sequence[Bar], height: int, parts: Sequence[str]) -> str:
    values = "; ".join(f"{bar.name}: {bar.count:,}" for bar in bars) or "nothing"
    return (
        f'<svg role="img" viewBox="0 0 {WIDTH} {height}" aria-labelledby="{name}-title {name}-values">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-values">{escape(values)}</desc>'
        f"{''.join(parts)}</svg>"
    )
