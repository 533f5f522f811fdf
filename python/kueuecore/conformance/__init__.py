"""Recorded cases of the real Kueue: what this project decides for the same input. Holds no rule."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["RECORDED_FROM", "answer"]

RECORDED_FROM = "0.20.0-devel"
"""The release of a case that names none: the recordings began with this commit of Kueue."""


def answer(case: Mapping[str, Any], by: str = "engine") -> dict[str, Any]:
    """Answer a recorded case.

    Args:
        case: A case without its `expect`; `kueue` names its release, by default `RECORDED_FROM`.
        by: Who answers: `engine`, or `reference`, for which the extension is not even loaded.

    Raises:
        NotImplementedError: What the case needs is not built yet.

    Returns:
        What we decide, in the shape of `expect`.
    """
    case = {"kueue": RECORDED_FROM, **case}
    if by == "reference":
        from kueuecore.conformance.by_reference import answer as by_reference

        return by_reference(case)
    if by != "engine":
        raise NotImplementedError(f"answers by {by}")
    from kueuecore.conformance.by_engine import answer as by_engine

    return by_engine(case)
