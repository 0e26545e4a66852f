"""An archive as a page: one HTML file, offline, no script. What is not here: the answers (``queries``).

The pages of single results are written by the program from their JSON documents; an archive is read where Python is, and its
page is tables and one chart, so that it is written here. All text is escaped.
"""

from __future__ import annotations

from html import escape
from typing import Any, Dict, List, Tuple

from .queries import Answer
from .run import size

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --dim: #59636e; --line: #d1d9e0; --ground: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --line: #3d444d; --ground: #0d1117; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--ground); max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0; } h2 { font-size: 1.15rem; margin-top: 2.2rem; } p, figcaption { color: var(--dim); }
table { border-collapse: collapse; width: 100%; } .wide { overflow-x: auto; }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; color: var(--dim); } .number { text-align: right; font-variant-numeric: tabular-nums; }
td.text { white-space: normal; overflow-wrap: anywhere; } figure { margin: 0; } svg { width: 100%; height: auto; } svg text { fill: var(--dim); font-size: 11px; }
"""

COLOURS = {
    "receive_window": "#2f6fde", "send_buffer": "#d9730d", "congestion_window": "#8250df", "ack_delay": "#bf3989",
    "segment_size": "#9a6700", "reordering": "#1a7f7f", "handshake": "#cf222e", "cpu": "#6e7781", "path": "#2da44e",
    "application": "#8c959f", "insufficient_evidence": "#afb8c1",
}

TITLES = {
    "lost_s": "lost, s", "rate_bps": "Mbit/s", "median_rate_bps": "median, Mbit/s", "bytes": "payload",
    "lost_s_per_day_before": "lost a day before, s", "lost_s_per_day_after": "lost a day after, s",
    "median_rate_bps_before": "median before, Mbit/s", "median_rate_bps_after": "median after, Mbit/s",
}


def cell(column: str, value: Any) -> Tuple[str, bool]:
    """A value as people read it, and whether it is a number."""
    if value is None:
        return "-", False
    if "rate_bps" in column:
        return f"{value / 1e6:,.3g}" if value < 1e8 else f"{value / 1e6:,.0f}", True
    if column == "bytes":
        return size(value), True
    if isinstance(value, float):
        return f"{value:,.1f}", True
    if isinstance(value, int):
        return f"{value:,}", True
    text = str(value).replace("_", " ") if column in ("limiter", "usual_limiter") else str(value)
    return "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text), False


def heading(column: str) -> str:
    """A column's name as people read it."""
    return TITLES.get(column, column.replace("_", " "))


def page(title: str, counts: Dict[str, int], answers: List[Answer], days: Answer, problems: List[Dict[str, Any]]) -> str:
    """The whole page."""
    said = (
        f"{counts['connections']:,} connections of {counts['captures']:,} captures ({size(counts['capture_bytes'])}); "
        f"{counts['unreadable_captures']:,} unreadable, {counts['partial_captures']:,} read in part, {counts['failed_captures']:,} to be tried again."
    )
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width'>",
        "<meta http-equiv='Content-Security-Policy' content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><h1>{escape(title)}</h1><p>{escape(said)} ",
        "Lost is the time for which the limiter held the direction that carried more; time that the application or the ",
        "full path took is left out.</p>",
        _chart(days),
    ]
    parts += [_table(answer.title, answer.columns, answer.rows) for answer in answers]
    columns = ["file", "packet", "message"]
    parts.append(_table("What could not be read", columns, [tuple(one[name] for name in columns) for one in problems]))
    return "".join(parts) + "</body></html>\n"


def _table(title: str, columns: List[str], rows: List[Tuple[Any, ...]]) -> str:
    if not rows:
        return f"<h2>{escape(title)}</h2><p>Nothing.</p>"
    cells = [[cell(column, value) for column, value in zip(columns, row)] for row in rows]
    numbers = [any(row[place][1] for row in cells) for place in range(len(columns))]

    def style(place: int) -> str:
        return " class=number" if numbers[place] else " class=text" if columns[place] == "message" else ""

    head = "".join(f"<th scope=col{style(place)}>{escape(heading(name))}" for place, name in enumerate(columns))
    body = "".join(
        "<tr>" + "".join(f"<td{style(place)}>{escape(text)}" for place, (text, _) in enumerate(row)) for row in cells
    )
    return f"<h2>{escape(title)}</h2><div class=wide><table><thead><tr>{head}<tbody>{body}</table></div>"


def _chart(days: Answer) -> str:
    """Seconds lost, a bar for each day, its limiters upon each other. The table below it says the same in figures."""
    names = sorted({row[0] for row in days.rows})
    most = max((sum(row[3] for row in days.rows if row[0] == name) for name in names), default=0)
    if not most:
        return ""
    width, height, left, under = 960, 220, 60, 24
    step = (width - left) / len(names)
    drawn = [f"<line x1={left} x2={width} y1={height} y2={height} stroke=currentColor stroke-opacity=.3 />",
             f"<text x=0 y=12>{most:,.0f} s</text><text x=0 y={height}>0 s</text>"]
    label_every = -(-len(names) // 12)
    for place, name in enumerate(names):
        top = float(height)
        for _, limiter, count, lost in (row for row in days.rows if row[0] == name):
            tall = lost / most * (height - 6)
            top -= tall
            told = escape(f"{name}: {limiter.replace('_', ' ')}, {lost:,.1f} s in {count:,} connections", quote=True)
            drawn.append(
                f"<rect x={left + place * step + step * .1:.1f} y={top:.1f} width={step * .8:.1f} height={tall:.1f} "
                f"fill='{COLOURS.get(limiter, '#888')}'><title>{told}</title></rect>"
            )
        if place % label_every == 0:
            drawn.append(f"<text x={left + place * step + step * .1:.1f} y={height + 16}>{escape(name)}</text>")
    found = sorted({row[1] for row in days.rows})
    keys = " ".join(f"<span><span style='color:{COLOURS.get(one, '#888')}' aria-hidden=true>&#9632;</span> "
                    f"{escape(one.replace('_', ' '))}</span>" for one in found)
    label = "Seconds lost by day and limiter"
    return (
        f"<h2>{label}</h2><figure><svg viewBox='0 0 {width} {height + under}' role=img aria-label='{label}'>{''.join(drawn)}</svg>"
        f"<figcaption>{keys}</figcaption></figure>" + _table("By day", days.columns, days.rows)
    )
