"""Lists what `kueuecore serve` asks an API server for, by the kinds that a Configuration enables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kueuecore.configuration import Configuration
from kueuecore.controller.in_use_finalizers import IN_USE_KINDS
from kueuecore.jobs import INTEGRATIONS
from kueuecore.jobs.context import group_of
from kueuecore.kubernetes.api import Api
from kueuecore.kubernetes.decider import Decider
from kueuecore.kubernetes.election import LeaseSettings
from kueuecore.kubernetes.watching import CRD
from kueuecore.kubernetes.workers.multikueue_decider import OWN_KINDS

__all__ = ["Right", "needed_rights", "watched_kinds"]

_READS = ("list", "watch")
# Of kinds that are no jobs: verbs, by subresource. A test holds them against what days of all kinds ask for.
_WRITES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "AdmissionCheck": {"status": ("update",)},
    "ClusterQueue": {"status": ("update",)},
    "Cohort": {"status": ("update",)},
    "Event": {"": ("create", "patch")},
    "LocalQueue": {"status": ("update",)},
    "PodTemplate": {"": ("create", "delete")},
    "ProvisioningRequest": {"": ("create", "delete")},
    "Workload": {"": ("create", "delete", "get", "patch"), "finalizers": ("update",), "status": ("patch",)},
}
_OF_JOBS: Mapping[str, tuple[str, ...]] = {"": ("delete", "patch"), "finalizers": ("update",)}
# Jobs whose status is written: a Job that is stopped for good, and a pod that has failed with its node.
_STATUSES_OF_JOBS: Mapping[str, tuple[str, ...]] = {"Job": ("patch",), "Pod": ("patch", "update")}
# About clients of metrics and of the visibility API.
_REVIEWS = (("authentication.k8s.io", "tokenreviews"), ("authorization.k8s.io", "subjectaccessreviews"))
_OF_LEASES = ("create", "get", "update")


@dataclass(frozen=True, slots=True, order=True)
class Right:
    """A verb on a resource, as in a rule of a role.

    Args:
        group: The API group; empty for core.
        resource: The plural, with its subresource: `jobs`, `jobs/status`.
        verb: The verb.
        namespace: The only namespace in which it is needed; empty: all.
    """

    group: str
    resource: str
    verb: str
    namespace: str = ""


def watched_kinds(api: Api, configuration: Configuration) -> Mapping[str, tuple[str, str]]:
    """Return what `serve` lists and watches: apiVersion and plural by kind. Sets the `kinds` of `api`, as `serve` does.

    Args:
        api: The API server, which is not asked.
        configuration: Kueue's Configuration.
    """

    def never(*_: object) -> None:
        raise AssertionError("nothing is decided")

    decider = Decider(api, requests=never, emit=never, call=never, now=lambda: 0, configuration=configuration)
    return decider.jobs.kinds


def needed_rights(api: Api, configuration: Configuration, lease: LeaseSettings | None) -> list[Right]:
    """Return what `serve` asks for while jobs of all enabled kinds come, run, stop and go, in order.

    Args:
        api: As for `watched_kinds`.
        configuration: Kueue's Configuration.
        lease: The Lease of the election; `None`: there is none.
    """
    watched = watched_kinds(api, configuration)
    kinds = {**api.kinds, **watched, CRD: ("apiextensions.k8s.io/v1", "customresourcedefinitions")}
    found = {right for kind in (*watched, CRD) for right in _of(kinds[kind], {"": _READS})}
    for kind in kinds:
        found.update(right for writes in _writes(kind, kinds[kind][0]) for right in _of(kinds[kind], writes))
    if configuration.is_enabled("MultiKueue"):
        found.update(right for place in OWN_KINDS.values() for right in _of(place, {"": _READS}))
    found.update(Right(group, resource, "create") for group, resource in _REVIEWS)
    if lease is not None:
        found.update(Right("coordination.k8s.io", "leases", verb, lease.namespace) for verb in _OF_LEASES)
    return sorted(found)


def _writes(kind: str, api_version: str) -> Iterator[Mapping[str, tuple[str, ...]]]:
    if kind in _WRITES:
        yield _WRITES[kind]
    if kind in IN_USE_KINDS:
        yield {"": ("patch",)}
    integration = INTEGRATIONS.get((group_of(api_version), kind))
    # The pods of serving kinds are written, they themselves are not.
    if integration is not None and not integration.is_serving:
        yield _OF_JOBS
        yield {"status": _STATUSES_OF_JOBS.get(kind, ())}


def _of(place: tuple[str, str], verbs: Mapping[str, tuple[str, ...]]) -> Iterator[Right]:
    api_version, plural = place
    for subresource, names in verbs.items():
        for verb in names:
            yield Right(group_of(api_version), f"{plural}/{subresource}" if subresource else plural, verb)
