"""The decisions of a policy test as plain data that can be compared: what coverage means by the course of a test.

A *decision* is who gets quota when and where, with which flavors and counts and in which topology domains; who is
preempted or evicted, when, for which reason and by whom; for which kind of reason somebody waits, as the reason of the
condition and not the numbers in its message; and, at each time that the test has expectations for, the stages of all
workloads, the admission checks that they have passed, and which expectations are met.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import TypeAlias

from kueuecore._json import list_at, object_at
from kueuecore.decisions import WorkloadAdmission
from kueuecore.errors import KueuecoreError, ManifestError, UnknownObjectError, UnsettledError
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.policy_tests.policy_test import PolicyTest, looks
from kueuecore.states import WorkloadState

__all__ = ["Course", "course", "differs"]

Course: TypeAlias = tuple[object, ...]
"""What was decided until each of the times that a test looks at, in order; two are equal if the same was decided."""


def course(test: PolicyTest, cluster: PolicyCluster) -> Iterator[object]:
    """Play a test in its cluster, and yield what was decided.

    Args:
        test: The test.
        cluster: Its cluster, as `started` returns it.
    """
    try:
        for at in looks(test, cluster):
            yield _decided(cluster)
            yield tuple(map(_stage, cluster.all_states()))
            # Asking is the dearest of it, so it comes last.
            yield tuple(_verdicts(test, cluster, at))
    except UnsettledError:
        yield _decided(cluster)
        yield "never settles"
    except ManifestError:
        raise
    except KueuecoreError as error:
        yield type(error).__name__


def differs(one: Iterable[object], other: Iterable[object]) -> bool:
    """Return whether something else was decided in one course than in the other; stops at the first difference."""
    return any(ours != theirs for ours, theirs in zip_longest(one, other))


def _decided(cluster: PolicyCluster) -> object:
    """What was decided so far: by workload, in order of time."""
    run, start = cluster.run(), cluster.start
    decided: dict[str, list[tuple[object, ...]]] = {}

    def note(key: str, *entry: object) -> None:
        decided.setdefault(key, []).append(entry)

    for cycle in run.cycles:
        decision, at = cycle.decision, cycle.time - start
        for admission in (*decision.admissions, *decision.placed):
            note(admission.key, "quota", admission.time - start, *_assigned(admission))
        for preemption in decision.preemptions:
            note(preemption.key, "preempted", at, preemption.preemptor, preemption.reason)
        for replaced in decision.replaced_slices:
            note(replaced.key, "replaced", at, replaced.successor)
        for head in decision.pending:
            # It does not matter how often it was tried.
            if (waits := ("waits", head.cluster_queue, head.reason)) not in decided.get(head.key, [])[-1:]:
                note(head.key, *waits)
    steps = dict[str, list[tuple[int, str]]]()
    for step in run.steps:
        steps.setdefault(step.key, []).append((step.time - start, step.kind))
    evictions = dict[str, list[tuple[int, str]]]()
    for time, event in run.events:
        if event.reason.startswith("Evicted"):
            evictions.setdefault(event.key, []).append((time - start, event.reason))
    return decided, steps, evictions


def _assigned(admission: WorkloadAdmission) -> tuple[object, ...]:
    pod_sets = tuple(
        (pod_set.name, pod_set.count, dict(pod_set.flavors), json.dumps(pod_set.topology_assignment, sort_keys=True))
        for pod_set in admission.pod_sets
    )
    return admission.cluster_queue, pod_sets, admission.is_admitted


def _stage(state: WorkloadState) -> tuple[object, ...]:
    status = dict(state.status)
    # Checks that it has not come to yet are only listed.
    checks = list_at(status, "admissionChecks") if "admission" in status else []
    names = tuple((object_at(check).get("name"), object_at(check).get("state")) for check in checks)
    return state.key, state.stage, state.cluster_queue, state.reason, state.is_active, state.flavors, names


def _verdicts(test: PolicyTest, cluster: PolicyCluster, at: float | None) -> Iterator[object]:
    for expectation in test.expect:
        if expectation.at == at:
            try:
                yield tuple(map(bool, expectation.verdicts(cluster)))
            except UnknownObjectError as error:
                yield str(error.object)
