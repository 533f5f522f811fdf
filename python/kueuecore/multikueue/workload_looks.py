"""Reconciles a Workload once: decides what to do about it and its copies (rules/06 §4.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kueuecore._conditions import check_state, has_quota, with_check_state
from kueuecore._json import JsonObject, text_at
from kueuecore.checks import WorkloadKey
from kueuecore.multikueue.adapters import Adapter, adapter_for, gvk_text
from kueuecore.multikueue.commands import MANAGER
from kueuecore.multikueue.configs import ConfigError, clusters_of, config_of_check, multikueue_check
from kueuecore.multikueue.group_views import GroupViews
from kueuecore.multikueue.job_moves import JobMoves
from kueuecore.multikueue.object_store import ObjectStore
from kueuecore.multikueue.settings import MultiKueueSettings
from kueuecore.multikueue.workload_group import Result, status_patch
from kueuecore.multikueue.workload_reconciler import reconcile

__all__ = ["WorkloadLooks", "WorkloadMemory"]


@dataclass(frozen=True, slots=True)
class WorkloadMemory:
    """What a manager remembers of Workloads between reconciles; no object records it.

    Args:
        gone: Deleted Workloads, as last seen, until nothing is left of them on the workers.
        lost_quota: Workloads that lost their quota. They may regain it by the next reconcile, with copies left over.
        nominated_at: When the dispatcher last nominated.
        read: For a copy whose jobs were read, the worker and the version of the copy.
    """

    gone: dict[WorkloadKey, JsonObject] = field(default_factory=dict)
    lost_quota: set[WorkloadKey] = field(default_factory=set)
    nominated_at: dict[WorkloadKey, int] = field(default_factory=dict)
    read: dict[WorkloadKey, tuple[str, str]] = field(default_factory=dict)

    def forget(self, key: WorkloadKey) -> None:
        """Forget a Workload that was deleted and of which nothing is left."""
        self.gone.pop(key, None)
        self.nominated_at.pop(key, None)
        self.read.pop(key, None)


class WorkloadLooks:
    """Reconciles Workloads, one at a time.

    Args:
        store: Objects seen on the manager.
        views: Builds the group of a Workload.
        adapters: Adapters by group, version and kind.
        settings: The settings of the manager.
        memory: What is remembered from earlier reconciles.
        moves: Moves jobs that overflow, if any do.
    """

    def __init__(
        self,
        store: ObjectStore,
        views: GroupViews,
        adapters: Mapping[str, Adapter],
        settings: MultiKueueSettings,
        memory: WorkloadMemory,
        moves: JobMoves | None,
    ) -> None:
        self._store = store
        self._views = views
        self._adapters = adapters
        self._settings = settings
        self._memory = memory
        self._moves = moves

    def look(self, key: WorkloadKey, at: int) -> Result:
        """Decide what to do about a Workload."""
        if self._moves is not None and (moved := self._moves.look(key, at)) is not None:
            return moved
        stored = self._store.get("Workload", key[1], namespace=key[0])
        local = stored or self._memory.gone.get(key)
        if local is None:
            return Result()
        is_deleted = stored is None or bool(text_at(local, "metadata", "deletionTimestamp"))
        checks = self._store.named("AdmissionCheck")
        name = multikueue_check(local, checks)
        if not name or text_at(check_state(local, name), "state") == "Rejected":
            self._memory.gone.pop(key, None)
            return Result()
        adapter, owner = adapter_for(local, self._adapters)
        if adapter is None or owner is None:
            reason = "No multikueue adapter found"
            if owner is not None:
                reason += f' for owner kind "{gvk_text(text_at(owner, "apiVersion"), text_at(owner, "kind"))}"'
            return Result() if is_deleted else _rejection(local, name, reason, at)
        try:
            clusters = clusters_of(config_of_check(checks[name], self._store.named("MultiKueueConfig")))
            problem = ""
        except ConfigError as error:
            clusters, problem = (), f'admission check "{name}": {error}'
        has_lost_quota = key in self._memory.lost_quota
        group = self._views.group(
            local,
            name,
            adapter,
            text_at(owner, "name"),
            clusters,
            at,
            nominated_at=None if has_lost_quota else self._memory.nominated_at.get(key),
            has_lost_quota=has_lost_quota,
            read=self._memory.read.get(key),
        )
        if has_lost_quota and has_quota(local) and not group.is_left_over:
            self._memory.lost_quota.discard(key)
            self._memory.nominated_at.pop(key, None)
        if is_deleted:
            # Objects on unreachable workers are left to the garbage collection.
            commands = group.removals()
            if not commands and not problem:
                self._memory.forget(key)
            return Result(commands, problem=problem)
        if not group.jobs:
            return Result(problem=f'{adapter.kind} "{text_at(owner, "name")}" not found')
        if reason := adapter.why_unmanaged(group.jobs[0], self._settings):
            return _rejection(local, name, f"The owner is not managed by Kueue: {reason}", at)
        return Result(problem=problem) if problem else reconcile(group)


def _rejection(local: JsonObject, check: str, reason: str, at: int) -> Result:
    before = text_at(check_state(local, check), "state")
    status = with_check_state(local, check, "Rejected", f'{reason}, Previously: "{before}"', at)
    patch = status_patch(MANAGER, local, status)
    return Result([patch] if patch is not None else [])
