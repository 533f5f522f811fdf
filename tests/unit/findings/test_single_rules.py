"""What is particular about single rules; `test_rules` has a case for each."""

from __future__ import annotations

import pytest

from kueuecore import Configuration, ManifestError, parse_manifests
from kueuecore.configuration import feature_gates
from kueuecore.findings import Severity, check
from tests.quota_manifests import cohort, flavor, local_queue, node, queue, workload
from tests.unit.findings.test_rules import BOTH, CPU, HALL, MISPLACED, ONE, PLACED_EARLIER, found, pair


def test_a_local_queue_may_be_elsewhere_if_none_is_given() -> None:
    (finding,) = check(parse_manifests(workload("w", "a", 1)), select=["missing-local-queue"])
    assert finding.severity is Severity.NOTE
    assert str(finding) == (
        '<string>:6 (document 1): note KC407 missing-local-queue: Workload "team/w": spec.queueName: Not found: "a": '
        "there are no LocalQueues among the objects, and without this one in namespace team it waits; "
        "add the LocalQueue, unless it is elsewhere"
    )
    (finding,) = check(parse_manifests(ONE + workload("w", "b", 1)), select=["missing-local-queue"])
    assert finding.severity is Severity.ERROR


def test_a_limit_counts_what_parent_cohorts_withhold() -> None:
    """The other 6 are behind a lendingLimit of 2, so that is all that could be borrowed."""
    text = pair("nominalQuota: 4, borrowingLimit: 2", "nominalQuota: 6, lendingLimit: 2")
    (finding,) = check(parse_manifests(text), select=["loose-borrowing-limit"])
    assert finding.problem.message == "it never binds: there is only 2 cpu to borrow"


def test_the_rarer_of_two_units_is_reported() -> None:
    texts = [queue(name, f"nominalQuota: {entry}", cohort="all") for name, entry in (("a", 4000), ("b", 4), ("c", 4))]
    (finding,) = check(parse_manifests(flavor() + "".join(texts)), select=["units-differ"])
    assert str(finding.object) == 'ClusterQueue "a"'
    assert finding.problem.message == (
        'Invalid value: "4000": ClusterQueue b has 4 cpu in the same flavor default, 1000 times less'
    )


def test_findings_in_v1beta1_name_the_field_cohort() -> None:
    text = (ONE + BOTH).replace("v1beta2", "v1beta1").replace("cohortName", "cohort")
    assert found(text, "lonely-member", release="0.19") == [('ClusterQueue "b"', "spec.cohort")]


def test_a_version_that_the_release_serves_is_read() -> None:
    text = ONE + cohort("all").replace("v1beta2", "v1beta1")
    assert found(text, "unread-version", release="0.19") == []
    with pytest.raises(ManifestError, match="convert it: kueuecore convert"):
        found(text, "unread-version")


def test_misplaced_pods_say_why_kueue_placed_them_there() -> None:
    """Before 0.20.0, Kueue looks at racks alone; from then on it only finds what was placed earlier."""

    def messages(text: str, release: str) -> list[tuple[str, str]]:
        configuration = Configuration(release=release)
        findings = check(parse_manifests(text), configuration=configuration, select=["misplaced-pods"])
        return [(finding.problem.message.partition(": ")[2], finding.problem.remedy) for finding in findings]

    elsewhere = HALL + node("n2", "{pool: q, disk: x}")
    remedy = "end the topology with kubernetes.io/hostname, or use a flavor with these labels"
    why = "Kueue does not look at selectors where a topology ends above single nodes"
    assert messages(elsewhere + MISPLACED, "0.19") == [(why, remedy)]
    assert messages(elsewhere + MISPLACED, "0.20.0") == []
    why = "Kueue placed it there while it did not look at selectors, or before labels changed"
    remedy = "have the Workload placed again: set its spec.active to false, and back once it is evicted"
    assert messages(elsewhere + MISPLACED + PLACED_EARLIER, "0.20.0") == [(why, remedy)]


def test_limits_without_a_cohort_are_found_in_a_dump() -> None:
    text = flavor() + queue("a", "nominalQuota: 4, borrowingLimit: 2")
    (finding,) = check(parse_manifests(text), trusted=True, select=["policy-without-cohort"])
    assert finding.problem.field == f"{CPU}.borrowingLimit"


def test_a_topology_without_levels_counts_as_missing() -> None:
    text = HALL.replace("spec: {levels: [{nodeLabel: rack}]}\n", "")
    (finding,) = check(parse_manifests(text), select=["missing-topology"])
    assert finding.problem.message == 'Topology "hall" has no levels, so this flavor cannot place any pods'


def test_without_the_feature_gate_topologies_are_ignored() -> None:
    gates = [gate.name for gate in feature_gates() if gate.name.startswith(("TAS", "TopologyAware"))]
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
    off = Configuration.parse(text, feature_gates=dict.fromkeys(gates, False))
    text = HALL.replace("name: hall}", "name: hal}")
    assert check(parse_manifests(text), configuration=off, select=["KC5"]) == ()


def test_a_local_queue_of_weight_zero_is_found_once_and_where_usage_decides() -> None:
    scope = "admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}"
    last = local_queue("z", "a", spec="fairSharing: {weight: 0}")
    text = flavor() + queue("a", spec=scope) + local_queue("a") + last
    kind = "apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration"
    by_usage = Configuration.parse(f"{{{kind}, admissionFairSharing: {{usageHalfLifeTime: 1h}}}}")

    def fields(text: str, configuration: Configuration | None = by_usage) -> list[tuple[str, str]]:
        hits = check(parse_manifests(text), configuration=configuration, select=["KC305", "KC412"])
        return [(hit.code, str(hit.object)) for hit in hits]

    assert fields(text) == [("KC412", 'LocalQueue "team/z"')]
    assert fields(text, None) == []
    assert fields(text.replace(scope, "")) == []
    assert fields(text.replace(local_queue("a"), "")) == []


def test_annotations_of_kueue_0_20_are_unknown_to_older_releases() -> None:
    text = ONE.replace(
        "kind: ClusterQueue\nmetadata: {", "kind: ClusterQueue\nmetadata: {annotations: {ANNOTATION: p}, ", 1
    )
    text = text.replace("ANNOTATION", "kueue.x-k8s.io/preemption-config-name")
    assert text != ONE
    for release, n_found in (("0.20.0", 0), ("0.20.0-devel", 1)):
        found_here = check(
            parse_manifests(text), configuration=Configuration(release=release), select=["unknown-label"]
        )
        assert len(found_here) == n_found
