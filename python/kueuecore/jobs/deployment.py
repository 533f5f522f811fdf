"""Supports Deployments: every pod has its own Workload, and the whole is never suspended (rules/10 §5.5)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from kueuecore._json import JsonObject, int_at, object_at, text_at
from kueuecore.errors import Problem
from kueuecore.jobs.context import (
    MANAGED_LABEL,
    PRIORITY_CLASS_LABEL,
    QUEUE_LABEL,
    JobsConfiguration,
    Surroundings,
    labels_of,
    set_annotation,
    set_label,
)
from kueuecore.jobs.field_types import Exactly, Shape, Type
from kueuecore.jobs.integration import Integration
from kueuecore.jobs.manifest_shapes import TEMPLATE, template_problems
from kueuecore.jobs.owners import controller_of
from kueuecore.jobs.pod import SUSPENDED_BY_PARENT
from kueuecore.jobs.rejections import invalid

__all__ = ["DEPLOYMENT", "DEPLOYMENT_FIELDS"]

_TEMPLATE = ("spec", "template")
_UNREAD = ("minReadySeconds", "paused", "progressDeadlineSeconds", "revisionHistoryLimit", "selector", "strategy")
DEPLOYMENT_FIELDS: Mapping[str, Shape] = {
    "spec": Exactly({"replicas": Type.COUNT, "template": TEMPLATE, **dict.fromkeys(_UNREAD, Type.ANY)}),
    "status": {"readyReplicas": Type.COUNT},
}
# Each becomes an object here; no cluster has that many.
_MAX_PODS = 200_000


def _shape_problems(deployment: JsonObject) -> list[Problem]:
    problems = template_problems(deployment, _TEMPLATE)
    n_pods = int_at(deployment, "spec", "replicas")
    if n_pods > _MAX_PODS and not problems:
        return [invalid("spec.replicas", n_pods, f"must be at most {_MAX_PODS}: each pod gets a Workload of its own")]
    return problems


def _hold_back(deployment: JsonObject, _configuration: JobsConfiguration) -> JsonObject:
    template = copy.deepcopy(object_at(deployment, *_TEMPLATE))
    set_annotation(template, SUSPENDED_BY_PARENT, "deployment")
    set_label(template, MANAGED_LABEL, "true")
    for label in (QUEUE_LABEL, PRIORITY_CLASS_LABEL):
        if value := labels_of(deployment).get(label):
            set_label(template, label, value)
    return {**deployment, "spec": {**object_at(deployment, "spec"), "template": template}}


def _pods_made(deployment: JsonObject, surroundings: Surroundings) -> list[JsonObject]:
    """Return as many pods as there are replicas, if none exists. In a cluster their names are random."""
    template, metadata = object_at(deployment, *_TEMPLATE), object_at(deployment, "metadata")
    if any(_is_of(deployment, manifest) for manifest in surroundings.by_key.values()):
        return []
    pod_metadata: JsonObject = {
        **object_at(template, "metadata"),
        "generateName": f"{text_at(metadata, 'name')}-",
        "namespace": text_at(metadata, "namespace"),
    }
    if created := text_at(metadata, "creationTimestamp"):
        pod_metadata["creationTimestamp"] = created
    pod: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": pod_metadata,
        "spec": object_at(template, "spec"),
    }
    return [pod for _ in range(int_at(deployment, "spec", "replicas", default=1))]


def _is_of(deployment: JsonObject, plain: JsonObject) -> bool:
    """Return whether an object is a pod of the Deployment: its ReplicaSet is named after both."""
    if text_at(plain, "kind") != "Pod" or text_at(plain, "apiVersion") != "v1":
        return False
    owner = controller_of(plain)
    name, _, _ = text_at(owner, "name").rpartition("-")
    same_namespace = text_at(plain, "metadata", "namespace") == text_at(deployment, "metadata", "namespace")
    return same_namespace and (text_at(owner, "kind"), name) == ("ReplicaSet", text_at(deployment, "metadata", "name"))


DEPLOYMENT = Integration(
    framework="deployment",
    api_version="apps/v1",
    kind="Deployment",
    pod_sets=lambda _job, _surroundings: [],
    suspend_field=None,
    is_serving=True,
    hold_back=_hold_back,
    fields=DEPLOYMENT_FIELDS,
    shape_problems=_shape_problems,
    is_revalidated=True,
    pods_made=_pods_made,
    n_workloads=lambda _: 0,
    custom_start=lambda _job, _infos, _configuration: [],
    custom_stop=lambda _job, _infos, _reason, _message: [],
)
