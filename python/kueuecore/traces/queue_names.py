"""Builds queue names from the fields of jobs."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

__all__ = ["PLACEHOLDER", "label_of", "labels_of", "rendered"]

PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
"""A field in braces."""

_LONGEST = 63
_UNKNOWN = "unknown"


def rendered(template: str, value: Callable[[str], str]) -> str:
    """Fill in a template; an unknown field becomes `unknown`."""
    return PLACEHOLDER.sub(lambda found: value(found[1]) or _UNKNOWN, template)


def label_of(text: str) -> str:
    """Turn a string into a DNS label: lower-case letters and digits, single hyphens for the rest, 63 characters.

    Example:
        >>> label_of("Team A/Ünits_"), label_of("---")
        ('team-a-nits', 'unknown')
    """
    return re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")[:_LONGEST].rstrip("-") or _UNKNOWN


def labels_of(texts: Iterable[str]) -> Mapping[str, str]:
    """Turn strings into distinct DNS labels: those that would collide get part of their hash.

    Example:
        >>> labels_of(["vc1", "vcA", "vca"])
        {'vc1': 'vc1', 'vcA': 'vca-871b6', 'vca': 'vca'}
    """
    each = dict.fromkeys(texts)
    n_of = Counter(map(label_of, each))
    return {
        fromkey: label_of(fromkey) if n_of[label_of(fromkey)] == 1 or label_of(fromkey) == fromkey else _hashed(fromkey)
        for fromkey in each
    }


def _hashed(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:5]
    return f"{label_of(text)[: _LONGEST - 6].rstrip('-')}-{digest}"
