"""Formats numbers for people."""

from __future__ import annotations

__all__ = ["number_text"]


def number_text(value: float, *, is_grouped: bool = False) -> str:
    """Format a number: whole ones whole, others with as many digits as matter, and none with an exponent.

    Args:
        value: The number.
        is_grouped: Whether commas group the digits.

    Example:
        >>> number_text(40000.0), number_text(12380.4), number_text(0.60779), number_text(-0.00001)
        ('40000', '12380', '0.6078', '0')
        >>> number_text(40000.0, is_grouped=True)
        '40,000'
    """
    group = "," if is_grouped else ""
    if float(value).is_integer() or abs(value) >= 1000:
        return f"{value:{group}.0f}"
    if abs(value) < 0.0001:
        return "0"
    return f"{value:.4g}" if abs(value) >= 0.001 else f"{value:.4f}".rstrip("0")
