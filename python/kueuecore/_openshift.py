"""OpenShift's Kueue object: the Configuration that its operator makes of `spec.config`.

https://github.com/openshift/kueue-operator
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kueuecore._fields import Fields, shown
from kueuecore._json import JsonObject, JsonValue
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import API_VERSIONS, Manifest

__all__ = ["configuration_of"]

_FRAMEWORKS = {
    "AppWrapper": "workload.codeflare.dev/appwrapper",
    "BatchJob": "batch/job",
    "Deployment": "deployment",
    "JaxJob": "kubeflow.org/jaxjob",
    "JobSet": "jobset.x-k8s.io/jobset",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/leaderworkerset",
    "MPIJob": "kubeflow.org/mpijob",
    "PaddleJob": "kubeflow.org/paddlejob",
    "Pod": "pod",
    "PyTorchJob": "kubeflow.org/pytorchjob",
    "RayCluster": "ray.io/raycluster",
    "RayJob": "ray.io/rayjob",
    "RayService": "ray.io/rayservice",
    "SparkApplication": "sparkoperator.k8s.io/sparkapplication",
    "StatefulSet": "statefulset",
    "TFJob": "kubeflow.org/tfjob",
    "TrainJob": "trainer.kubeflow.org/trainjob",
    "XGBoostJob": "kubeflow.org/xgboostjob",
}
# The operator has no way to turn it off, so it waits for a year.
_NEVER: JsonObject = {"timeout": "8760h", "blockAdmission": False}
_HALF_LIFE = "30m"
_MOST = 2**31 - 1
_NUMBER = re.compile(r"\+?[0-9]{0,18}\.?[0-9]{1,18}(?:[eE][-+]?[0-9]{1,2})?")


def configuration_of(kueue: Manifest) -> Manifest:
    """Return the Configuration that the operator gives to Kueue.

    Args:
        kueue: An object of kind Kueue, kueue.openshift.io/v1.

    Raises:
        ManifestError: A field has a value that its definition does not allow.

    Example:
        >>> spec = {"config": {"integrations": {"frameworks": ["BatchJob"]}, "preemption": {}}}
        >>> made = configuration_of(Manifest({"kind": "Kueue", "spec": spec})).object
        >>> made["integrations"], made["managedJobsNamespaceSelector"]
        ({'frameworks': ['batch/job']}, {'matchLabels': {'kueue.openshift.io/managed': 'true'}})
    """
    problems: list[Problem] = []
    config = Fields(kueue, kueue.object, "", problems).part("spec")
    config = None if config is None else config.part("config")
    made = {} if config is None else dict(_settings(config))
    if problems:
        raise ManifestError(problems)
    plain: JsonObject = {
        "apiVersion": API_VERSIONS["Configuration"],
        "kind": "Configuration",
        "managedJobsNamespaceSelector": {"matchLabels": {"kueue.openshift.io/managed": "true"}},
        **made,
    }
    return Manifest(plain, kueue.source.without_fields())


def _settings(config: Fields) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields of the Configuration that `spec.config` sets."""
    gates: JsonObject = {}
    if (integrations := config.part("integrations")) is not None:
        frameworks = _frameworks(integrations)
        external = _external_frameworks(integrations)
        keys = [part.text("key") for part in integrations.parts("labelKeysToCopy")]
        parts: dict[str, list[str]] = {
            "frameworks": frameworks,
            "externalFrameworks": external,
            "labelKeysToCopy": keys,
        }
        yield "integrations", {name: [*values] for name, values in parts.items() if values}
        if _FRAMEWORKS["SparkApplication"] in frameworks:
            gates["SparkApplicationIntegration"] = True
        if external:
            gates["ShortWorkloadNames"] = True
    if (management := config.part("workloadManagement")) is not None:
        policy = management.text("labelPolicy", one_of=["QueueName", "None", ""])
        yield "manageJobsWithoutQueueName", policy == "None"
    if (gangs := config.part("gangScheduling")) is not None:
        yield from _pods_ready(gangs)
    if (preemption := config.part("preemption")) is not None:
        policy = preemption.text("preemptionPolicy", one_of=["Classical", "FairSharing", ""])
        if policy == "FairSharing":
            yield "fairSharing", {"preemptionStrategies": ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]}
    if (resources := config.part("resources")) is not None:
        mappings: list[JsonValue] = [_mapping(part) for part in resources.parts("deviceClassMappings")]
        if mappings:
            yield "resources", {"deviceClassMappings": mappings}
    if (fleet := config.part("multiKueue")) is not None:
        names = _external_frameworks(fleet)
        yield "multiKueue", {"externalFrameworks": [{"name": name} for name in names]}
        if names:
            gates["ShortWorkloadNames"] = True
    if (sharing := config.part("admissionFairSharing")) is not None:
        yield from _admission_fair_sharing(sharing)
    if gates:
        yield "featureGates", gates


def _frameworks(integrations: Fields) -> list[str]:
    found = []
    given = integrations.value("frameworks")
    for index, name in enumerate(given if isinstance(given, list) else []):
        if isinstance(name, str) and name in _FRAMEWORKS:
            found.append(_FRAMEWORKS[name])
        else:
            remedy = f"write one of {', '.join(_FRAMEWORKS)}"
            integrations.complain(f"frameworks[{index}]", f"Unsupported value: {shown(name)}", remedy)
    return found


def _external_frameworks(section: Fields) -> list[str]:
    fields = ("resource", "version", "group")
    return [".".join(part.text(name) for name in fields) for part in section.parts("externalFrameworks")]


def _pods_ready(gangs: Fields) -> Iterator[tuple[str, JsonValue]]:
    policy = gangs.text("policy", one_of=["ByWorkload", "ByWorkloadDefaults", "None", ""])
    if policy == "None":
        yield "waitForPodsReady", _NEVER
    if policy != "ByWorkload":
        return
    wait: JsonObject = {"blockAdmission": False}
    if (workload := gangs.part("byWorkload")) is not None:
        admission = workload.text("admission", one_of=["Parallel", "Sequential", ""])
        wait["blockAdmission"] = admission == "Sequential"
        if seconds := workload.whole("timeoutSeconds", 0, most=_MOST):
            wait["timeout"] = f"{seconds}s"
        if workload.value("recoveryTimeoutSeconds") is not None:
            wait["recoveryTimeout"] = f"{workload.whole('recoveryTimeoutSeconds', 0, most=_MOST)}s"
        if (requeuing := workload.part("requeuingStrategy")) is not None:
            strategy: JsonObject = {}
            for name, field in (
                ("retryLimit", "backoffLimitCount"),
                ("backoffBaseSeconds", "backoffBaseSeconds"),
                ("backoffMaxSeconds", "backoffMaxSeconds"),
            ):
                if number := requeuing.whole(name, 0, most=_MOST):
                    strategy[field] = number
            if reference := requeuing.text("timeReference", one_of=["Eviction", "Creation"]):
                strategy["timestamp"] = reference
            if strategy:
                wait["requeuingStrategy"] = strategy
    yield "waitForPodsReady", wait


def _mapping(section: Fields) -> JsonObject:
    """Return a device class mapping, in which the operator leaves out the types of unions."""
    classes = section.value("deviceClassNames")
    made: JsonObject = {"name": section.text("name"), "deviceClassNames": classes}
    sources: list[JsonValue] = []
    for source in section.parts("sources"):
        if (counter := source.part("counter")) is not None:
            found: JsonObject = {"name": counter.text("name"), "driver": counter.text("driver")}
            selector = counter.part("deviceSelector")
            cel = None if selector is None else selector.part("cel")
            if cel is not None and (expression := cel.text("expression")):
                found["deviceSelector"] = {"cel": {"expression": expression}}
            sources.append({"counter": found})
    return {**made, "sources": sources} if sources else made


def _admission_fair_sharing(sharing: Fields) -> Iterator[tuple[str, JsonValue]]:
    kind = sharing.text("configuration", one_of=["Default", "Custom", ""])
    if kind == "Default":
        yield "admissionFairSharing", {"usageHalfLifeTime": _HALF_LIFE}
    if kind != "Custom":
        return
    made: JsonObject = {}
    if (custom := sharing.part("custom")) is not None:
        for name, field in (
            ("usageHalfLifeTimeSeconds", "usageHalfLifeTime"),
            ("usageSamplingIntervalSeconds", "usageSamplingInterval"),
        ):
            if seconds := custom.whole(name, 0, most=_MOST):
                made[field] = f"{seconds}s"
        weights: JsonObject = {}
        for entry in custom.parts("resourceWeights"):
            weight = entry.text("weight")
            if _NUMBER.fullmatch(weight):
                weights[entry.text("name")] = float(weight)
            else:
                entry.complain("weight", f"not a number: {shown(weight)}", 'write it in quotes: "0.5"')
        made["resourceWeights"] = weights
    yield "admissionFairSharing", made
