"""Devices that pods claim, and what is charged for them."""

from __future__ import annotations

from typing import Any

from kueuecore import Manifest, World
from kueuecore.configuration import Configuration
from kueuecore.objects import (
    Container,
    DeviceClass,
    DeviceRequest,
    PodSet,
    PodTemplate,
    ResourceClaimTemplate,
    Workload,
)
from tests.builders import at, cluster_queue, condition, quota, workload, world

_MAPPED = Configuration.parse("""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {deviceClassMappings: [{name: gpu, deviceClassNames: [gpu.example.com]}]}
""")
_QUEUE = cluster_queue(quotas={"default": [quota(10), quota(4, resource="gpu")]})


def _template(name: str, **request: Any) -> ResourceClaimTemplate:
    request.setdefault("device_class_name", "gpu.example.com")
    return ResourceClaimTemplate(name, namespace="ns", requests=[DeviceRequest("r", **request)])


def _claimant(name: str, template: str, *, count: int = 1) -> Workload:
    claims: Any = [{"name": "devices", "resourceClaimTemplateName": template}]
    pods = PodTemplate([Container("c", requests={"cpu": 1})], other={"resourceClaims": claims})
    return workload(name, pod_sets=[PodSet(count=count, template=pods)])


def test_claimed_devices_count_as_the_mapped_resource_for_each_pod() -> None:
    engine = world(_QUEUE, _template("one"), _claimant("w", "one", count=3), configuration=_MAPPED)
    (admission,) = engine.cycle(at(1)).admissions
    assert dict(admission.pod_sets[0].resource_usage) == {"cpu": "3", "gpu": "3"}


def test_a_workload_waits_for_its_template() -> None:
    engine = world(_QUEUE, _claimant("w", "two"), configuration=_MAPPED)
    assert engine.cycle(at(1)).admissions == ()
    engine.reconcile(now=at(1))
    message = (
        "spec.podSets[0].template.spec.resourceClaims[0]: Internal error: failed to get claim spec for "
        'ResourceClaimTemplate two in podset main: ResourceClaimTemplate.resource.k8s.io "two" not found'
    )
    assert condition(engine, "w", "QuotaReserved") == ("False", "DRAResourcesUnresolved", message)
    assert engine.what_if(_claimant("other", "two"), now=at(1)).message == message
    engine.apply([_template("two", count=2)], now=at(2))
    engine.reconcile(now=at(2))
    (admission,) = engine.cycle(at(2)).admissions
    assert dict(admission.pod_sets[0].resource_usage) == {"cpu": "1", "gpu": "2"}
    assert engine.delete("ResourceClaimTemplate", "two", namespace="ns", now=at(3))


def test_claims_by_expression_are_undecided() -> None:
    template = _template("t", selectors=[{"cel": {"expression": "true"}}])
    engine = world(_QUEUE, template, _claimant("w", "t"), configuration=_MAPPED)
    (undecided,) = engine.cycle(at(1)).undecided
    assert undecided.field == "spec.podSets[0].template.spec.resourceClaims[0]"
    assert "CEL expression" in undecided.message


def test_an_extended_resource_counts_as_its_device_class() -> None:
    pods = PodSet(requests={"cpu": 1, "example.com/gpu": 2})
    device_class = DeviceClass("gpu.example.com", extended_resource_name="example.com/gpu")
    engine = world(_QUEUE, device_class, workload("w", pod_sets=[pods]), configuration=_MAPPED)
    (admission,) = engine.cycle(at(1)).admissions
    assert dict(admission.pod_sets[0].resource_usage) == {"cpu": "1", "gpu": "2"}


def test_a_template_implies_its_namespace() -> None:
    template = Manifest(_template("t").to_manifest())
    assert World.of([template]).namespaces == ("ns",)
