"""The checks that a test can make on one workload."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Protocol, TypeAlias

from kueuecore._spans import span
from kueuecore.decisions import Preemption
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.policy_tests.reasons import what_held, what_spared
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.states import Stage, WorkloadState

__all__ = ["Admitted", "Check", "Finished", "Flavors", "Pending", "Preempted", "Waits"]

Flavors: TypeAlias = Mapping[str, str | Mapping[str, str]]
"""Flavors by resource, for every pod set; or by pod set and resource."""


class Check(Protocol):
    """An expectation about one workload."""

    def verdict(self, cluster: PolicyCluster, key: str) -> Verdict:
        """Return the verdict on a workload.

        Args:
            cluster: The cluster as it is now.
            key: `namespace/name` of the Workload.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """It is admitted, or was until its job ended.

    Args:
        is_expected: False to expect the opposite.
        cluster_queue: The ClusterQueue whose quota it holds; empty for any.
        flavors: Its flavors; resources that are not listed may have any.
        nodes: All nodes that its pods are on; None for any.
        domains: By node label of a level, all domains that its pods are in, or their number.
    """

    is_expected: bool = True
    cluster_queue: str = ""
    flavors: Flavors = field(default_factory=dict)
    nodes: tuple[str, ...] | None = None
    domains: Mapping[str, int | tuple[str, ...]] = field(default_factory=dict)

    def verdict(self, cluster: PolicyCluster, key: str) -> Verdict:
        """Return the verdict on a workload."""
        state = cluster.state(key)
        is_admitted = state is not None and _is_admitted(state)
        if not self.is_expected or not is_admitted or state is None:
            got, why = standing(cluster, key)
            return Verdict(is_admitted == self.is_expected, cluster.name_of(key), self._expected, got, why)
        has = {self.cluster_queue or state.cluster_queue} == {state.cluster_queue}
        has = has and all(_has_flavor(state, name, flavor) for name, flavor in self.flavors.items())
        got = standing(cluster, key)[0]
        if self.nodes is not None:
            nodes = _domains(cluster, key, "kubernetes.io/hostname")
            has, got = has and nodes == set(self.nodes), f"{got}, on {_listed(nodes)}"
        for level, wanted in self.domains.items():
            domains = _domains(cluster, key, level)
            has = has and (len(domains) == wanted if isinstance(wanted, int) else domains == set(wanted))
            got += f", in {level} {_listed(domains)}"
        return Verdict(has, cluster.name_of(key), self._expected, got)

    @property
    def _expected(self) -> str:
        parts = ["is admitted" if self.is_expected else "is not admitted"]
        parts += [f"in {self.cluster_queue}"] if self.cluster_queue else []
        parts += [f"with {_written(self.flavors)}"] if self.flavors else []
        parts += [f"on {_listed(self.nodes)}"] if self.nodes is not None else []
        for level, wanted in self.domains.items():
            parts.append(f"in {wanted} of {level}" if isinstance(wanted, int) else f"in {level} {_listed(wanted)}")
        return ", ".join([" ".join(parts[:2]), *parts[2:]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """It is waiting for quota.

    Args:
        message: A text that Kueue's message contains, ignoring case.
        reason: The reason of its condition QuotaReserved, such as `WaitingForQuota`; empty for any.
    """

    message: str = ""
    reason: str = ""

    def verdict(self, cluster: PolicyCluster, key: str) -> Verdict:
        """Return the verdict on a workload."""
        state = cluster.state(key)
        got, why = standing(cluster, key)
        is_so = (
            state is not None
            and state.stage is Stage.PENDING
            and self.message.casefold() in state.message.casefold()
            and self.reason in ("", state.reason)
        )
        parts = [f"the reason {self.reason}"] if self.reason else []
        parts += [f'"{self.message}" in its message'] if self.message else []
        if self.reason and state is not None and state.stage is Stage.PENDING:
            got += f", with the reason {state.reason or 'none'}"
        expected = f"is pending, with {' and '.join(parts)}" if parts else "is pending"
        return Verdict(is_so, cluster.name_of(key), expected, got, why)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """Its job has ended.

    Args:
        is_expected: False to expect the opposite.
    """

    is_expected: bool = True

    def verdict(self, cluster: PolicyCluster, key: str) -> Verdict:
        """Return the verdict on a workload."""
        state = cluster.state(key)
        is_finished = state is not None and state.stage is Stage.FINISHED
        expected = "is finished" if self.is_expected else "is not finished"
        return Verdict(is_finished == self.is_expected, cluster.name_of(key), expected, *standing(cluster, key))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preempted:
    """It was preempted at some time.

    Args:
        is_expected: False to expect that it never was.
        by: The preemptor, by a name that `PolicyCluster.keys` takes; empty for any.
        reason: Kueue's reason, such as `InClusterQueue` or `InCohortReclamation`; empty for any.
    """

    is_expected: bool = True
    by: str = ""
    reason: str = ""

    def verdict(self, cluster: PolicyCluster, key: str) -> Verdict:
        """Return the verdict on a workload.

        Raises:
            UnknownObjectError: No workload matches `by`.
        """
        preemptors = cluster.keys(self.by) if self.by else ()
        of_it = [preemption for preemption in cluster.preemptions() if preemption.key == key]
        found = [preemption for preemption in of_it if self._is_meant(preemption, preemptors)]
        who = f"by {self.by}" if self.by else ""
        parts = filter(None, ["is preempted" if self.is_expected else "is never preempted", who, self.reason])
        if not of_it:
            got, why = standing(cluster, key)
            why = what_spared(cluster, key, preemptors) or why if self.is_expected else why
            return Verdict(not self.is_expected, cluster.name_of(key), " ".join(parts), f"never preempted: {got}", why)
        got = "; ".join(
            f"preempted by {cluster.name_of(preemption.preemptor)} ({preemption.reason})" for preemption in of_it
        )
        return Verdict(bool(found) == self.is_expected, cluster.name_of(key), " ".join(parts), got, of_it[-1].message)

    def _is_meant(self, preemption: Preemption, preemptors: Iterable[str]) -> bool:
        is_by = not self.by or preemption.preemptor in preemptors
        return is_by and self.reason in ("", preemption.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """How long it waits for its first admission.

    Args:
        below_seconds: It is admitted in less than this time; None for no such limit.
        at_least_seconds: It waits for at least this long; None for no such limit.
    """

    below_seconds: float | None = None
    at_least_seconds: float | None = None

    def verdict(self, cluster: PolicyCluster, key: str) -> Verdict:
        """Return the verdict on a workload."""
        waited_ns, is_admitted = cluster.wait_ns(key)
        is_so = self.below_seconds is None or (is_admitted and waited_ns < self.below_seconds * 1e9)
        is_so = is_so and (self.at_least_seconds is None or waited_ns >= self.at_least_seconds * 1e9)
        parts = [f"below {span(round(self.below_seconds * 1e9))}"] if self.below_seconds is not None else []
        if self.at_least_seconds is not None:
            parts.append(f"at least {span(round(self.at_least_seconds * 1e9))}")
        expected = f"waits {' and '.join(parts)}"
        if is_admitted:
            why = "" if is_so else what_held(cluster, key)
            return Verdict(is_so, cluster.name_of(key), expected, f"admitted after {span(waited_ns)}", why)
        got, why = standing(cluster, key)
        return Verdict(is_so, cluster.name_of(key), expected, f"{got} after {span(waited_ns)}", why)


def standing(cluster: PolicyCluster, key: str) -> tuple[str, str]:
    """Describe the state of a workload in words, with Kueue's message if it is pending."""
    state = cluster.state(key)
    if state is None:
        return "deleted" if cluster.is_deleted(key) else "not submitted yet", ""
    home = f" in {state.cluster_queue}" if state.cluster_queue else ""
    if state.stage is Stage.PENDING:
        return f"pending{home}", cluster.message(state)
    word = {Stage.ADMITTED: "admitted", Stage.FINISHED: "finished"}.get(state.stage, "waiting for admission checks")
    flavors = _written(_flat(state))
    return f"{word}{home}{f' with {flavors}' if flavors else ''}", ""


def _is_admitted(state: WorkloadState) -> bool:
    return state.stage is Stage.ADMITTED or (state.stage is Stage.FINISHED and "admission" in state.status)


def _has_flavor(state: WorkloadState, name: str, wanted: str | Mapping[str, str]) -> bool:
    """Whether every pod set that uses a resource has this flavor, or a pod set has these flavors."""
    if isinstance(wanted, str):
        given = [flavor[name] for flavor in state.flavors.values() if name in flavor]
        return bool(given) and all(fnmatchcase(flavor, wanted) for flavor in given)
    has = state.flavors.get(name, {})
    return all(fnmatchcase(has.get(resource, ""), flavor) for resource, flavor in wanted.items())


def _flat(state: WorkloadState) -> Flavors:
    """Its flavors by resource if all pod sets have the same, else by pod set."""
    if len({tuple(flavor.items()) for flavor in state.flavors.values()}) <= 1:
        return next(iter(state.flavors.values()), {})
    return state.flavors


def _written(flavors: Flavors) -> str:
    parts = []
    for name, other in flavors.items():
        if isinstance(other, str):
            parts.append(f"{name}: {other}")
        else:
            parts += [f"{name}/{resource}: {flavor}" for resource, flavor in other.items()]
    return ", ".join(parts)


def _domains(cluster: PolicyCluster, key: str, level: str) -> set[str]:
    """The domains of a level that its pods are in."""
    found = set()
    for placement in cluster.placements(key):
        if level in placement.levels:
            found |= {values[-1] for values in placement.by_level(level)}
        elif level == "kubernetes.io/hostname":
            found |= {domain.values[-1] for domain in placement.domains if not placement.levels}
    return found


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"
