"""Finds who a UID belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from kueuecore._json import JsonObject, int_at, list_at, text_at
from kueuecore.histories.facts import Facts

__all__ = ["Uids"]

_NONE: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Workload:
    key: str
    priority: str


class Uids:
    """The Workloads and jobs among some objects, by UID.

    Args:
        objects: The objects.
        keys: More Workloads: `namespace/name` by UID.
    """

    def __init__(self, objects: Iterable[JsonObject], keys: Mapping[str, str] = _NONE) -> None:
        self._workloads = {uid: _Workload(key, "") for uid, key in keys.items()}
        self._jobs: dict[str, str] = {}
        for plain in objects:
            kind, uid = text_at(plain, "kind"), text_at(plain, "metadata", "uid")
            namespace, name = text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")
            if kind == "Workload":
                priority = str(int_at(plain, "spec", "priority"))
                self._workloads[uid] = _Workload(f"{namespace}/{name}", priority)
                for owner in list_at(plain, "metadata", "ownerReferences"):
                    job = f"{text_at(owner, 'kind')} {namespace}/{text_at(owner, 'name')}"
                    self._jobs[text_at(owner, "uid")] = job
            elif namespace:
                self._jobs[uid] = f"{kind} {namespace}/{name}"

    def resolved(self, facts: Facts) -> Facts:
        """Return facts with the name behind their UID, as far as the objects show it."""
        if facts.by or not (facts.by_uid or facts.by_job_uid):
            return facts
        if (workload := self._workloads.get(facts.by_uid)) is not None:
            return replace(facts, by=workload.key, by_priority=facts.by_priority or workload.priority)
        job = self._jobs.get(facts.by_job_uid, "") if facts.by_job_uid else ""
        return replace(facts, by_owner=job)
