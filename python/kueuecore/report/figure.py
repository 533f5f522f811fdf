"""A picture with what it says in words and as a table, for those who do not see it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["BORROWED", "COLORS", "FEW_AND_MANY", "OTHERS", "WIDTH", "Figure", "svg"]

WIDTH = 900
"""How wide a picture is drawn, in pixels; the page scales it."""
COLORS = ("#3b78c2", "#c25b3b", "#3b8f5f", "#8d5bb5", "#a3842b", "#2b8fa3", "#b5477d", "#6b7a3b", "#5b6bd6", "#94593b")
"""Each has a contrast of at least 3 : 1 with both backgrounds of the page."""
FEW_AND_MANY = ("#6593d6", "#2c66b8")
"""The ends of a scale, with such a contrast, too."""
OTHERS = "all others"
BORROWED = "borrowed"
_SIZES = {"labelFontSize": 12, "titleFontSize": 12}
_SYMBOLS = {"symbolType": "square", "symbolStrokeWidth": 3, "symbolSize": 80, "columnPadding": 24, "symbolOpacity": 1}
_ID = re.compile(r'(id="|url\(#|href="#)(?=[A-Za-z_])')


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One picture of the page, or a table alone.

    Args:
        title: Its heading.
        says: What is to be seen, in a sentence or two.
        picture: SVG; empty: the table stands in its place.
        header: The columns of its table.
        rows: The rows; more than the page can show are cut.
        note: What has to be known to read it.
    """

    title: str
    says: str
    picture: str = ""
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    note: str = ""


def svg(chart: Any, *, name: str) -> str:
    """A chart of altair as SVG that may stand in a page with others.

    Args:
        chart: The chart.
        name: What the ids in it begin with.
    """
    import vl_convert

    # `currentColor` is the colour of the page's text, light or dark.
    plain = {"labelColor": "currentColor", "titleColor": "currentColor"}
    lines = {"domainColor": "currentColor", "tickColor": "currentColor", "gridColor": "currentColor"}
    themed = chart.configure(
        background="transparent",
        font="Arial, Helvetica, sans-serif",
        # Whoever looks may have a wider font than the one that was measured.
        padding=12,
        axis={**plain, **lines, **_SIZES, "gridOpacity": 0.15, "titleFontWeight": "normal", "labelLimit": 220},
        legend={**plain, **_SYMBOLS, "labelFontSize": 12, "title": None, "orient": "top", "columns": 4},
        view={"stroke": "transparent"},
    )
    picture = vl_convert.vegalite_to_svg(themed.to_dict())
    # Two pictures of a page must not share an id, nor keep a size that no phone has.
    picture = _ID.sub(rf"\g<1>{name}-", picture)
    return re.sub(r'<svg ([^>]*?)width="(\d+)" height="(\d+)"', r'<svg \1data-width="\2"', picture, count=1)
