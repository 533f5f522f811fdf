"""Reads the parts of a job's status that several kinds share."""

from __future__ import annotations

from collections.abc import Callable

from kueuecore._json import JsonObject, int_at, list_at, object_at, text_at
from kueuecore.jobs.integration import Finished

__all__ = ["any_replica_active", "finished_by", "has_condition"]


def has_condition(job: JsonObject, kind: str) -> bool:
    """Return whether a condition of this type is True."""
    return any(
        text_at(condition, "type") == kind and text_at(condition, "status") == "True"
        for condition in list_at(job, "status", "conditions")
    )


def finished_by(success: str, failure: str) -> Callable[[JsonObject], Finished | None]:
    """Return a function that returns how a job ended, from the first of two conditions that is True."""

    def finished(job: JsonObject) -> Finished | None:
        for condition in list_at(job, "status", "conditions"):
            kind = text_at(condition, "type")
            if kind in (success, failure) and text_at(condition, "status") == "True":
                return Finished(text_at(condition, "message"), success=kind == success)
        return None

    return finished


def any_replica_active(job: JsonObject) -> bool:
    """Return whether any of `status.replicaStatuses` counts an active pod."""
    statuses = object_at(job, "status", "replicaStatuses")
    return any(int_at(status, "active") != 0 for status in statuses.values())
