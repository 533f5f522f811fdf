"""The AdmissionChecks of MultiKueue: each says whether its config and its workers are there (rules/06 §3)."""

from __future__ import annotations

from kueuecore.multikueue.commands import MANAGER, Patch
from kueuecore.multikueue.configs import check_status, is_of_multikueue
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.workload_group import status_patch

__all__ = ["ActiveChecks"]


class ActiveChecks:
    """Keeps condition Active of the checks.

    Args:
        store: What was seen of the manager.
    """

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self.next: int | None = None
        """When to look at the checks; None: nothing has happened to them."""

    def look_at_all(self, at: int) -> None:
        """Something has happened that counts."""
        self.next = at if self.next is None else min(self.next, at)

    def commands(self, now: int) -> list[Patch]:
        """The checks whose condition is to be another one, if that is due."""
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
