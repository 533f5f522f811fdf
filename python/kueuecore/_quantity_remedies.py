"""Says how to write a quantity that an API server refuses."""

from __future__ import annotations

import re

__all__ = ["is_about_quantity", "quantity_remedy"]

# From the patterns in the API server's messages: of a CustomResourceDefinition, and of its parser.
_PATTERNS = ("(([KMGTPE]i)|[numkMGTPE]|", "quantities must match the regular expression")
_FORM = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))[ _]?([A-Za-z]*)")
_LONGEST = 64
_PREFIXES = {
    "k": ("k", "kilo"),
    "M": ("m", "mega"),
    "G": ("g", "giga"),
    "T": ("t", "tera"),
    "P": ("p", "peta"),
    "E": ("e", "exa"),
}
_DECIMAL = {
    name: prefix
    for prefix, (short, long) in _PREFIXES.items()
    for name in (short, f"{short}b", f"{short}byte", f"{short}bytes", f"{long}byte", f"{long}bytes")
}
_BINARY = {
    name: f"{prefix.upper()}i"
    for prefix, (short, long) in _PREFIXES.items()
    for name in (f"{short}i", f"{short}ib", f"{long[:2]}bibyte", f"{long[:2]}bibytes")
}
_WHOLE = ("", "b", "byte", "bytes", "cpu", "cpus", "vcpu", "vcpus", "core", "cores", "gpu", "gpus", "pod", "pods")
_MILLI = ("mcpu", "mcore", "mcores", "millicpu", "millicpus", "millicore", "millicores")
_OTHERWISE = "write a number with or without a suffix, such as 500m, 8 or 8Gi"


def is_about_quantity(message: str) -> bool:
    """Whether a message of the API server says that a text is not a quantity."""
    return any(pattern in message for pattern in _PATTERNS)


def quantity_remedy(text: object) -> str:
    """Say how to write what a wrong quantity seems to mean.

    Example:
        >>> quantity_remedy("8GB"), quantity_remedy("8 cores"), quantity_remedy("250 millicores")
        ('write 8G or 8Gi', 'write 8', 'write 250m')
        >>> quantity_remedy("lots")
        'write a number with or without a suffix, such as 500m, 8 or 8Gi'
    """
    given = str(text).strip()
    form = _FORM.fullmatch(given) if len(given) <= _LONGEST else None
    if form is None:
        return _OTHERWISE
    number, unit = form[1], form[2].lower()
    if unit in _WHOLE:
        return f"write {number}"
    if unit in _MILLI:
        return f"write {number}m"
    if unit in _BINARY:
        return f"write {number}{_BINARY[unit]}"
    if unit in _DECIMAL:
        prefix = _DECIMAL[unit]
        return f"write {number}{prefix} or {number}{prefix.upper()}i"
    return _OTHERWISE
