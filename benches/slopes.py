"""Slopes: the power with which something grows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["larger_half", "signed", "slope"]

Point = TypeVar("Point")


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The slope of the line through the logarithms with the least squares."""
    if len(points) < 2:
        return None
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    above = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)


def larger_half(points: Sequence[Point]) -> Sequence[Point]:
    """The points from the middle one on: what is small says little of how it grows."""
    return points[-(len(points) // 2 + 1) :]


def signed(found: float | None) -> str:
    """A slope with its sign; `-` for `None`."""
    return "-" if found is None else f"{found:+.2f}"
