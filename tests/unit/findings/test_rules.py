"""Each rule finds what it is for, and not what only looks like it."""

from __future__ import annotations

import re

import pytest

from kueuecore import Configuration, parse_manifests
from kueuecore.findings import RULES, check
from tests.quota_manifests import cohort, flavor, local_queue, namespace, node, queue, workload

QUOTA = "spec.resourceGroups[0].flavors[0]"
CPU = f"{QUOTA}.resources[0]"
TOPOLOGY = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Topology
metadata: {name: hall}
spec: {levels: [{nodeLabel: rack}]}
"""
IN_HALL = flavor(spec="{topologyName: hall, nodeLabels: {pool: p}}")
RACK = "{pool: p, rack: r1}"
ONE = flavor() + queue("a") + local_queue("a")
HALL = IN_HALL + TOPOLOGY + queue("a") + local_queue("a") + node("n1", RACK)
TAINT, OTHER_TAINT = "[{key: gpu, effect: NoSchedule}]", "[{key: spot, effect: NoSchedule}]"
ON_NODES = "{nodeLabels: {pool: p}}"
BOTH = queue("b", cohort="all") + local_queue("b")
MISPLACED = workload("w", "a", 1, request="{required: rack}").replace("{spec: {", "{spec: {nodeSelector: {disk: x}, ")
PLACED_EARLIER = """status:
  conditions:
  - type: QuotaReserved
    status: "True"
    reason: QuotaReserved
    message: ""
    lastTransitionTime: "2026-01-01T00:00:00Z"
  admission:
    clusterQueue: a
    podSetAssignments:
    - name: main
      count: 1
      flavors: {cpu: default}
      resourceUsage: {cpu: 1}
      topologyAssignment:
        levels: [rack]
        slices: [{domainCount: 1, podCounts: {universal: 1}, valuesPerLevel: [{universal: r1}]}]
"""

CHECKED = flavor() + queue("a", spec="admissionChecksStrategy: {admissionChecks: [{name: budget}]}")
CHECK = """---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
"""

JOB = """---
apiVersion: batch/v1
kind: Job
metadata:
  name: j
  namespace: team
  labels: {kueue.x-k8s.io/queue-name: a, kueue.x-k8s.io/priority-class: high}
spec:
  suspend: true
  template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
"""
PRIORITY = "---\n{apiVersion: kueue.x-k8s.io/v1beta2, kind: WorkloadPriorityClass, metadata: {name: high}, value: 1}\n"

LIMIT_RANGE = """---
apiVersion: v1
kind: LimitRange
metadata: {name: sizes, namespace: team}
spec: {limits: [{type: Container, defaultRequest: {cpu: 1}}]}
"""
OF_CLASS = "priorityClassRef: {group: kueue.x-k8s.io, kind: WorkloadPriorityClass, name: high}"
SERVICE = "---\n{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}\n"
COUNT = "kueue.x-k8s.io/pod-group-total-count"
MARKED = (
    "{labels: {kueue.x-k8s.io/podset-required-topology: rack}, "
    "annotations: {kueue.sigs.io/podset-preferred-topology: rack}}"
)

TRAINING = (
    flavor(spec="FLAVOR")
    + queue("a")
    + local_queue("a")
    + """---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: ClusterTrainingRuntime
metadata: {name: r}
spec:
  mlPolicy: {numNodes: 1}
  template:
    spec:
      replicatedJobs:
      - name: node
        template:
          metadata: {labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}
          spec:
            template:
              spec:
                tolerations: [{key: spot, operator: Exists}]
                containers: [{name: node, image: i, resources: {requests: {cpu: 1}}}]
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: t, namespace: team, labels: {kueue.x-k8s.io/queue-name: a}}
spec:
  suspend: true
  runtimeRef: {apiGroup: trainer.kubeflow.org, kind: ClusterTrainingRuntime, name: r}
  trainer: {numNodes: 1}
"""
)


def pod(name: str, count: int, *, created: str = "2026-01-01T00:00:00Z", phase: str = "Pending") -> str:
    """A pod of the group `g`."""
    return f"""---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
  namespace: team
  creationTimestamp: "{created}"
  labels: {{kueue.x-k8s.io/queue-name: a, kueue.x-k8s.io/pod-group-name: g}}
  annotations: {{{COUNT}: "{count}"}}
spec: {{containers: [{{name: c, image: i, resources: {{requests: {{cpu: 1}}}}}}]}}
status: {{phase: {phase}}}
"""


def pair(quota: str = "nominalQuota: 4", other: str = "nominalQuota: 4", resource: str = "cpu") -> str:
    """Two ClusterQueues of one cohort."""
    first = queue("a", quota, cohort="all", resource=resource)
    return flavor() + first + queue("b", other, cohort="all", resource=resource) + local_queue("a") + local_queue("b")


# What is found: rule -> manifests that have it, its objects and fields, and manifests that nearly have it.
CASES: dict[str, tuple[str, list[tuple[str, str]], str]] = {
    "unknown-field": (
        flavor() + queue("a", spec="preemption: {reclaimWitinCohort: Any}"),
        [('ClusterQueue "a"', "spec.preemption.reclaimWitinCohort")],
        flavor() + queue("a", spec="preemption: {reclaimWithinCohort: Any}"),
    ),
    "repeated-object": (
        ONE + queue("a", "nominalQuota: 5"),
        [('ClusterQueue "a"', "")],
        ONE + queue("a") + SERVICE + SERVICE.replace("80", "81"),
    ),
    "unknown-silencing": (
        ONE.replace("{name: default}", "{name: default, annotations: {check.kueuecore/ignore: 'KC101, unusd-flavor'}}"),
        [('ResourceFlavor "default"', "metadata.annotations[check.kueuecore/ignore]")],
        ONE.replace("{name: default}", "{name: default, annotations: {check.kueuecore/ignore: 'KC101, KC2'}}"),
    ),
    "duplicate-key": (
        flavor() + queue("a", spec="stopPolicy: Hold\nstopPolicy: None"),
        [('ClusterQueue "a"', "spec.stopPolicy")],
        flavor() + queue("a", spec="stopPolicy: None"),
    ),
    "unread-version": (
        ONE
        + cohort("all").replace("kueue.x-k8s", "kueue.sigs")
        + local_queue("b", "a").replace("kueue.x-k8s", "kueue.k8s"),
        [('Cohort "all"', "apiVersion"), ('LocalQueue "team/b"', "apiVersion")],
        ONE + cohort("all") + cohort("x").replace("kueue.x-k8s.io", "example.com"),
    ),
    "unknown-label": (
        ONE
        + JOB.replace("queue-name", "queue_name").replace("template: {spec", f"template: {{metadata: {MARKED}, spec"),
        [
            ('Job "team/j"', "metadata.labels[kueue.x-k8s.io/queue_name]"),
            ('Job "team/j"', "spec.template.metadata.labels[kueue.x-k8s.io/podset-required-topology]"),
            ('Job "team/j"', "spec.template.metadata.annotations[kueue.sigs.io/podset-preferred-topology]"),
        ],
        ONE
        + JOB.replace("labels: {", "labels: {queue_name: a, example.com/queue-nam: b, ")
        + flavor("rack", "{nodeLabels: {kueue.x-k8s.io/rack: r1}}")
        + node("n", "{kueue.x-k8s.io/rack: r1}")
        + namespace("managed", "{kueue.openshift.io/managed: 'true'}"),
    ),
    "unmanaged-job": (
        ONE + JOB.replace("namespace: team", "namespace: kube-system"),
        [('Job "kube-system/j"', "metadata.labels[kueue.x-k8s.io/queue-name]")],
        ONE
        + PRIORITY
        + JOB
        + JOB.replace("name: j\n", "name: k\n").replace("  suspend", "  parallelism: 1\n  suspend"),
    ),
    "incomplete-pod-group": (
        ONE + pod("p1", 3) + pod("p2", 3),
        [('Pod "team/p1"', f"metadata.annotations[{COUNT}]")],
        ONE + pod("p1", 2) + pod("p2", 2),
    ),
    "excess-pod": (
        ONE + pod("p1", 2) + pod("p3", 2, created="2026-01-01T00:00:09Z") + pod("p2", 2),
        [('Pod "team/p3"', f"metadata.annotations[{COUNT}]")],
        ONE + pod("p1", 2) + pod("p3", 2, phase="Failed") + pod("p2", 2),
    ),
    "lost-tolerations": (
        TRAINING.replace("FLAVOR", "{tolerations: [{key: pool, operator: Exists}]}"),
        [('TrainJob "team/t"', "spec.runtimeRef")],
        TRAINING.replace("FLAVOR", "{tolerations: [{key: spot, operator: Exists}]}"),
    ),
    "misplaced-pods": (
        HALL + MISPLACED + PLACED_EARLIER,
        [('Workload "team/w"', "spec.podSets[0].template.spec.nodeSelector")],
        HALL + node("n2", "{pool: p, rack: r1, disk: x}") + MISPLACED + PLACED_EARLIER,
    ),
    "counted-less": (
        ONE + PRIORITY + LIMIT_RANGE + JOB.replace("requests: {cpu: 1}", "limits: {cpu: 3}"),
        [('Job "team/j"', "spec.template.spec.containers[0].resources.limits[cpu]")],
        ONE + PRIORITY + LIMIT_RANGE + JOB.replace("requests: {cpu: 1}", "limits: {cpu: 3}, requests: {cpu: 1}"),
    ),
    "stale-priority": (
        ONE + PRIORITY + workload("w", "a", 1, priority=7).replace("priority: 7", f"priority: 7\n  {OF_CLASS}"),
        [('Workload "team/w"', "spec.priority")],
        ONE + PRIORITY + workload("w", "a", 1, priority=1).replace("priority: 1", f"priority: 1\n  {OF_CLASS}"),
    ),
    "unused-flavor": (
        ONE + flavor("spot"),
        [('ResourceFlavor "spot"', "metadata.name")],
        flavor("spot"),
    ),
    "missing-flavor": (
        ONE + cohort("all", quota="spot 4") + queue("b", flavor="gpu"),
        [('Cohort "all"', f"{QUOTA}.name"), ('ClusterQueue "b"', f"{QUOTA}.name")],
        ONE + cohort("all", quota="default 4"),
    ),
    "unmatched-node-labels": (
        flavor(spec=ON_NODES) + queue("a") + node("n", "{pool: q}"),
        [('ResourceFlavor "default"', "spec.nodeLabels")],
        flavor(spec=ON_NODES) + queue("a") + node("n", "{pool: q}") + node("m", RACK),
    ),
    "unmatched-node-taint": (
        flavor(spec=f"{{nodeLabels: {{pool: p}}, nodeTaints: {TAINT}}}") + node("n", RACK, OTHER_TAINT),
        [('ResourceFlavor "default"', "spec.nodeTaints[0]")],
        flavor(spec=f"{{nodeLabels: {{pool: p}}, nodeTaints: {TAINT}}}") + node("n", RACK, TAINT) + node("m", RACK),
    ),
    "untolerated-taint": (
        flavor(spec=ON_NODES) + node("n", RACK, TAINT) + node("m", RACK, TAINT),
        [('ResourceFlavor "default"', "spec")],
        flavor(spec="{nodeLabels: {pool: p}, tolerations: [{key: gpu, operator: Exists}]}") + node("n", RACK, TAINT),
    ),
    "loose-borrowing-limit": (
        pair("nominalQuota: 4, borrowingLimit: 6", "nominalQuota: 6"),
        [('ClusterQueue "a"', f"{CPU}.borrowingLimit")],
        pair("nominalQuota: 4, borrowingLimit: 6", "nominalQuota: 7"),
    ),
    "loose-lending-limit": (
        pair("nominalQuota: 4, lendingLimit: 4"),
        [('ClusterQueue "a"', f"{CPU}.lendingLimit")],
        pair("nominalQuota: 4, lendingLimit: 3"),
    ),
    "lent-to-nobody": (
        pair("nominalQuota: 4, lendingLimit: 2", "nominalQuota: 4, borrowingLimit: 0"),
        [('ClusterQueue "a"', f"{CPU}.lendingLimit")],
        pair("nominalQuota: 4, lendingLimit: 2", "nominalQuota: 4, borrowingLimit: 1"),
    ),
    "unshared-flavor": (
        pair() + flavor("gpu") + queue("c", flavor="gpu", cohort="all"),
        [('ClusterQueue "c"', f"{QUOTA}.name")],
        pair() + flavor("gpu") + queue("c", flavor="gpu", cohort="all") + queue("d", flavor="gpu", cohort="all"),
    ),
    "idle-cohort-quota": (
        pair() + flavor("gpu") + cohort("all", quota="gpu 4"),
        [('Cohort "all"', f"{CPU}.nominalQuota")],
        pair() + cohort("all", quota="default 4"),
    ),
    "no-capacity": (
        pair("nominalQuota: 0, borrowingLimit: 0"),
        [('ClusterQueue "a"', f"{CPU}.nominalQuota")],
        pair("nominalQuota: 0, borrowingLimit: 1"),
    ),
    "fractional-amount": (
        flavor() + queue("a", "nominalQuota: 64000m", resource="memory") + queue("b", "nominalQuota: 1500m"),
        [('ClusterQueue "a"', f"{CPU}.nominalQuota")],
        flavor() + queue("a", "nominalQuota: 64000Mi", resource="memory") + queue("b", "nominalQuota: 1500m"),
    ),
    "tiny-amount": (
        flavor() + queue("a", "nominalQuota: 64", resource="memory"),
        [('ClusterQueue "a"', f"{CPU}.nominalQuota")],
        flavor()
        + queue("a", "nominalQuota: 0", resource="memory")
        + queue("b", "nominalQuota: 1Mi", resource="memory"),
    ),
    "units-differ": (
        pair("nominalQuota: 64Gi", "nominalQuota: 64G", "memory"),
        [('ClusterQueue "b"', f"{CPU}.nominalQuota")],
        pair("nominalQuota: 4", "nominalQuota: 4000m"),
    ),
    "policy-without-cohort": (
        ONE + queue("b", spec="preemption: {reclaimWithinCohort: Any}\nfairSharing: {weight: 2}"),
        [
            ('ClusterQueue "b"', "spec.preemption.reclaimWithinCohort"),
            ('ClusterQueue "b"', "spec.fairSharing.weight"),
        ],
        ONE
        + queue("b", cohort="all", spec="preemption: {reclaimWithinCohort: Any}\nfairSharing: {weight: 2}")
        + queue("c", spec="preemption: {reclaimWithinCohort: Never, withinClusterQueue: LowerPriority}"),
    ),
    "lonely-member": (
        ONE + BOTH,
        [('ClusterQueue "b"', "spec.cohortName")],
        ONE + BOTH + cohort("all", quota="default 4"),
    ),
    "cohort-circle": (
        ONE + BOTH + cohort("all", "{parentName: top}") + cohort("top", "{parentName: all}"),
        [('Cohort "all"', "spec.parentName")],
        ONE + BOTH + cohort("all", "{parentName: top}") + cohort("top", "{parentName: root}"),
    ),
    "unused-cohort": (
        pair() + cohort("al"),
        [('Cohort "al"', "metadata.name")],
        pair() + cohort("all", "{parentName: top}") + cohort("top"),
    ),
    "weight-zero": (
        pair("nominalQuota: 0") + queue("c", "nominalQuota: 0", cohort="all", spec="fairSharing: {weight: 0}"),
        [('ClusterQueue "c"', "spec.fairSharing.weight")],
        pair() + queue("c", "nominalQuota: 1", cohort="all", spec="fairSharing: {weight: 0}"),
    ),
    "missing-cluster-queue": (
        ONE + local_queue("b"),
        [('LocalQueue "team/b"', "spec.clusterQueue")],
        ONE + local_queue("b", "a"),
    ),
    "unreachable-cluster-queue": (
        ONE + queue("b"),
        [('ClusterQueue "b"', "metadata.name")],
        ONE + queue("b", selector=""),
    ),
    "stopped-queue": (
        flavor() + queue("a", spec="stopPolicy: Hold") + local_queue("a", spec="stopPolicy: HoldAndDrain"),
        [('ClusterQueue "a"', "spec.stopPolicy"), ('LocalQueue "team/a"', "spec.stopPolicy")],
        flavor() + queue("a", spec="stopPolicy: None") + local_queue("a"),
    ),
    "selects-no-namespace": (
        flavor()
        + queue("a", selector="")
        + queue("b", selector="{matchLabels: {team: x}}")
        + local_queue("a")
        + namespace("team", "{team: 'y'}"),
        [('ClusterQueue "a"', "spec.namespaceSelector"), ('ClusterQueue "b"', "spec.namespaceSelector")],
        flavor()
        + queue("b", selector="{matchExpressions: [{key: team, operator: Exists}]}")
        + namespace("n", "{team: 'y'}"),
    ),
    "excluded-namespace": (
        flavor()
        + queue("a", selector="{matchExpressions: [{key: team, operator: In, values: [x]}]}")
        + local_queue("a")
        + namespace("team", "{team: 'y'}")
        + namespace("other", "{team: x}"),
        [('LocalQueue "team/a"', "metadata.namespace")],
        flavor()
        + queue("a", selector="{matchExpressions: [{key: team, operator: NotIn, values: [x]}]}")
        + local_queue("a")
        + namespace("team", "{team: 'y'}"),
    ),
    "namespace-not-given": (
        flavor() + queue("a", selector="{matchLabels: {tier: gold}}") + local_queue("a"),
        [('LocalQueue "team/a"', "metadata.namespace")],
        flavor() + queue("a", selector="{matchLabels: {kubernetes.io/metadata.name: team}}") + local_queue("a"),
    ),
    "missing-admission-check": (
        CHECKED,
        [('ClusterQueue "a"', "spec.admissionChecksStrategy.admissionChecks[0].name")],
        CHECKED + CHECK,
    ),
    "inactive-check": (
        CHECKED + CHECK,
        [('AdmissionCheck "budget"', "spec.controllerName")],
        CHECKED + CHECK + "status: {conditions: [{type: Active, status: 'True', reason: Active, message: ''}]}\n",
    ),
    "missing-local-queue": (
        ONE + workload("w", "b", 1),
        [('Workload "team/w"', "spec.queueName")],
        ONE + workload("w", "a", 1),
    ),
    "waiting-job": (
        ONE + JOB + PRIORITY.replace("name: high", "name: higher"),
        [('Job "team/j"', "metadata.labels[kueue.x-k8s.io/priority-class]")],
        ONE + JOB + PRIORITY,
    ),
    "missing-topology": (
        HALL.replace("name: hall}", "name: hal}"),
        [('ResourceFlavor "default"', "spec.topologyName")],
        HALL,
    ),
    "nodes-not-given": (
        IN_HALL + TOPOLOGY + queue("a"),
        [('ResourceFlavor "default"', "spec.nodeLabels")],
        HALL,
    ),
    "level-without-nodes": (
        HALL + node("n2", "{pool: p}"),
        [('Topology "hall"', "spec.levels[0].nodeLabel")],
        HALL + node("n2", "{pool: other}"),
    ),
    "unavailable-nodes": (
        HALL.replace("spec: {taints", "spec: {unschedulable: true, taints"),
        [('ResourceFlavor "default"', "spec.nodeLabels")],
        HALL.replace("spec: {taints", "spec: {unschedulable: true, taints") + node("n2", RACK),
    ),
    "unknown-level": (
        HALL + workload("w", "a", 1, request="{required: block}"),
        [('Workload "team/w"', "spec.podSets[0].topologyRequest.required")],
        HALL + workload("w", "a", 1, request="{required: rack}"),
    ),
    "domain-too-small": (
        HALL.replace("nominalQuota: 4", "nominalQuota: 40") + workload("w", "a", 5, request="{required: rack}"),
        [('Workload "team/w"', "spec.podSets[0].topologyRequest.required")],
        HALL.replace("nominalQuota: 4", "nominalQuota: 40")
        + workload("v", "a", 2, request="{required: rack}")
        + workload("w", "a", 4, request="{required: rack}"),
    ),
    "blocked-strict-fifo": (
        flavor()
        + queue("a", spec="queueingStrategy: StrictFIFO")
        + local_queue("a")
        + workload("w", "a", 5)
        + workload("next", "a", 1),
        [('Workload "team/w"', "")],
        flavor()
        + queue("a", spec="queueingStrategy: StrictFIFO")
        + local_queue("a")
        + workload("v", "a", 4)
        + workload("w", "a", 4),
    ),
    "never-fits": (
        ONE + workload("w", "a", 5),
        [('Workload "team/w"', "")],
        ONE + workload("v", "a", 4) + workload("w", "a", 4),
    ),
}
# Those that take several workloads, or a Configuration, have tests of their own: test_work.py, test_settings.py.
OF_WORK = {"preemption-loop", "starvation"}
OF_SETTINGS = {
    "dead-multiplier",
    "dead-transformation",
    "endless-retries",
    "excluded-quota",
    "idle-weight",
    "local-queue-weight-zero",
}


def found(text: str, rule: str, *, release: str = "") -> list[tuple[str, str]]:
    """Objects and fields of what a rule finds."""
    configuration = Configuration(release=release) if release else None
    findings = check(parse_manifests(text), configuration=configuration, select=[rule])
    return [(str(finding.object), finding.problem.field) for finding in findings]


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_finds_what_it_is_for(rule: str) -> None:
    text, expected, _ = CASES[rule]
    assert found(text, rule) == expected


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_ignores_what_only_looks_like_its_case(rule: str) -> None:
    _, _, near_miss = CASES[rule]
    assert found(near_miss, rule) == []


@pytest.mark.parametrize("rule", CASES)
def test_a_finding_has_a_line_of_its_object_and_a_remedy(rule: str) -> None:
    text, _, _ = CASES[rule]
    lines = text.splitlines()
    for finding in check(parse_manifests(text), select=[rule]):
        assert finding.problem.line is not None
        assert finding.problem.remedy or rule in ("unknown-field", "repeated-object")
        (key,) = re.findall(r"([\w/]+)\W*(?:\[\d+\])?$", finding.problem.field) or [""]
        is_absent = finding.problem.message.startswith("Required value")
        assert key in lines[finding.problem.line - 1] or is_absent


def test_every_rule_has_a_case() -> None:
    assert {rule.name for rule in RULES} == CASES.keys() | OF_WORK | OF_SETTINGS


def test_codes_and_names_are_unique() -> None:
    assert len({rule.code for rule in RULES}) == len({rule.name for rule in RULES}) == len(RULES)
