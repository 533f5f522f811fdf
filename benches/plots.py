"""Lines on logarithmic axes as a small SVG file: a power of the size is a straight line, its slope the power.

Written by hand: a library for plots would be the heaviest tool of the project, for pictures of a few lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benches.figures import duration

__all__ = ["Line", "log_log"]

_WIDTH, _HEIGHT = 760, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 240, 34, 48
_COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00")
_STYLE = "text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
# Labels are so far from each other at least.
_LINE_HEIGHT = 15


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a plot.

    Args:
        name: What it shows; stands at its end.
        points: Sizes and nanoseconds, both above 0.
        is_model: Is it dashed, as something that was worked out and not measured?
    """

    name: str
    points: Sequence[tuple[float, float]]
    is_model: bool = False


def log_log(title: str, size: str, lines: Sequence[Line]) -> str:
    """A plot of nanoseconds over sizes.

    Args:
        title: What is shown.
        size: What is on the axis below.
        lines: At least one, with two points or more.

    Returns:
        The text of an SVG file.
    """
    xs, ys = ([point[axis] for line in lines for point in line.points] for axis in (0, 1))
    x_axis = _Axis.of(xs, _LEFT, _WIDTH - _RIGHT)
    y_axis = _Axis.of(ys, _HEIGHT - _BOTTOM, _TOP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f'<title>{escape(title)}</title><style>{_STYLE}</style><rect width="100%" height="100%" fill="white"/>',
        _text(_LEFT, 20, title, weight="bold"),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 10, size, anchor="middle"),
    ]
    for x, tick in x_axis.ticks():
        parts.append(f'<path class="grid" d="M{x:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        parts.append(_text(x, _HEIGHT - _BOTTOM + 16, f"{tick:,.0f}", anchor="middle"))
    for y, tick in y_axis.ticks():
        parts.append(f'<path class="grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(_text(_LEFT - 6, y + 4, duration(tick), anchor="end"))
    ends = _spread([y_axis.place(line.points[-1][1]) for line in lines])
    for number, (line, end) in enumerate(zip(lines, ends, strict=True)):
        color = _COLORS[number % len(_COLORS)]
        points = [(x_axis.place(x), y_axis.place(y)) for x, y in line.points]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashes = ' stroke-dasharray="6 4"' if line.is_model else ""
        parts.append(f'<polyline class="line" stroke="{color}"{dashes} points="{path}"/>')
        if not line.is_model:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in points]
        parts.append(
            f'<path stroke="{color}" d="M{points[-1][0] + 5:.1f} {points[-1][1]:.1f}l8 {end - points[-1][1]:.1f}"/>'
        )
        parts.append(_text(points[-1][0] + 17, end + 4, line.name))
    return "\n".join([*parts, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Axis:
    low: float
    high: float
    begin: float
    end: float

    @classmethod
    def of(cls, values: Sequence[float], begin: float, end: float) -> _Axis:
        """From one power of ten below all values to one above; of a narrow range, from the least to the largest."""
        low, high = math.log10(min(values)), math.log10(max(values))
        if high - low > 1:
            low, high = math.floor(low + 1e-9), math.ceil(high - 1e-9)
        return cls(low, max(high, low + 1e-9), begin, end)

    def place(self, value: float) -> float:
        return self.begin + (math.log10(value) - self.low) / (self.high - self.low) * (self.end - self.begin)

    def ticks(self) -> list[tuple[float, float]]:
        """Powers of ten; fewer than two of them say nothing, then 1, 2 and 5 times a power."""
        powers = range(math.floor(self.low), math.ceil(self.high) + 1)
        many = [factor * 10.0**power for power in powers for factor in (1, 2, 5)]
        inside = [tick for tick in many if self.low - 1e-6 <= math.log10(tick) <= self.high + 1e-6]
        whole = [tick for tick in inside if math.isclose(math.log10(tick) % 1, 0, abs_tol=1e-9)]
        return [(self.place(tick), tick) for tick in (whole if len(whole) > 1 else inside)]


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'


def _spread(places: Sequence[float]) -> list[float]:
    """The same places, moved down where they are too close to each other."""
    spread = list(places)
    last = -math.inf
    for index in sorted(range(len(places)), key=lambda index: places[index]):
        spread[index] = last = max(places[index], last + _LINE_HEIGHT)
    return spread
