"""The cluster of Python tests: load objects, submit jobs, let time pass, and assert what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from kueuecore._fields import seconds_of
from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest, ManifestLike, as_manifest, parse_manifests, read_manifests
from kueuecore.policy_tests.checks import Admitted, Check, Finished, Flavors, Pending, Preempted, Waits
from kueuecore.policy_tests.expectations import Amounts, QueueExpectation, WorkloadExpectation
from kueuecore.policy_tests.policy_cluster import PolicyCluster
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.scenarios.work import Arrival
from kueuecore.simulation import JobPlan, NodeLoss
from kueuecore.states import WorkloadState
from kueuecore.times import TimeLike
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["Kueue", "Objects"]

Objects: TypeAlias = str | PathLike[str] | ManifestLike
"""A file or directory, YAML (a string with several lines, or that starts with a brace), or an object."""
Duration: TypeAlias = float | str
"""Seconds, or a duration such as `1m30s`."""


class Kueue:
    """A cluster to ask questions. Each answer is a `Verdict`: true, or with the actual state and the reason for it.

    Args:
        folder: The directory that file names are relative to.

    Example:
        >>> kueue = Kueue("examples")
        >>> kueue.load("two-teams/queues.yaml")
        >>> kueue.submit("policy-tests/job.yaml", name="test", count=4, runs="10m")
        ('team-b/job-test-1-af302', 'team-b/job-test-2-2c4f0', 'team-b/job-test-3-afc65', 'team-b/job-test-4-32068')
        >>> kueue.settle(until="5m")
        >>> assert kueue.admitted("team-b/test-1", cluster_queue="team-b")
        >>> kueue.admitted("team-b/test-4")
        <team-b/test-4: expected is admitted; got pending in team-b (couldn't assign flavors to pod set main: \
insufficient unused quota for cpu in flavor default-flavor, 300m more needed)>
        >>> kueue.settle()
        >>> assert kueue.waits("team-b/test-4", below="11m")
    """

    def __init__(self, folder: str | PathLike[str] = ".") -> None:
        self._folder = Path(folder)
        self._objects: list[Manifest] = []
        self._configuration: Configuration | None = None
        self._now: TimeLike | None = None
        self._cluster: PolicyCluster | None = None
        self.last_answer: Verdict | None = None
        """The answer to the last question; None before the first."""

    @property
    def cluster(self) -> PolicyCluster:
        """The cluster; created on first use, from everything loaded so far."""
        if self._cluster is None:
            self._cluster = PolicyCluster(self._objects, configuration=self._configuration, now=self._now)
        return self._cluster

    # Input.

    def load(
        self,
        *objects: Objects,
        configuration: str | PathLike[str] | Configuration | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        now: TimeLike | None = None,
    ) -> None:
        """Load objects that exist from the start. They are validated on the first submit, settle or question.

        Args:
            objects: Files, directories, YAML or objects.
            configuration: Kueue's Configuration, or a file with it.
            feature_gates: Kueue's feature gates; not together with a `Configuration` object.
            now: The start time; by default the newest time in the objects.

        Raises:
            ManifestError: Something cannot be read.
            RuntimeError: The cluster exists already.
        """
        if self._cluster is not None:
            raise RuntimeError(
                "the cluster exists already: load everything before the first submit, settle or question"
            )
        self._objects += (manifest for given in objects for manifest in self._read(given))
        if isinstance(configuration, Configuration):
            if feature_gates is not None:
                raise ValueError("feature_gates: the Configuration has its own; pass them when you create it")
            self._configuration = configuration
        elif configuration is not None:
            self._configuration = Configuration.read(self._folder / configuration, feature_gates=feature_gates)
        elif feature_gates is not None:
            text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
            self._configuration = Configuration.parse(text, feature_gates=feature_gates)
        self._now = self._now if now is None else now

    def submit(
        self,
        job: Objects,
        *,
        name: str = "",
        namespace: str = "",
        count: int = 1,
        at: Duration | None = None,
        every: Duration = 0.0,
        runs: Duration | None = None,
    ) -> tuple[str, ...]:
        """Submit jobs or Workloads.

        Args:
            job: One job or Workload, or a file with it.
            name: Its name; by default the one in the object. With `count`, each gets a number: `train-1`.
            namespace: Its namespace; by default the one in the object.
            count: How many.
            at: When the first arrives, counted from the start; by default now.
            every: The time between two of them.
            runs: How long each runs once it is admitted; None for forever.

        Returns:
            `namespace/name` of their Workloads, in order.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        found = self._read(job)
        if len(found) != 1:
            raise ManifestError.of(f"{len(found)} objects", remedy="submit one job at a time", file=str(job))
        begin = (self.cluster.now - self.cluster.start) / 1e9 if at is None else _seconds("at", at)
        plan = JobPlan(run_seconds=None if runs is None else _seconds("runs", runs), node_loss=NodeLoss.STARTS_OVER)
        arrivals = []
        for index in range(count):
            named = _named(found[0], name, namespace, "" if count == 1 else f"-{index + 1}")
            arrivals.append(Arrival(job=named, at=begin + index * _seconds("every", every), plan=plan))
        return self.cluster.submit(arrivals)

    def settle(self, until: Duration | None = None) -> None:
        """Let time pass until nothing is left to happen, or until a time counted from the start.

        Raises:
            UnsettledError: Workloads preempt each other forever.
        """
        self.cluster.settle(None if until is None else _seconds("until", until))

    # Questions. A name is that of a Workload or of its job; `*` and `?` are wildcards.

    def admitted(
        self,
        name: str,
        *,
        cluster_queue: str = "",
        flavors: Flavors | None = None,
        nodes: Sequence[str] | None = None,
        domains: Mapping[str, int | Sequence[str]] | None = None,
        count: int | None = None,
    ) -> Verdict:
        """Check that a workload is admitted, or was until its job ended.

        Args:
            name: The workload or workloads.
            cluster_queue: The ClusterQueue whose quota it holds; empty for any.
            flavors: Flavors by resource, or by pod set and resource.
            nodes: All nodes that its pods are on.
            domains: By node label, all domains that its pods are in, or their number.
            count: How many of the workloads that match the name it must hold for; None for all.

        Raises:
            UnknownObjectError: No workload matches the name.
        """
        check = Admitted(
            cluster_queue=cluster_queue,
            flavors=flavors or {},
            nodes=None if nodes is None else tuple(nodes),
            domains={
                level: domain if isinstance(domain, int) else tuple(domain) for level, domain in (domains or {}).items()
            },
        )
        return self._asked(name, check, count)

    def pending(self, name: str, *, message: str = "", reason: str = "", count: int | None = None) -> Verdict:
        """Check that a workload is waiting for quota, with this text in Kueue's message, and this reason."""
        return self._asked(name, Pending(message=message, reason=reason), count)

    def finished(self, name: str, *, count: int | None = None) -> Verdict:
        """Check that its job has ended."""
        return self._asked(name, Finished(), count)

    def preempted(self, name: str, *, by: str = "", reason: str = "", count: int | None = None) -> Verdict:
        """Check that a workload was preempted at some time, by this workload and for this reason."""
        return self._asked(name, Preempted(by=by, reason=reason), count)

    def never_preempted(self, name: str) -> Verdict:
        """Check that a workload was never preempted."""
        return self._asked(name, Preempted(is_expected=False), None)

    def waits(self, name: str, *, below: Duration | None = None, at_least: Duration | None = None) -> Verdict:
        """Check that a workload waits for its first admission for less than `below`, or for `at_least` this long."""
        if below is None and at_least is None:
            raise ValueError("waits: give below or at_least")
        check = Waits(
            below_seconds=None if below is None else _seconds("below", below),
            at_least_seconds=None if at_least is None else _seconds("at_least", at_least),
        )
        return self._asked(name, check, None)

    def uses(self, cluster_queue: str, usage: Amounts) -> Verdict:
        """Check the usage of a ClusterQueue, by flavor and resource.

        Raises:
            UnknownObjectError: There is no such ClusterQueue.
        """
        amounts = {
            flavor: {name: str(assignment) for name, assignment in given.items()} for flavor, given in usage.items()
        }
        expectation = QueueExpectation(kind="ClusterQueue", name=cluster_queue, usage=amounts)
        return self._answered(list(expectation.verdicts(self.cluster)), cluster_queue)

    def states(self, name: str) -> tuple[WorkloadState, ...]:
        """Return the states of the workloads that match a name, with their statuses."""
        return self.cluster.states(name)

    def _asked(self, name: str, check: Check, count: int | None) -> Verdict:
        expectation = WorkloadExpectation(name=name, checks=(check,), count=count)
        return self._answered(list(expectation.verdicts(self.cluster)), name)

    def _answered(self, verdicts: Sequence[Verdict], subject: str) -> Verdict:
        """The first verdict that is not met, or one for all."""
        unmet = next((verdict for verdict in verdicts if not verdict), None)
        met = verdicts[0] if len(verdicts) == 1 else Verdict(True, subject, "", f"true of all {len(verdicts)}")
        self.last_answer = met if unmet is None else unmet
        return self.last_answer

    def _read(self, given: Objects) -> tuple[Manifest, ...]:
        if isinstance(given, str) and ("\n" in given or given.lstrip().startswith("{")):
            return parse_manifests(given)
        if isinstance(given, str | PathLike):
            return read_manifests(self._folder / given)
        return (as_manifest(given),)


def _named(job: Manifest, name: str, namespace: str, suffix: str) -> Manifest:
    metadata: JsonObject = dict(object_at(job.object, "metadata"))
    metadata["name"] = (name or text_at(metadata, "name")) + suffix
    metadata["namespace"] = namespace or text_at(metadata, "namespace") or DEFAULT_NAMESPACE
    return replace(job, object={**job.object, "metadata": metadata})


def _seconds(name: str, given: Duration) -> float:
    found = seconds_of(given)
    if found is None:
        raise ValueError(f"{name}: {given!r} is not a duration; give seconds, or a string such as 1m30s")
    return found
