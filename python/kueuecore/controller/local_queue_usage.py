"""Decides when the usage of LocalQueues is sampled, and keeps it in their statuses (rules/09 §1)."""

from __future__ import annotations

from collections.abc import Mapping

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.engine import Engine
from kueuecore.times import duration_ns, nanoseconds

__all__ = ["next_sampling", "with_usage"]


def with_usage(manifest: JsonObject, used: Mapping[str, JsonObject]) -> JsonObject:
    """Return a LocalQueue with its usage in its status; any other object unchanged.

    Args:
        manifest: The object.
        used: Resource to quantity, by `namespace/name` of a LocalQueue.
    """
    key = f"{text_at(manifest, 'metadata', 'namespace')}/{text_at(manifest, 'metadata', 'name')}"
    if text_at(manifest, "kind") != "LocalQueue" or key not in used:
        return manifest
    status: JsonObject = {**object_at(manifest, "status")}
    sharing = object_at(status, "fairSharing")
    usage = {**object_at(sharing, "admissionFairSharingStatus"), "consumedResources": used[key]}
    status["fairSharing"] = {"weightedShare": 0, **sharing, "admissionFairSharingStatus": usage}
    return {**manifest, "status": status}


def next_sampling(engine: Engine, *, since: int) -> int | None:
    """Return when the usage of a LocalQueue is next sampled (rules/09 §1.4), if all due at `since` was."""
    sharing = object_at(engine.configuration.to_dict(), "admissionFairSharing")
    accounts = engine._core._local_queue_accounts() if sharing else {}
    if not accounts:
        return None
    interval_ns = duration_ns(text_at(sharing, "usageSamplingInterval"))
    times = (nanoseconds(account["lastUpdate"]) + interval_ns for account in accounts.values())
    # A stopped LocalQueue is not sampled: its time stays in the past.
    return min((time for time in times if time > since), default=None)
