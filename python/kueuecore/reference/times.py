"""Times: nanoseconds since 1970 inside, RFC 3339 in objects."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

SECOND = 10**9
FOREVER = 2**63
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NEVER = "0001-01-01T00:00:00Z"
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}


@lru_cache(maxsize=100_000)
def moment(written: str | None) -> int:
    """Read a time; None is Go's zero time, older than all others."""
    whole, dot, rest = (written or _NEVER).replace("Z", "+00:00").partition(".")
    fraction, zone = 0, ""
    if dot:
        digits, sign, zone = re.split(r"([+-])", rest, maxsplit=1)
        fraction, zone = int(digits.ljust(9, "0")[:9]), sign + zone
    passed = datetime.fromisoformat(whole + zone) - _EPOCH
    return (passed.days * 86400 + passed.seconds) * SECOND + fraction


@lru_cache(maxsize=100_000)
def text(time: int) -> str:
    """Write a time."""
    whole, rest = divmod(time, SECOND)
    date = (_EPOCH + timedelta(seconds=whole)).strftime("%Y-%m-%dT%H:%M:%S")
    return date.rjust(19, "0") + (f".{rest:09}".rstrip("0") if rest else "") + "Z"


def duration(written: str | None) -> int:
    """Read a duration as Go writes it, such as `1h30m`; empty is 0 (rules/11 §1)."""
    parts: list[tuple[str, str]] = re.findall(r"([0-9.]+)(ns|us|µs|ms|s|m|h)", written or "")
    return sum(int(float(number) * _UNITS[unit]) for number, unit in parts)
