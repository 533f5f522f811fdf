"""Dispatching policies that Kueue does not have. Each is a dispatcher, or wraps one.

Example:
    >>> policy = TakingBack(inner=Filtered(Scored(score=by_cost({"west": 3, "east": 1}), prefers_room=True)))
    >>> clusters = tuple(KnownCluster(name=name, is_connected=True) for name in ("west", "east"))
    >>> policy.nominate(Dispatch(workload={}, clusters=clusters, now=0)).clusters
    ('east',)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kueuecore._lazy import lazy_names

if TYPE_CHECKING:
    from kueuecore.multikueue.dispatcher_protocol import Dispatch, KnownCluster
    from kueuecore.multikueue.policies.constraints import CLUSTERS, SELECTOR, Filtered, Refusal, not_allowed
    from kueuecore.multikueue.policies.json_patch import JsonPatchError, apply_json_patch
    from kueuecore.multikueue.policies.overflow import Overflow
    from kueuecore.multikueue.policies.overrides import Overridden, override_of
    from kueuecore.multikueue.policies.quota import FlavorQuota, WorkerQuota, cannot_hold, has_room, requests_of
    from kueuecore.multikueue.policies.scoring import (
        COST,
        DATA,
        PRIORITY,
        WEIGHT,
        Score,
        Scored,
        by_cost,
        by_data,
        by_free_quota,
        by_priority,
        by_weight,
        job_annotations,
        weighed,
    )
    from kueuecore.multikueue.policies.taking_back import TakingBack

__all__ = [
    "CLUSTERS",
    "COST",
    "DATA",
    "PRIORITY",
    "SELECTOR",
    "WEIGHT",
    "Dispatch",
    "Filtered",
    "FlavorQuota",
    "JsonPatchError",
    "KnownCluster",
    "Overflow",
    "Overridden",
    "Refusal",
    "Score",
    "Scored",
    "TakingBack",
    "WorkerQuota",
    "apply_json_patch",
    "by_cost",
    "by_data",
    "by_free_quota",
    "by_priority",
    "by_weight",
    "cannot_hold",
    "has_room",
    "job_annotations",
    "not_allowed",
    "override_of",
    "requests_of",
    "weighed",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "kueuecore.multikueue.dispatcher_protocol": "Dispatch KnownCluster",
        "kueuecore.multikueue.policies.constraints": "CLUSTERS SELECTOR Filtered Refusal not_allowed",
        "kueuecore.multikueue.policies.json_patch": "JsonPatchError apply_json_patch",
        "kueuecore.multikueue.policies.overflow": "Overflow",
        "kueuecore.multikueue.policies.overrides": "Overridden override_of",
        "kueuecore.multikueue.policies.quota": "FlavorQuota WorkerQuota cannot_hold has_room requests_of",
        "kueuecore.multikueue.policies.scoring": """
            COST DATA PRIORITY WEIGHT Score Scored by_cost by_data by_free_quota by_priority by_weight job_annotations
            weighed
        """,
        "kueuecore.multikueue.policies.taking_back": "TakingBack",
    },
)
