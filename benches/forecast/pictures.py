"""Pictures of how well forecasts held: reliability and PIT as a small SVG file for each log.

Written by hand, as the plots of `benches/plots.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from benches.forecast.scores import SHARES, Answer, pit

__all__ = ["Curve", "picture", "pit_shares", "reliability"]

_WIDTH, _HEIGHT, _SIDE = 760, 340, 250
_LEFT, _TOP, _GAP = 52, 44, 190
_COLORS = ("#0072b2", "#009e73", "#d55e00", "#cc79a7")
_STYLE = "text{font:12px sans-serif;fill:#333}.grid{stroke:#ddd}.line{fill:none;stroke-width:2}"
_BINS = 10
_LINE_HEIGHT = 16


@dataclass(frozen=True, slots=True)
class Curve:
    """The answers of one forecaster.

    Args:
        name: What it is, for the legend.
        answers: The answers; at least one.
        is_other: Whether it is one to compare with, which is dashed.
    """

    name: str
    answers: Sequence[Answer]
    is_other: bool = False


def reliability(answers: Sequence[Answer]) -> list[tuple[float, float]]:
    """Return for each of `SHARES` how many truths were at most that quantile, as shares."""
    return [
        (share, sum(answer.seen <= answer.quantile(share) for answer in answers) / len(answers)) for share in SHARES
    ]


def pit_shares(answers: Sequence[Answer]) -> list[float]:
    """Return the share of PIT values in each tenth; all are 0.1 if forecasts hold."""
    counts = [0] * _BINS
    for answer in answers:
        counts[min(int(pit(answer) * _BINS), _BINS - 1)] += 1
    return [count / len(answers) for count in counts]


def picture(title: str, curves: Sequence[Curve]) -> str:
    """Return the reliability of some forecasters, and the PIT histogram of the first, as the text of an SVG file."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">',
        f'<title>{escape(title)}</title><style>{_STYLE}</style><rect width="100%" height="100%" fill="white"/>',
        _text(_LEFT, 20, title, weight="bold"),
        *_reliability_panel(curves),
        *_pit_panel(curves[0]),
    ]
    return "\n".join([*parts, "</svg>", ""])


def _reliability_panel(curves: Sequence[Curve]) -> list[str]:
    bottom = _TOP + _SIDE
    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _LEFT + tick * _SIDE, bottom - tick * _SIDE
        parts += [
            f'<path class="grid" d="M{x:.1f} {_TOP}V{bottom}M{_LEFT} {y:.1f}H{_LEFT + _SIDE}"/>',
            _text(x, bottom + 16, f"{100 * tick:.0f} %", anchor="middle"),
            _text(_LEFT - 6, y + 4, f"{100 * tick:.0f} %", anchor="end"),
        ]
    parts.append(f'<path stroke="#888" d="M{_LEFT} {bottom}L{_LEFT + _SIDE} {_TOP}"/>')
    for number, curve in enumerate(curves):
        color, dashes = _COLORS[number % len(_COLORS)], ' stroke-dasharray="6 4"' if curve.is_other else ""
        points = " ".join(
            f"{_LEFT + share * _SIDE:.1f},{bottom - seen * _SIDE:.1f}" for share, seen in reliability(curve.answers)
        )
        y = _TOP + 10 + number * _LINE_HEIGHT
        legend = _LEFT + _SIDE + 12
        parts += [
            f'<polyline class="line" stroke="{color}"{dashes} points="{points}"/>',
            f'<path class="line" stroke="{color}"{dashes} d="M{legend} {y - 4}h18"/>',
            _text(legend + 24, y, curve.name),
        ]
    parts.append(_text(_LEFT + _SIDE / 2, bottom + 36, "quantile, and how many were admitted by it", anchor="middle"))
    return parts


def _pit_panel(curve: Curve) -> list[str]:
    left, bottom = _LEFT + _SIDE + _GAP, _TOP + _SIDE
    shares = pit_shares(curve.answers)
    highest = max(*shares, 0.2)
    width = (_WIDTH - left - 16) / _BINS
    parts = [
        f'<rect x="{left + place * width + 1:.1f}" y="{bottom - share / highest * _SIDE:.1f}" width="{width - 2:.1f}" '
        f'height="{share / highest * _SIDE:.1f}" fill="{_COLORS[0]}"/>'
        for place, share in enumerate(shares)
    ]
    level = bottom - 0.1 / highest * _SIDE
    right = left + width * _BINS
    return [
        *parts,
        f'<path stroke="#888" d="M{left} {level:.1f}H{right:.1f}M{left} {bottom}H{right:.1f}"/>',
        _text(left - 6, level + 4, "10 %", anchor="end"),
        _text(left, bottom + 16, "earlier"),
        _text(right, bottom + 16, "later", anchor="end"),
        _text((left + right) / 2, bottom + 36, f"PIT of {curve.name}", anchor="middle"),
    ]


def _text(x: float, y: float, text: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
