"""A cluster that tests in Python ask: load objects, submit jobs, let time go by, and assert what became of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
from kueuecore.policy_tests.policy_cluster import Coming, PolicyCluster
from kueuecore.policy_tests.verdict import Verdict
from kueuecore.states import WorkloadState
from kueuecore.times import TimeLike
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["Kueue", "Objects"]

Objects: TypeAlias = str | PathLike[str] | ManifestLike
"""A file or a directory, YAML (a text of several lines, or that begins with a brace), or an object."""
Duration: TypeAlias = float | str
"""Seconds, or a duration such as `1m30s`."""


class Kueue:
    """A cluster to ask. Every question gives a `Verdict`, which is true or says what there is instead, and why.

    Args:
        folder: Where files are looked for.

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
        """What the last question gave; None: nothing was asked."""

    @property
    def cluster(self) -> PolicyCluster:
        """The cluster, which begins with what was loaded before it is first asked for."""
        if self._cluster is None:
            self._cluster = PolicyCluster(self._objects, configuration=self._configuration, now=self._now)
        return self._cluster

    # What goes in.

    def load(
        self,
        *objects: Objects,
        configuration: str | PathLike[str] | Configuration | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        now: TimeLike | None = None,
    ) -> None:
        """Objects are there from the beginning; they are checked with the first job that comes.

        Args:
            objects: Files, directories, YAML or objects.
            configuration: Kueue's Configuration, or the file that it is in.
            feature_gates: Feature gates of Kueue; not together with a Configuration that is given as such.
            now: The time of the beginning; by default the newest in the objects.

        Raises:
            ManifestError: What cannot be read.
            RuntimeError: The cluster has begun.
        """
        if self._cluster is not None:
            raise RuntimeError("the cluster has begun: load everything before the first submit, settle or question")
        self._objects += (it for given in objects for it in self._read(given))
        if isinstance(configuration, Configuration):
            if feature_gates is not None:
                raise ValueError("feature_gates: the Configuration has its own; make it with them")
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
        """Jobs or Workloads come.

        Args:
            job: One job or Workload, or the file that it is in.
            name: What it is called; by default as it says. Of several, each gets its number after it: `train-1`.
            namespace: Its namespace; by default as it says.
            count: How many.
            at: When the first comes, from the beginning; by default now.
            every: How long after one comes the next.
            runs: How long each runs once it is admitted; None: for ever.

        Returns:
            `namespace/name` of their Workloads, in order.

        Raises:
            ManifestError: Everything that is wrong with them.
        """
        found = self._read(job)
        if len(found) != 1:
            raise ManifestError.of(f"{len(found)} objects", remedy="submit one job at a time", file=str(job))
        begin = (self.cluster.now - self.cluster.start) / 1e9 if at is None else _seconds("at", at)
        run_seconds = None if runs is None else _seconds("runs", runs)
        coming = []
        for index in range(count):
            named = _named(found[0], name, namespace, "" if count == 1 else f"-{index + 1}")
            coming.append(Coming(job=named, at=begin + index * _seconds("every", every), run_seconds=run_seconds))
        return self.cluster.submit(coming)

    def settle(self, until: Duration | None = None) -> None:
        """Let time go by until nothing is left to happen, or until a time from the beginning.

        Raises:
            UnsettledError: Workloads preempt each other for ever.
        """
        self.cluster.settle(None if until is None else _seconds("until", until))

    # What may be asked. A name is that of a Workload or of its job; `*` and `?` stand for any characters.

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
        """Is it admitted, or was until its job ended?

        Args:
            name: Who.
            cluster_queue: Whose quota it has; empty: any.
            flavors: Resource to flavor, or pod set to resource to flavor.
            nodes: The nodes that its pods are on, all of them.
            domains: By node label, the domains that its pods are in, all of them, or how many there are.
            count: Of how many of those that the name stands for it is to hold; None: of all.

        Raises:
            UnknownObjectError: Nobody is called so.
        """
        check = Admitted(
            cluster_queue=cluster_queue,
            flavors=flavors or {},
            nodes=None if nodes is None else tuple(nodes),
            domains={level: it if isinstance(it, int) else tuple(it) for level, it in (domains or {}).items()},
        )
        return self._asked(name, check, count)

    def pending(self, name: str, *, message: str = "", reason: str = "", count: int | None = None) -> Verdict:
        """Does it wait for quota? With this in Kueue's message, and this reason, if they are given."""
        return self._asked(name, Pending(message=message, reason=reason), count)

    def finished(self, name: str, *, count: int | None = None) -> Verdict:
        """Has its job ended?"""
        return self._asked(name, Finished(), count)

    def preempted(self, name: str, *, by: str = "", reason: str = "", count: int | None = None) -> Verdict:
        """Was it preempted at some time? By somebody, and for this reason, if they are given."""
        return self._asked(name, Preempted(by=by, reason=reason), count)

    def never_preempted(self, name: str) -> Verdict:
        """Was it never preempted?"""
        return self._asked(name, Preempted(is_expected=False), None)

    def waits(self, name: str, *, below: Duration | None = None, at_least: Duration | None = None) -> Verdict:
        """Does it wait for its first admission for less than this, or for so long at least?"""
        if below is None and at_least is None:
            raise ValueError("waits: give below or at_least")
        check = Waits(
            below_seconds=None if below is None else _seconds("below", below),
            at_least_seconds=None if at_least is None else _seconds("at_least", at_least),
        )
        return self._asked(name, check, None)

    def uses(self, cluster_queue: str, usage: Amounts) -> Verdict:
        """Does a ClusterQueue use so much, by flavor and resource?

        Raises:
            UnknownObjectError: There is no such ClusterQueue.
        """
        amounts = {flavor: {name: str(it) for name, it in given.items()} for flavor, given in usage.items()}
        expectation = QueueExpectation(kind="ClusterQueue", name=cluster_queue, usage=amounts)
        return self._answered(list(expectation.verdicts(self.cluster)), cluster_queue)

    def states(self, name: str) -> tuple[WorkloadState, ...]:
        """Where the workloads stand that a name stands for, with their statuses."""
        return self.cluster.states(name)

    def _asked(self, name: str, check: Check, count: int | None) -> Verdict:
        expectation = WorkloadExpectation(name=name, checks=(check,), count=count)
        return self._answered(list(expectation.verdicts(self.cluster)), name)

    def _answered(self, verdicts: Sequence[Verdict], subject: str) -> Verdict:
        """The first that is not met, or one for all."""
        unmet = next((it for it in verdicts if not it), None)
        met = verdicts[0] if len(verdicts) == 1 else Verdict(True, subject, "", f"so it is of all {len(verdicts)}")
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
    return Manifest({**job.object, "metadata": metadata}, job.source)


def _seconds(name: str, given: Duration) -> float:
    found = seconds_of(given)
    if found is None:
        raise ValueError(f"{name}: {given!r} is no duration; write seconds, or a text such as 1m30s")
    return found
