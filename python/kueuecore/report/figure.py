"""A chart with its message in words and as a table, for readers who cannot see it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BORROWED", "COLORS", "FEW_AND_MANY", "OTHERS", "WIDTH", "Figure", "svg"]

WIDTH = 900
"""The width of a chart in pixels; the page scales it."""
COLORS = ("#3b78c2", "#c25b3b", "#3b8f5f", "#8d5bb5", "#a3842b", "#2b8fa3", "#b5477d", "#6b7a3b", "#5b6bd6", "#94593b")
"""Each has a contrast of at least 3:1 with both backgrounds of the page."""
FEW_AND_MANY = ("#6593d6", "#2c66b8")
"""The ends of a scale, with the same contrast."""
OTHERS = "all others"
BORROWED = "borrowed"
_SIZES = {"labelFontSize": 12, "titleFontSize": 12}
_SYMBOLS = {"symbolType": "square", "symbolStrokeWidth": 3, "symbolSize": 80, "columnPadding": 24, "symbolOpacity": 1}
_MARK = re.compile(r'<(path|line|rect) aria-label="([^"]*)" role="graphics-symbol" ([^>]*?)/>')
_ID = re.compile(r'(id="|url\(#|href="#)(?=[A-Za-z_])')


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One chart on the page, or only a table.

    Args:
        title: Its heading.
        says: What it shows, in a sentence or two.
        picture: SVG; empty to show the table instead.
        header: The columns of its table.
        rows: The rows, cut to as many as the page can show.
        note: How to read it.
    """

    title: str
    says: str
    picture: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    note: str = ""


def svg(chart: Any, *, name: str, has_titles: bool = False) -> str:
    """Render an Altair chart as SVG that can share a page with others.

    Args:
        chart: The chart.
        name: The prefix of its ids.
        has_titles: Whether its marks have descriptions, which are then shown where the pointer is.
    """
    import vl_convert

    # `currentColor` is the page's text colour, light or dark.
    plain = {"labelColor": "currentColor", "titleColor": "currentColor"}
    lines = {"domainColor": "currentColor", "tickColor": "currentColor", "gridColor": "currentColor"}
    themed = chart.configure(
        background="transparent",
        font="Arial, Helvetica, sans-serif",
        # A viewer's font may be wider than the one measured.
        padding=12,
        axis={**plain, **lines, **_SIZES, "gridOpacity": 0.15, "titleFontWeight": "normal", "labelLimit": 220},
        legend={**plain, **_SYMBOLS, "labelFontSize": 12, "title": None, "orient": "top", "columns": 4},
        view={"stroke": "transparent"},
    )
    picture = vl_convert.vegalite_to_svg(themed.to_dict(validate=False))
    if has_titles:
        picture = _MARK.sub(r"<\1 \3><title>\2</title></\1>", picture)
    # Charts on one page must not share ids, nor keep a size that no phone has.
    picture = _ID.sub(rf"\g<1>{name}-", picture)
    return re.sub(r'<svg ([^<>]*?)width="(\d+)" height="(\d+)"', r'<svg \1data-width="\2"', picture, count=1)
