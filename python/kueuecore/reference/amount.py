"""Saturating 64-bit amounts, in which the largest means "without limit" (rules/02 §1)."""

from __future__ import annotations

UNLIMITED = 2**63 - 1
LEAST = -(2**63)


def clamp(value: int) -> int:
    """Bring a number into the range of 64 bits (rules/02 §1)."""
    return max(LEAST, min(UNLIMITED, value))


def add(a: int, b: int) -> int:
    """Without limit stays so, and too much becomes so (rules/02 §1)."""
    return UNLIMITED if a == UNLIMITED or b == UNLIMITED else clamp(a + b)


def subtract(a: int, b: int) -> int:
    """Without limit minus without limit is nothing (rules/02 §1)."""
    if a == UNLIMITED:
        return 0 if b == UNLIMITED else UNLIMITED
    return LEAST if b == UNLIMITED else clamp(a - b)


def multiply(a: int, b: int) -> int:
    """Requests times counts (rules/02 §1)."""
    return clamp(a * b)


def divide(a: int, b: int) -> int:
    """Requests by counts, cut towards zero; nothing by nothing is nothing (rules/02 §1)."""
    if a == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
