"""The observed day: what happens to each job, for printing and for comparison."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kueuecore._json import JsonObject, list_at, object_at, text_at
from scripts.day.decided import decided

__all__ = ["Timeline"]

# What differs between any two runs.
_OF_A_RUN = frozenset(
    {
        "accumulatedPastExecutionTimeSeconds",
        "creationTimestamp",
        "generation",
        "lastTransitionTime",
        "managedFields",
        "resourceVersion",
        "uid",
    }
)
_OF_A_RUN_TEXT = re.compile(r"UID: [-0-9a-f]+")


class Timeline:
    """Follows watch events, and prints what changed.

    Args:
        say: Prints a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: dict[str, str] = {}
        self.stories: dict[str, list[str]] = {}
        """By job, the decisions about it: admissions, evictions and its end."""

    def see(self, workload: JsonObject) -> None:
        """Process a new or changed Workload."""
        owners = list_at(workload, "metadata", "ownerReferences")
        job = text_at(owners[0], "name") if owners else text_at(workload, "metadata", "name")
        conditions = {
            text_at(condition, "type"): object_at(condition) for condition in list_at(workload, "status", "conditions")
        }
        state = decided(workload)
        what = str(state) if state.what in ("admitted", "evicted") else ""
        if conditions.get("Finished", {}).get("status") == "True":
            what = "finished"
        if what and self._last.get(job) != what:
            self.stories.setdefault(job, []).append(what)
            self._say(f"{job} {what}")
        self._last[job] = what


def comparable(value: Any) -> Any:
    """Return an object without what differs from run to run: identities, versions and times."""
    if isinstance(value, dict) and value.get("type") == "PodsReady":
        # Whether pods were briefly seen as not ready also depends on timing.
        return {"type": "PodsReady", "status": value["status"]}
    if isinstance(value, dict):
        return {key: comparable(row) for key, row in value.items() if key not in _OF_A_RUN}
    if isinstance(value, list):
        # The order in which conditions appeared depends on timing.
        return sorted((comparable(row) for row in value), key=lambda row: json.dumps(row, sort_keys=True))
    return _OF_A_RUN_TEXT.sub("UID: ...", value) if isinstance(value, str) else value
