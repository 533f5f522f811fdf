"""Saturating 64-bit amounts, of which the largest means "unlimited" (rules/02 §1)."""

from __future__ import annotations

UNLIMITED = 2**63 - 1
LEAST = -(2**63)


def clamp(value: int) -> int:
    """Bring a number into the range of 64 bits (rules/02 §1)."""
    return max(LEAST, min(UNLIMITED, value))


def add(a: int, b: int) -> int:
    """Add two amounts; unlimited stays unlimited, and an overflow becomes unlimited (rules/02 §1)."""
    return UNLIMITED if a == UNLIMITED or b == UNLIMITED else clamp(a + b)


def subtract(a: int, b: int) -> int:
    """Subtract two amounts; unlimited minus unlimited is 0 (rules/02 §1)."""
    if a == UNLIMITED:
        return 0 if b == UNLIMITED else UNLIMITED
    return LEAST if b == UNLIMITED else clamp(a - b)


def multiply(a: int, b: int) -> int:
    """Multiply a request by a count (rules/02 §1)."""
    return clamp(a * b)


def divide(a: int, b: int) -> int:
    """Divide a request by a count, rounded towards zero; 0 by 0 is 0 (rules/02 §1)."""
    if a == 0:
        return 0
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient
