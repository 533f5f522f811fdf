"""The defaults and rules of `batch/v1` Jobs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from kueuecore._json import int_at, list_at, object_at, text_at
from kueuecore_apiserver.pod_rules import pod_spec_causes, with_template_defaults
from kueuecore_apiserver.refusals import Cause, mistyped
from kueuecore_apiserver.requests import Object

__all__ = ["check_job_types", "job_causes", "job_change_causes", "with_job_defaults"]

_LABEL_PREFIX = "batch.kubernetes.io/"
_IMMUTABLE = ("selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy")
# The fields of a pod template that may change while a Job is suspended.
_METADATA_DIRECTIVES = ("labels", "annotations")
_SPEC_DIRECTIVES = ("nodeSelector", "tolerations", "schedulingGates")
# A name that is also the value of a label.
_MAX_NAME = 63
_MANAGER = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[^/ ]+")
_COUNTS = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")


def with_job_defaults(job: Object, uid: str) -> Object:
    """Return a Job with the server's defaults, its selector and the labels of its pods.

    Args:
        job: The Job.
        uid: Its UID, which identifies its pods.
    """
    if not isinstance(job.get("spec"), dict):
        return job
    spec = dict(job["spec"])
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    defaults = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    if spec.get("backoffLimitPerIndex") is not None:
        defaults["backoffLimit"] = 2**31 - 1
    spec = {**defaults, **{name: row for name, row in spec.items() if row is not None}}
    spec.setdefault("podReplacementPolicy", "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed")
    spec["template"] = with_template_defaults(object_at(spec, "template"))
    if spec.get("manualSelector") is not True:
        own = {
            f"{_LABEL_PREFIX}controller-uid": uid,
            f"{_LABEL_PREFIX}job-name": text_at(job, "metadata", "name"),
            "controller-uid": uid,
            "job-name": text_at(job, "metadata", "name"),
        }
        metadata = object_at(spec, "template", "metadata")
        labels = {**own, **object_at(metadata, "labels")}
        spec["template"] = {**spec["template"], "metadata": {**metadata, "labels": labels}}
        spec.setdefault("selector", {"matchLabels": {f"{_LABEL_PREFIX}controller-uid": uid}})
    return {**job, "spec": spec}


def check_job_types(job: Object) -> None:
    """Check that the fields of a Job have types that can be decoded.

    Raises:
        RefusedError: One has another type (400).
    """
    spec = object_at(job, "spec")
    for name in _COUNTS:
        value = spec.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
            raise mistyped("Job", "v1", f"JobSpec.spec.{name}", value, "int64" if "econds" in name else "int32")
    if not isinstance(spec.get("suspend"), bool | None):
        raise mistyped("Job", "v1", "JobSpec.spec.suspend", spec["suspend"], "bool")


def job_causes(job: Object) -> Iterator[Cause]:
    """Yield what is wrong with a Job."""
    spec = object_at(job, "spec")
    name = text_at(job, "metadata", "name")
    if len(name) > _MAX_NAME:
        yield Cause("spec.template.labels", f'Invalid value: "{name}": must be no more than {_MAX_NAME} bytes')
    manager = text_at(spec, "managedBy")
    if manager and not _MANAGER.fullmatch(manager):
        why = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield Cause("spec.managedBy", f'Invalid value: "{manager}": {why}')
    for name in _COUNTS:
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            yield Cause(f"spec.{name}", f"Invalid value: {json.dumps(value)}: must be greater than or equal to 0")
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        yield Cause("spec.completions", "Required value: when completion mode is Indexed")
    if spec.get("completionMode") not in (None, "Indexed", "NonIndexed"):
        shown = json.dumps(spec["completionMode"])
        yield Cause("spec.completionMode", f'Unsupported value: {shown}: supported values: "Indexed", "NonIndexed"')
    labels = object_at(spec, "template", "metadata", "labels")
    wanted = object_at(spec, "selector", "matchLabels")
    if any(labels.get(name) != value for name, value in wanted.items()):
        yield Cause(
            "spec.template.metadata.labels",
            f"Invalid value: {json.dumps(labels)}: `selector` does not match template `labels`",
        )
    template = object_at(spec, "template", "spec")
    yield from pod_spec_causes(template, "spec.template.spec")
    policy = template.get("restartPolicy")
    if policy in (None, "Always"):
        # What a pod template defaults to counts as missing.
        words = 'Required value: valid values: "OnFailure", "Never"'
        yield Cause("spec.template.spec.restartPolicy", words)
    elif policy not in ("OnFailure", "Never"):
        yield Cause(
            "spec.template.spec.restartPolicy",
            f'Unsupported value: {json.dumps(policy)}: supported values: "Never", "OnFailure"',
        )


def job_change_causes(new: Object, old: Object) -> Iterator[Cause]:
    """Yield the changes to a Job that are not allowed.

    The template may change while the Job is suspended and has no active pods, and either has not started or says that
    it is suspended: labels, annotations, node selector and affinity, tolerations, gates, and the requests of its
    containers. This is the rule since Kubernetes 1.36; before, nothing may change once the Job has started.
    """
    before, after = object_at(old, "spec"), object_at(new, "spec")
    if before.get("completions") != after.get("completions") and not _is_elastic_change(before, after):
        yield _immutable("completions", after)
    for name in _IMMUTABLE:
        if before.get(name) != after.get(name):
            yield _immutable(name, after)
    was, is_now = object_at(before, "template"), object_at(after, "template")
    if was == is_now:
        return
    status = object_at(old, "status")
    is_open = before.get("suspend") is True and int_at(status, "active") == 0
    is_open &= "startTime" not in status or _says_suspended(status)
    if not is_open:
        yield _immutable("template", after)
    elif _frozen(was) != _frozen(is_now):
        shown = json.dumps(is_now.get("spec"), sort_keys=True, separators=(",", ":"))
        yield Cause("spec.template.spec", f"Invalid value: {shown}: field is immutable")


def _says_suspended(status: Object) -> bool:
    conditions = (object_at(condition) for condition in list_at(status, "conditions"))
    return any(condition.get("type") == "Suspended" and condition.get("status") == "True" for condition in conditions)


def _is_elastic_change(before: Object, after: Object) -> bool:
    """Return whether a change is that of completions together with parallelism, allowed for an Indexed Job."""
    return after.get("completionMode") == "Indexed" and after.get("completions") == after.get("parallelism")


def _immutable(name: str, spec: Object) -> Cause:
    return Cause(f"spec.{name}", f"Invalid value: {json.dumps(spec.get(name))}: field is immutable")


def _frozen(template: Object) -> Object:
    """Return a template without what may change while the Job is suspended."""
    metadata = {
        name: entry for name, entry in object_at(template, "metadata").items() if name not in _METADATA_DIRECTIVES
    }
    spec = {name: entry for name, entry in object_at(template, "spec").items() if name not in _SPEC_DIRECTIVES}
    affinity = {name: entry for name, entry in object_at(spec, "affinity").items() if name != "nodeAffinity"}
    spec.pop("affinity", None)
    for name in ("containers", "initContainers"):
        if name in spec:
            spec[name] = [_without_amounts(object_at(value)) for value in list_at(spec, name)]
    return {"metadata": metadata, "spec": {**spec, "affinity": affinity}}


def _without_amounts(container: Object) -> Object:
    resources = {name: resource for name, resource in object_at(container, "resources").items() if name == "claims"}
    return {**container, "resources": resources}
