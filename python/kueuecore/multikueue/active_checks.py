"""The AdmissionChecks of MultiKueue: condition Active reports whether config and workers exist (rules/06 §3)."""

from __future__ import annotations

from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.configs import check_status, is_of_multikueue
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.workload_group import status_patch
from kueuecore.writes import Write

__all__ = ["ActiveChecks"]


class ActiveChecks:
    """Keeps the condition Active of the checks up to date.

    Args:
        store: Objects seen on the manager.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.next: int | None = None
        """When to review the checks next; None: nothing that affects them has changed."""

    def look_at_all(self, at: int) -> None:
        """Schedule a review of all checks: something that affects them has changed."""
        self.next = at if self.next is None else min(self.next, at)

    def commands(self, now: int) -> list[Write]:
        """Return patches for the checks whose condition changes, if a review is due."""
        if self.next is None or self.next > now:
            return []
        self.next = None
        configs, clusters = self._store.named("MultiKueueConfig"), self._store.named("MultiKueueCluster")
        patches = (
            status_patch(MANAGER, check, check_status(check, configs, clusters, now))
            for check in self._store.of_kind("AdmissionCheck")
            if is_of_multikueue(check)
        )
        return [patch for patch in patches if patch is not None]
