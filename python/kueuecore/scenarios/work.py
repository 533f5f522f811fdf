"""The work of a scenario: jobs that come one after the other and run for a while, drawn from a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from random import Random

from kueuecore._json import JsonObject, object_at, text_at
from kueuecore.errors import ManifestError
from kueuecore.manifests import Manifest
from kueuecore.simulation import NodeLoss
from kueuecore.world import DEFAULT_NAMESPACE

__all__ = ["Arrival", "Span", "Work", "arrivals_of"]


@dataclass(frozen=True, slots=True)
class Span:
    """A span of time that may be another for each job, in seconds.

    Args:
        least: The shortest, or the only one.
        most: The longest; all between are as likely. None: always the shortest.
        mean: Of exponential spans, the mean; then the other two do not count.

    Example:
        >>> Span(5).draw(Random(1)), round(Span(5, 6).draw(Random(1)), 3), round(Span(mean=60).draw(Random(1)), 3)
        (5, 5.134, 8.657)
    """

    least: float = 0.0
    most: float | None = None
    mean: float | None = None

    def draw(self, random: Random) -> float:
        """The next one, to the millisecond."""
        if self.mean is not None:
            return round(random.expovariate(1 / self.mean), 3) if self.mean else 0.0
        return self.least if self.most is None else round(random.uniform(self.least, self.most), 3)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job that comes.

    Args:
        at: When, in seconds from the beginning.
        work: The name of the work that it belongs to.
        job: The job or the Workload.
        run_seconds: How long it runs; None: for ever.
        linger_seconds: How long its pods stay on a node that has failed; None: they are gone at once.
        node_loss: What becomes of its run once they are gone.
    """

    at: float
    work: str
    job: Manifest
    run_seconds: float | None
    linger_seconds: float | None = None
    node_loss: NodeLoss = NodeLoss.STARTS_OVER

    @property
    def key(self) -> tuple[str, str, str]:
        """Kind, namespace and name."""
        plain = self.job.object
        return text_at(plain, "kind"), text_at(plain, "metadata", "namespace"), text_at(plain, "metadata", "name")


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Jobs of one kind.

    Args:
        name: What it is called, and its jobs; of several, each gets its number after the name: `small-1`, `small-2`.
        job: The job or the Workload.
        count: How many.
        at: When the first comes, in seconds from the beginning.
        every: How long after one comes the next.
        runs: How long each runs; None: for ever.
        lingers_seconds: How long their pods stay on a node that has failed; None: they are gone at once.
        node_loss: What becomes of their runs once they are gone.
        saves_seconds: How much work lies between two checkpoints of a job; None: who is evicted begins from the start.
    """

    name: str
    job: Manifest
    count: int = 1
    at: float = 0.0
    every: Span = Span()
    runs: Span | None = None
    lingers_seconds: float | None = None
    node_loss: NodeLoss = NodeLoss.STARTS_OVER
    saves_seconds: float | None = None

    def arrivals(self, seed: int) -> Iterator[Arrival]:
        """The jobs in their order. They do not change with other work of the scenario."""
        for index, (time, runs) in enumerate(self.times(seed)):
            yield Arrival(time, self.name, self.job_at(index), runs, self.lingers_seconds, self.node_loss)

    def times(self, seed: int) -> Iterator[tuple[float, float | None]]:
        """When each job comes and how long it runs (None: for ever), in seconds."""
        random, time = Random(f"{seed}/{self.name}"), self.at
        for _ in range(self.count):
            runs = None if self.runs is None else self.runs.draw(random)
            yield time, runs
            time = round(time + self.every.draw(random), 3)

    def job_name(self, index: int) -> str:
        """The name of a job, counted from 0."""
        return self.name if self.count == 1 else f"{self.name}-{index + 1}"

    def job_at(self, index: int) -> Manifest:
        """A job, counted from 0."""
        metadata = object_at(self.job.object, "metadata")
        placed: JsonObject = {"namespace": DEFAULT_NAMESPACE, **metadata, "name": self.job_name(index)}
        return replace(self.job, object={**self.job.object, "metadata": placed})


def arrivals_of(work: Iterable[Work], seed: int) -> tuple[Arrival, ...]:
    """The jobs of all work in the order in which they come.

    Args:
        work: The work.
        seed: Where everything comes from that is drawn.

    Raises:
        ManifestError: Two jobs have the same name.
    """
    arrivals = sorted(chain.from_iterable(each.arrivals(seed) for each in work), key=lambda it: it.at)
    taken: dict[tuple[str, str, str], str] = {}
    for it in arrivals:
        other = taken.setdefault(it.key, it.work)
        if other != it.work:
            detail = f"work {other} and work {it.work} both have a job of this name"
            raise ManifestError([it.job.problem(detail, field="metadata.name", remedy="give one of them another name")])
    return tuple(arrivals)
