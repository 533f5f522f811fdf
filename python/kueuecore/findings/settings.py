"""Rules about Kueue's Configuration, together with the queues and jobs that are given (rules/11)."""

from __future__ import annotations

from collections.abc import Iterator

from kueuecore._json import JsonObject, list_at, object_at, text_at
from kueuecore._near_names import near_names
from kueuecore._text import quoted
from kueuecore.findings.facts import Facts
from kueuecore.findings.finding import Hit, Severity, hit, rule
from kueuecore.findings.manifest_fields import quota_fields
from kueuecore.manifests import Manifest

__all__ = ["dead_multipliers", "dead_transformations", "endless_retries", "excluded_quota", "idle_weights"]

_PREFIXES = "resources.excludeResourcePrefixes"
_TRANSFORMATIONS = "resources.transformations"


@rule(
    "KC701",
    "excluded-quota",
    Severity.WARNING,
    "a prefix in excludeResourcePrefixes that excludes a resource with quota",
)
def excluded_quota(facts: Facts) -> Iterator[Hit]:
    """What pods request of it is dropped before anything is counted, so the quota never binds."""
    made = {
        output
        for transformation in _transformations(facts)
        if not _prefix_of(facts, transformation)
        for output in _outputs(transformation)
    }
    covered = _covered(facts)
    for index, prefix in enumerate(_excluded(facts)):
        found = [name for name in covered if name.startswith(prefix) and name not in made]
        if found and prefix:
            yield hit(
                _configuration(facts),
                f"it excludes {found[0]}, so the quota of ClusterQueue {covered[found[0]]} for that never binds",
                field=f"{_PREFIXES}[{index}]",
                remedy="write a longer prefix, or remove the resource from the ClusterQueues",
            )


@rule(
    "KC702",
    "dead-transformation",
    Severity.WARNING,
    "a transformation that never applies, or whose output has no quota",
)
def dead_transformations(facts: Facts) -> Iterator[Hit]:
    """Excluded resources are dropped before transformations, and outputs need quota as all resources do."""
    covered = _covered(facts)
    is_strict = text_at(_plain(facts), "resources", "quotaCheckStrategy") != "IgnoreUndeclared"
    for index, transformation in enumerate(_transformations(facts)):
        path = f"{_TRANSFORMATIONS}[{index}]"
        name = text_at(transformation, "input")
        if prefix := _prefix_of(facts, transformation):
            yield hit(
                _configuration(facts),
                f"input {name} is excluded by the prefix {quoted(prefix)}, so the transformation never applies",
                field=f"{path}.input",
                remedy="remove the prefix: with strategy Replace the input does not count anyway",
            )
            continue
        for output in _outputs(transformation) if covered else ():
            if output not in covered:
                then = "workloads that request the input never fit" if is_strict else "it is not counted"
                near = near_names(output, covered)
                yield hit(
                    _configuration(facts),
                    f"no ClusterQueue has quota for output {output}, so {then}",
                    field=f"{path}.outputs[{output}]",
                    remedy=f"did you mean {near[0]}?"
                    if near
                    else "cover it in the ClusterQueues, or remove the output",
                )


@rule("KC703", "dead-multiplier", Severity.WARNING, "a multiplyBy that is excluded, or that no pod requests")
def dead_multipliers(facts: Facts) -> Iterator[Hit]:
    """The input is then not multiplied at all."""
    requested = _requested(facts)
    for index, transformation in enumerate(_transformations(facts)):
        name, multiplier = text_at(transformation, "input"), text_at(transformation, "multiplyBy")
        with_input = [those for those in requested if name in those]
        prefix = next((prefix for prefix in _excluded(facts) if prefix and multiplier.startswith(prefix)), "")
        if not multiplier or _prefix_of(facts, transformation):
            continue
        others = {resource for those in with_input for resource in those if resource != name}
        if prefix:
            why = f"multiplyBy {multiplier} is excluded by the prefix {quoted(prefix)}, so it counts as 1"
            remedy = "remove the prefix, and drop the resource by a transformation with strategy Replace and no outputs"
        elif with_input and multiplier not in others:
            why = f"no pod that requests {name} requests {multiplier}, so it counts as 1"
            near = near_names(multiplier, sorted(others))
            remedy = f"did you mean {near[0]}?" if near else "correct multiplyBy, or request it in the pods"
        else:
            continue
        yield hit(_configuration(facts), why, field=f"{_TRANSFORMATIONS}[{index}].multiplyBy", remedy=remedy)


@rule("KC704", "idle-weight", Severity.WARNING, "a resourceWeight of a resource for which no ClusterQueue has quota")
def idle_weights(facts: Facts) -> Iterator[Hit]:
    """Its usage is always 0; what is used counts with a weight of 1 (rules/09 §1)."""
    covered = _covered(facts)
    for resource in object_at(_plain(facts), "admissionFairSharing", "resourceWeights") if covered else ():
        if resource not in covered:
            near = near_names(resource, covered)
            yield hit(
                _configuration(facts),
                f"no ClusterQueue has quota for {resource}, so its weight does nothing",
                field=f"admissionFairSharing.resourceWeights[{resource}]",
                remedy=f"did you mean {near[0]}?" if near else "correct the name, or remove it",
            )


@rule("KC705", "endless-retries", Severity.NOTE, "a waitForPodsReady that evicts and requeues without a limit")
def endless_retries(facts: Facts) -> Iterator[Hit]:
    """A job whose pods never get ready takes quota again and again. Looks only at what the file says."""
    written = facts.configuration_manifest
    asked = object_at(written.object, "waitForPodsReady") if written is not None else {}
    if written is None or not asked or asked.get("enable") is False:
        return
    if object_at(asked, "requeuingStrategy").get("backoffLimitCount") is None:
        yield hit(
            written,
            "workloads whose pods do not get ready are evicted and requeued forever, as there is no backoffLimitCount",
            field="waitForPodsReady",
            remedy="set requeuingStrategy.backoffLimitCount",
        )


def _plain(facts: Facts) -> JsonObject:
    return facts.engine.configuration.to_dict()


def _configuration(facts: Facts) -> Manifest:
    """The Configuration, with its file and line if these are known."""
    return facts.configuration_manifest or Manifest(_plain(facts))


def _excluded(facts: Facts) -> list[str]:
    return [value for value in list_at(_plain(facts), *_PREFIXES.split(".")) if isinstance(value, str)]


def _transformations(facts: Facts) -> list[JsonObject]:
    return [object_at(value) for value in list_at(_plain(facts), *_TRANSFORMATIONS.split("."))]


def _prefix_of(facts: Facts, transformation: JsonObject) -> str:
    """The prefix that excludes the input of a transformation; empty if none does."""
    name = text_at(transformation, "input")
    return next((prefix for prefix in _excluded(facts) if prefix and name.startswith(prefix)), "")


def _outputs(transformation: JsonObject) -> list[str]:
    return list(object_at(transformation, "outputs"))


def _covered(facts: Facts) -> dict[str, str]:
    """The resources for which ClusterQueues have quota, each with the first that has."""
    found: dict[str, str] = {}
    for name, queue in facts.cluster_queues.items():
        for quota in quota_fields(queue):
            found.setdefault(quota.resource, name)
    return found


def _requested(facts: Facts) -> list[set[str]]:
    """The resources that each pod set of the workloads requests, or limits."""
    found = []
    for workload in facts.workloads.values():
        for pod_set in list_at(workload.object, "spec", "podSets"):
            spec = object_at(pod_set, "template", "spec")
            containers = [*list_at(spec, "initContainers"), *list_at(spec, "containers")]
            resources = [
                object_at(container, "resources", part) for container in containers for part in ("requests", "limits")
            ]
            found.append({name for resource in resources for name in resource})
    return found
