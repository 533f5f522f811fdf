"""Answers of the engine to recorded cases of the real Kueue. Holds no rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kueuecore import _proof

__all__ = ["answer"]


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a recorded case by the engine.

    Raises:
        NotImplementedError: What the case needs is not built yet.
    """
    found = _proof.answer(json.dumps(case).encode())
    if found is None:
        raise NotImplementedError(f"cases of kind {case['kind']}")
    answered: dict[str, Any] = json.loads(found)
    return answered
