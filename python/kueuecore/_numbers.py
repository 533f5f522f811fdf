"""Formats numbers for people."""

from __future__ import annotations

__all__ = ["number_text"]


def number_text(value: float, *, is_grouped: bool = False) -> str:
    """Format a number: whole ones whole, others with as many digits as matter, and none with an exponent.

    Args:
        value: The number.
        is_grouped: Whether commas group the digits.

    Example:
        >>> number_text(40000.0), number_text(12380.5), number_text(0.60779), number_text(-0.00001)
        ('40000', '12380.5', '0.6078', '0')
        >>> number_text(40000.0, is_grouped=True)
        '40,000'
    """
    group = "," if is_grouped else ""
    if value == int(value):
        return f"{int(value):{group}d}"
    if abs(value) >= 1000:
        return f"{value:{group}.1f}".removesuffix(".0")
    if abs(value) < 0.0001:
        return "0"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.4f}".rstrip("0")
