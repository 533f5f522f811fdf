"""What is seen of the day: what becomes of each job, as it is printed and as it can be compared."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore.kubernetes.decided import decided

__all__ = ["Timeline"]

# What no two runs have in common.
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
    """Takes in watch events, and says what changed.

    Args:
        say: Prints a line.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._last: dict[str, str] = {}
        self.stories: dict[str, list[str]] = {}
        """By job, what was decided on it: admissions, evictions and its end."""

    def see(self, workload: JsonObject) -> None:
        """A Workload has come or has changed."""
        owners = list_at(workload, "metadata", "ownerReferences")
        job = text_at(owners[0], "name") if owners else text_at(workload, "metadata", "name")
        conditions = {text_at(it, "type"): object_at(it) for it in list_at(workload, "status", "conditions")}
        state = decided(workload)
        what = str(state) if state.what in ("admitted", "evicted") else ""
        if conditions.get("Finished", {}).get("status") == "True":
            what = "finished"
        if what and self._last.get(job) != what:
            self.stories.setdefault(job, []).append(what)
            self._say(f"{job} {what}")
        self._last[job] = what


def comparable(value: Any) -> Any:
    """An object without what differs from run to run: identities, versions and times."""
    if isinstance(value, dict) and value.get("type") == "PodsReady":
        # Whether pods were seen to be not ready for a moment depends on who was quicker, too.
        return {"type": "PodsReady", "status": value["status"]}
    if isinstance(value, dict):
        return {key: comparable(it) for key, it in value.items() if key not in _OF_A_RUN}
    if isinstance(value, list):
        # In which order conditions came up depends on who was quicker.
        return sorted((comparable(it) for it in value), key=lambda it: json.dumps(it, sort_keys=True))
    return _OF_A_RUN_TEXT.sub("UID: ...", value) if isinstance(value, str) else value
