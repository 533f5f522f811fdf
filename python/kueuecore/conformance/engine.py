"""Answers of the engine to recorded cases of the real Kueue. Holds no rule."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kueuecore import _proof
from kueuecore.jobs.lifecycle import limited_to_pod_sets

__all__ = ["answer"]


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a recorded case by the engine.

    Raises:
        NotImplementedError: What the case needs is not built yet.
    """
    if case["kind"] == "reclaimable_pods_limit":
        return _reclaimable_pods_limit(case)
    found = _proof.answer(json.dumps(case).encode())
    if found is None:
        raise NotImplementedError(f"cases of kind {case['kind']}")
    answered: dict[str, Any] = json.loads(found)
    return answered


def _reclaimable_pods_limit(case: Mapping[str, Any]) -> dict[str, Any]:
    pods = {it["name"]: it["count"] for it in case["input"]["reclaimablePods"]}
    limited = limited_to_pod_sets(pods, case["input"]["workload"])
    return {"reclaimablePods": [{"name": name, "count": count} for name, count in limited.items()]}
