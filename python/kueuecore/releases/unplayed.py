"""What a release of Kueue does with some objects that kueuecore does not imitate, in a sentence each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from kueuecore._json import JsonObject, JsonValue, list_at, object_at, text_at
from kueuecore._quantities import number
from kueuecore.releases import Release, newest_releases

__all__ = ["unplayed"]

_SATURATES = Release.named("0.18.0")
_COUNTS_EXACTLY = Release.named("0.20.0")
# Those that kueuecore follows by what was read, without a run of Kueue to compare with.
_ONLY_READ = (Release.named("0.20.0"),)
_NEAR_THE_END = 2**62
_PULLS = "https://github.com/kubernetes-sigs/kueue/pull"


def unplayed(
    release: Release,
    objects: Iterable[JsonObject],
    *,
    fair_sharing: bool,
    is_enabled: Callable[[str], bool] = lambda _: False,
    is_asked_for: bool = True,
) -> Iterator[str]:
    """Yield what the release does with these objects that kueuecore does not do, and what kueuecore does instead.

    Args:
        release: The release whose decisions are wanted.
        objects: All objects.
        fair_sharing: Whether fair sharing is on.
        is_enabled: Returns whether a feature gate is on, by its name.
        is_asked_for: Whether somebody chose the release; if not, nothing is said that holds whatever the objects are.

    Example:
        >>> [note] = unplayed(Release.named("0.18.0"), [], fair_sharing=False)
        >>> print(note.partition(":")[0])
        Kueue v0.18.0 is not the newest of 0.18
    """
    if is_asked_for and release not in newest_releases() and not release.commit:
        yield (
            f"{release.title} is not the newest of {release.line}: changes between the two that docs/upgrade.md calls "
            '"not played" are missing'
        )
    if is_asked_for and release in _ONLY_READ:
        yield (
            f"what {release.title} changed was read in code, proposals and its changelog, and none of it was compared "
            "with a running one; docs/upgrade.md says of each change how it is known, and which are decided as before"
        )
    given = list(objects)
    yield from _behind_gates(release, given, is_enabled)
    if not release < _COUNTS_EXACTLY:
        large = next((object_ for object_ in given if _has_large_amounts(object_)), None)
        if large is not None:
            yield (
                f"{text_at(large, 'kind')} {text_at(large, 'metadata', 'name')} has an amount near 2^63: "
                f"{release.title} counts such amounts exactly; kueuecore stops at 2^63-1, which is unlimited to it, so "
                f"what borrows, lends or uses such amounts may be decided otherwise ({_PULLS}/15026)"
            )
    if not release < _SATURATES:
        return
    queues = [object_ for object_ in given if text_at(object_, "kind") == "ClusterQueue"]
    large = next((queue for queue in queues if any(map(_is_near_the_end, _quotas(queue, "spec")))), None)
    if large is not None:
        yield (
            f"ClusterQueue {text_at(large, 'metadata', 'name')} has an amount near 2^63: {release.title} wraps sums of "
            f"such amounts around, and may admit what does not fit; kueuecore stops at 2^63-1 ({_PULLS}/11182)"
        )
    alone = next((queue for queue in queues if fair_sharing and _preempts_alone(queue)), None)
    if alone is not None:
        yield (
            f"the scheduler of {release.title} crashes when a workload preempts in ClusterQueue "
            f"{text_at(alone, 'metadata', 'name')}, which has no cohort, under fair sharing ({_PULLS}/10891)"
        )


def _behind_gates(release: Release, given: Sequence[JsonObject], is_enabled: Callable[[str], bool]) -> Iterator[str]:
    """Yield what gates would change that are on, for the first object that each of them concerns."""
    if is_enabled("ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp"):
        partial = next(
            (manifest for manifest in given if _annotation(manifest, "elastic-job-scale-up-strategy") == "partial"),
            None,
        )
        if partial is not None:
            yield (
                f"{_named(partial)} may grow in parts: with ElasticJobsViaWorkloadSlicesWithPartialReplicaScaleUp "
                f"{release.title} admits a part of the new pods; kueuecore admits all of them or none"
            )
    elastic = [manifest for manifest in given if _annotation(manifest, "elastic-job") == "true"]
    if elastic and is_enabled("ElasticJobsViaWorkloadSlicesForProvisioningRequests"):
        checks = (
            manifest
            for manifest in given
            if text_at(manifest, "spec", "controllerName") == "kueue.x-k8s.io/provisioning-request"
        )
        if any(text_at(check, "kind") == "AdmissionCheck" for check in checks):
            yield (
                f"{_named(elastic[0])} is elastic: with ElasticJobsViaWorkloadSlicesForProvisioningRequests "
                f"{release.title} requests capacity for the pods that a slice adds; kueuecore requests it for all pods "
                f"of the slice ({_PULLS}/14316)"
            )
    scaled = next((manifest for manifest in elastic if _is_scaled_by_ray(manifest)), None)
    if scaled is not None and is_enabled("MultiKueueRayInTreeAutoscaling"):
        yield (
            f"{_named(scaled)} is scaled by Ray on a worker: with MultiKueueRayInTreeAutoscaling {release.title} "
            "records that size on the manager and charges it; kueuecore charges what the manager's object says "
            f"({_PULLS}/13435)"
        )
    topology = next((manifest for manifest in given if text_at(manifest, "kind") == "Topology"), None)
    if topology is not None and not release < _COUNTS_EXACTLY and is_enabled("SchedulerLibraryIntegration"):
        yield (
            f"Topology {text_at(topology, 'metadata', 'name')} places pods: with SchedulerLibraryIntegration "
            f"{release.title} also preempts where only a victim's host port is in the way, and simulates workloads "
            f"that have quota and no pods yet; kueuecore does neither ({_PULLS}/15436, {_PULLS}/15720)"
        )


def _annotation(plain: JsonObject, name: str) -> str:
    return text_at(plain, "metadata", "annotations", f"kueue.x-k8s.io/{name}")


def _named(plain: JsonObject) -> str:
    return f"{text_at(plain, 'kind')} {text_at(plain, 'metadata', 'name')}"


def _is_scaled_by_ray(plain: JsonObject) -> bool:
    spec = object_at(plain, "spec")
    if text_at(spec, "managedBy") != "kueue.x-k8s.io/multikueue":
        return False
    clusters = (spec, object_at(spec, "rayClusterSpec"), object_at(spec, "rayClusterConfig"))
    return any(cluster.get("enableInTreeAutoscaling") is True for cluster in clusters)


def _preempts_alone(queue: JsonObject) -> bool:
    spec = object_at(queue, "spec")
    policy = text_at(spec, "preemption", "withinClusterQueue")
    return not (text_at(spec, "cohortName") or text_at(spec, "cohort")) and policy not in ("", "Never")


def _has_large_amounts(it: JsonObject) -> bool:
    match text_at(it, "kind"):
        case "ClusterQueue" | "Cohort":
            amounts: Iterator[tuple[str, JsonValue]] = chain(
                _quotas(it, "spec"), _quotas(it, "status", "effectiveQuotas")
            )
        case "Workload":
            amounts = _requests(it)
        case _:
            return False
    return any(map(_is_near_the_end, amounts))


def _quotas(queue: JsonObject, *place: str) -> Iterator[tuple[str, JsonValue]]:
    for group in map(object_at, list_at(queue, *place, "resourceGroups")):
        for flavor in map(object_at, list_at(group, "flavors")):
            for resource in map(object_at, list_at(flavor, "resources")):
                for field in ("nominalQuota", "borrowingLimit", "lendingLimit"):
                    yield text_at(resource, "name"), resource.get(field)


def _requests(workload: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """What a pod of a Workload requests, and what all pods of a pod set hold."""
    for pod_set in map(object_at, list_at(workload, "spec", "podSets")):
        for container in map(object_at, list_at(pod_set, "template", "spec", "containers")):
            yield from object_at(container, "resources", "requests").items()
    for assigned in map(object_at, list_at(workload, "status", "admission", "podSetAssignments")):
        yield from object_at(assigned, "resourceUsage").items()


def _is_near_the_end(amount: tuple[str, JsonValue]) -> bool:
    resource, quantity = amount
    value = number(quantity)
    # Kueue counts cpu in thousandths.
    return value is not None and value * (1000 if resource == "cpu" else 1) >= _NEAR_THE_END
