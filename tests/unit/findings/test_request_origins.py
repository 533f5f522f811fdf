"""Requests that a job does not make itself, and what to do about those that no ClusterQueue covers."""

from __future__ import annotations

import pytest

from kueuecore import Configuration, parse_manifests
from kueuecore.findings import Finding, check
from tests.quota_manifests import flavor, local_queue, queue, workload

QUEUE = flavor() + queue("a", "nominalQuota: 4") + local_queue("a")
SIZES = """---
apiVersion: v1
kind: LimitRange
metadata: {name: sizes, namespace: team}
spec: {limits: [{type: Container, defaultRequest: {scratch: 1}}]}
"""
RUNTIME = """---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: vm}
handler: h
overhead: {podFixed: {ram: 1}}
"""
SETTINGS = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {transformations: [{input: cpu, strategy: Retain, outputs: {credits: 2}}]}
"""


def only(text: str, settings: str = "") -> Finding:
    configuration = Configuration.parse(settings) if settings else None
    (finding,) = check(parse_manifests(QUEUE + text), configuration=configuration, select=["KC602"])
    return finding


@pytest.mark.parametrize(
    ("text", "settings", "origin"),
    [
        (SIZES + workload("w", "a", 1), "", "(scratch is from LimitRange team/sizes)"),
        (workload("w", "a", 1), SETTINGS, "(credits is from the transformation of cpu)"),
        (
            RUNTIME + workload("w", "a", 1).replace("{spec: {", "{spec: {runtimeClassName: vm, "),
            "",
            "(ram is from the overhead of RuntimeClass vm)",
        ),
    ],
)
def test_the_origin_of_a_request_is_named_that_the_job_does_not_make(text: str, settings: str, origin: str) -> None:
    finding = only(text, settings)
    assert finding.problem.message.endswith(origin)
    assert finding.problem.remedy.startswith("cover ")
    assert "IgnoreUndeclared" in finding.problem.remedy


@pytest.mark.parametrize("overhead", ["", "overhead: {cpu: 4}, "], ids=["of the class", "of the pods"])
def test_the_overhead_is_a_part_of_what_the_job_asks_for(overhead: str) -> None:
    runtime = RUNTIME.replace("ram: 1", "cpu: 4")
    finding = only(runtime + workload("w", "a", 1).replace("{spec: {", f"{{spec: {{runtimeClassName: vm, {overhead}"))
    assert finding.problem.message.endswith("(cpu is from the job and the overhead of RuntimeClass vm)")


def test_a_request_that_the_job_makes_has_no_origin() -> None:
    finding = only(SIZES + workload("w", "a", 1).replace("{cpu: 1}", "{cpu: 1, scratch: 1}"))
    assert finding.problem.message.endswith("resource scratch unavailable in ClusterQueue")


def test_the_name_of_a_resource_is_corrected() -> None:
    text = queue("a", resource="acme.com/npu") + workload("w", "a", 1).replace("cpu: 1", "npu: 1")
    assert only(text).problem.remedy == "did you mean acme.com/npu?"
