"""Decides about the objects of a dump, as `kueuecore run` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from kueuecore._json import text_at
from kueuecore.configuration import Configuration
from kueuecore.decisions import Preemption
from kueuecore.engine import Engine
from kueuecore.errors import Problem
from kueuecore.manifests import Manifest
from kueuecore.states import WorkloadState
from kueuecore.steady_state import Settled, settle
from kueuecore.times import END_NS
from kueuecore.world import World

__all__ = ["Decided", "Deciding"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Deciding:
    """How to decide about the objects of a dump: the options of `kueuecore run`.

    Args:
        configuration: Kueue's Configuration.
        now: The current time, in nanoseconds since 1970.
        span_ns: Nanoseconds that may pass, with cycles at each time at which something changes by itself.
        trusted: Take the objects as they are, without validation.
        max_cycles: Give up after this many cycles.

    Example:
        >>> from kueuecore import read_manifests
        >>> decided = Deciding(now=0).of(read_manifests("examples/two-teams"))
        >>> [it.key for it in decided.workloads.values() if it.stage == "Admitted"][0]
        'team-a/job-nightly-build-1ec3e'
    """

    configuration: Configuration | None = None
    now: int
    span_ns: int = 0
    trusted: bool = False
    max_cycles: int = 100_000

    def of(self, manifests: Iterable[Manifest]) -> Decided:
        """Decide about some objects.

        Raises:
            ManifestError: Everything that is wrong with the objects.
        """
        world = World.of(manifests, configuration=self.configuration, trusted=self.trusted)
        engine = Engine(self.configuration)
        applied = world.apply_to(engine, now=self.now)
        until = min(self.now + self.span_ns, END_NS)
        settled = settle(engine, now=self.now, until=until, max_cycles=self.max_cycles)
        return Decided(engine, world, settled, applied.warnings)


@dataclass(frozen=True)
class Decided:
    """The decisions about a dump.

    Args:
        engine: The engine afterwards.
        world: The objects.
        settled: The cycles that ran, and how they ended.
        warnings: Unknown fields, and keys that are given twice.
    """

    engine: Engine
    world: World
    settled: Settled
    warnings: tuple[Problem, ...] = ()

    @cached_property
    def workloads(self) -> dict[str, WorkloadState]:
        """The states of the workloads, by `namespace/name`."""
        return {workload.key: workload for workload in self.engine.workloads()}

    @property
    def preemptions(self) -> tuple[Preemption, ...]:
        """All preemptions, in order."""
        return tuple(preemption for decision in self.settled.decisions for preemption in decision.preemptions)

    def keys(self, name: str) -> tuple[str, ...]:
        """The Workload called `namespace/name`, or else the Workloads of the job with that name."""
        if name in self.workloads:
            return (name,)
        named = {key: text_at(job.object, "metadata", "name") for key, job in self.world.jobs.items()}
        return tuple("/".join(key) for key, job in named.items() if name == f"{key[0]}/{job}")
