"""Findings about Kueue's Configuration, each with a near miss."""

from __future__ import annotations

import pytest

from kueuecore import Configuration, parse_manifests
from kueuecore.findings import Severity, check
from tests.quota_manifests import flavor, local_queue, queue, workload

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
# An accelerator of which pods request memory, counted per device.
BYTES = "{input: acme.com/bytes, strategy: Replace, multiplyBy: acme.com/devices, outputs: {quota/bytes: 1}}"
DEVICES = "{input: acme.com/devices, strategy: Replace, outputs: {}}"
GPU = (
    flavor()
    + queue("a", resource="quota/bytes")
    + local_queue("a")
    + workload("w", "a", 1).replace("{cpu: 1}", "{acme.com/bytes: 2, acme.com/devices: 1}")
)
SHARED = (
    flavor()
    + queue("a", spec="admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}")
    + local_queue("a", spec="fairSharing: {weight: 0}")
)
FAIR = "admissionFairSharing: {usageHalfLifeTime: 1h, usageSamplingInterval: 1m}"
PREFIXES = "excludeResourcePrefixes"

CASES: dict[str, tuple[str, str, list[str], str, str]] = {
    "excluded-quota": (
        flavor() + queue("a"),
        f"resources: {{{PREFIXES}: [acme.com/, cp]}}",
        [f"resources.{PREFIXES}[1]"],
        flavor() + queue("a"),
        f"resources: {{{PREFIXES}: [acme.com/, cpu/]}}",
    ),
    "dead-transformation": (
        GPU,
        f"resources: {{{PREFIXES}: [acme.com/by], transformations: [{BYTES}, {DEVICES}]}}",
        ["resources.transformations[0].input"],
        GPU,
        f"resources: {{transformations: [{BYTES}, {DEVICES}]}}",
    ),
    "dead-multiplier": (
        GPU,
        f"resources: {{{PREFIXES}: [acme.com/devices], transformations: [{BYTES}]}}",
        ["resources.transformations[0].multiplyBy"],
        GPU,
        f"resources: {{{PREFIXES}: [acme.com/devices/], transformations: [{BYTES}, {DEVICES}]}}",
    ),
    "idle-weight": (
        flavor() + queue("a"),
        FAIR.replace("}", ", resourceWeights: {cpu: 2, cpus: 3}}"),
        ["admissionFairSharing.resourceWeights[cpus]"],
        flavor() + queue("a"),
        FAIR.replace("}", ", resourceWeights: {cpu: 2}}"),
    ),
    "endless-retries": (
        flavor(),
        "waitForPodsReady: {timeout: 5m}",
        ["waitForPodsReady"],
        flavor(),
        "waitForPodsReady: {timeout: 5m, requeuingStrategy: {backoffLimitCount: 9}}",
    ),
    "local-queue-weight-zero": (
        SHARED + local_queue("b", "a"),
        FAIR,
        ["spec.fairSharing.weight"],
        SHARED,
        FAIR,
    ),
}


SERVICE = """---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: team, labels: {kueue.x-k8s.io/queue-name: a}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]}
"""


def found(objects: str, settings: str, rule: str) -> list[str]:
    """The fields of what a rule finds."""
    text = HEAD + settings
    (manifest,) = parse_manifests(text, file="config.yaml")
    hits = check(
        parse_manifests(objects),
        configuration=Configuration.parse(text),
        configuration_manifest=manifest,
        select=[rule],
    )
    assert all(hit.problem.line and hit.problem.remedy for hit in hits)
    return [hit.problem.field for hit in hits]


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_finds_what_it_is_for(rule: str) -> None:
    objects, settings, expected, _, _ = CASES[rule]
    assert found(objects, settings, rule) == expected


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_ignores_what_only_looks_like_its_case(rule: str) -> None:
    *_, objects, settings = CASES[rule]
    assert found(objects, settings, rule) == []


def test_a_misspelt_output_and_multiplier_are_corrected() -> None:
    settings = f"resources: {{transformations: [{BYTES.replace('devices', 'deviecs').replace('quota/b', 'quota/kb')}]}}"
    hits = check(parse_manifests(GPU), configuration=Configuration.parse(HEAD + settings), select=["KC7"])
    assert [hit.problem.remedy for hit in hits] == ["did you mean quota/bytes?", "did you mean acme.com/devices?"]


def test_settings_that_are_not_written_down_are_not_found() -> None:
    assert check(parse_manifests(GPU), select=["KC7"]) == ()


def test_a_job_whose_kind_the_configuration_does_not_name_is_found() -> None:
    objects = flavor() + queue("a") + local_queue("a") + SERVICE
    label = "metadata.labels[kueue.x-k8s.io/queue-name]"
    assert found(objects, "integrations: {frameworks: [batch/job]}", "unmanaged-job") == [label]
    assert found(objects, "integrations: {frameworks: [pod, deployment]}", "unmanaged-job") == []
    off = Configuration.parse(HEAD + "integrations: {frameworks: [batch/job]}")
    (finding,) = check(parse_manifests(objects), configuration=off, select=["unmanaged-job"])
    assert (finding.severity, finding.problem.remedy) == (
        Severity.NOTE,
        "name it in integrations.frameworks of the Configuration, and check with that, or remove the label",
    )
