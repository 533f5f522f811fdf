"""Ask `eta` about simulated clusters whose future is known, and count how often the truth lies in its intervals.

python -m scripts.calibrate_eta [--family NAME] [--waits 1000] [--seed 1] [--draws 39] [--workers 1] [--check]

A history is a cluster at which jobs arrive for some hours. At a moment when some of them wait, its state is dumped:
queues, and Workloads with their statuses, including finished ones. `eta` is asked about some of those that wait, and
the history continues until they are admitted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from random import Random

import numpy as np

from kueuecore import Configuration
from kueuecore._json import JsonObject
from kueuecore.forecasts.forecast import eta
from kueuecore.manifests import Manifest, parse_manifests
from kueuecore.scenarios import ClusterPart, Scenario
from kueuecore.simulation import Copies, Happening, Operation
from kueuecore.simulation.copies import joined_names
from kueuecore.simulation.stepper import Stepper
from kueuecore.studies.running import processes, run_all
from kueuecore.world import World

START = "2026-01-05T00:00:00Z"
HOUR = 3600.0
HORIZON = 48 * HOUR
# Bounds for 100 waits in 80 % intervals. Waits of one state go together: 100 of them say as much as some 40 apart.
LEAST_HELD, MOST_HELD = 0.62, 0.95
_MAX_WAITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Jobs that arrive at one LocalQueue.

    Args:
        queue: The LocalQueue.
        namespace: Its namespace.
        name: The prefix of the jobs' names, before their numbers.
        per_hour: Arrivals per hour.
        cpus: What a job may request, with equal probability.
        priorities: Its priority, with equal probability.
        runs: Draws how long one runs, in seconds.
    """

    queue: str
    per_hour: float
    cpus: tuple[int, ...]
    runs: Callable[[Random], float]
    priorities: tuple[int, ...] = (0,)
    namespace: str = "ns"
    name: str = "job"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family of similar histories.

    Args:
        queues: Cohorts, ClusterQueues and LocalQueues.
        streams: The arrivals.
        configuration: Kueue's Configuration.
    """

    queues: str
    streams: tuple[Stream, ...]
    configuration: str = ""


def _queue(name: str, cpus: int, *, cohort: str = "", preemption: str = "", weight: str = "") -> str:
    spec = f"cohortName: {cohort}, " if cohort else ""
    spec += f"preemption: {preemption}, " if preemption else ""
    spec += f"fairSharing: {{weight: {weight}}}, " if weight else ""
    flavors = f"[{{name: main, resources: [{{name: cpu, nominalQuota: {cpus}}}]}}]"
    groups = f"[{{coveredResources: [cpu], flavors: {flavors}}}]"
    return f"""---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: {name}}}
spec: {{{spec}namespaceSelector: {{}}, resourceGroups: {groups}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: {name}, namespace: ns}}
spec: {{clusterQueue: {name}}}
"""


_HEAD = """
{apiVersion: v1, kind: Namespace, metadata: {name: ns}}
---
{apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: main}}
"""
CONFIGURATION = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
_FAIR = CONFIGURATION[:-1] + ", fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare]}}"
_RECLAIM = "{reclaimWithinCohort: Any}"


def exponential(mean: float) -> Callable[[Random], float]:
    return lambda random: random.expovariate(1 / mean)


def lognormal(median: float, sigma: float) -> Callable[[Random], float]:
    return lambda random: median * float(np.exp(random.gauss(0.0, sigma)))


def gamma(shape: float, mean: float) -> Callable[[Random], float]:
    return lambda random: random.gammavariate(shape, mean / shape)


FAMILIES = {
    "one-queue": Family(
        queues=_HEAD + _queue("a", 12),
        streams=(Stream(queue="a", per_hour=33, cpus=(1, 2, 3), runs=exponential(600)),),
    ),
    "borrowing": Family(
        queues=_HEAD + _queue("a", 8, cohort="all") + _queue("b", 4, cohort="all") + _queue("c", 4, cohort="all"),
        streams=(
            Stream(queue="a", per_hour=18, cpus=(1, 2, 4), runs=lognormal(400, 1.0)),
            Stream(queue="b", per_hour=12, cpus=(1, 2), runs=lognormal(700, 0.8)),
            Stream(queue="c", per_hour=8, cpus=(2, 3), runs=lognormal(300, 1.2)),
        ),
    ),
    "priorities": Family(
        queues=_HEAD + _queue("a", 12, preemption="{withinClusterQueue: LowerPriority}"),
        streams=(
            Stream(queue="a", per_hour=25, cpus=(1, 2, 3), runs=exponential(600), priorities=(0, 0, 0, 10)),
            Stream(queue="a", per_hour=4, cpus=(2, 4), runs=gamma(2.0, 900), priorities=(10, 100)),
        ),
    ),
    "fair-sharing": Family(
        queues=_HEAD
        + _queue("a1", 4, cohort="left", preemption=_RECLAIM)
        + _queue("a2", 4, cohort="left", preemption=_RECLAIM, weight='"2"')
        + _queue("b1", 4, cohort="right", preemption=_RECLAIM)
        + _queue("b2", 4, cohort="right", preemption=_RECLAIM)
        + "".join(
            f"---\n{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Cohort, metadata: {{name: {name}}}, "
            "spec: {parentName: root}}\n"
            for name in ("left", "right")
        ),
        streams=(
            Stream(queue="a1", per_hour=16, cpus=(1, 2), runs=exponential(700)),
            Stream(queue="a2", per_hour=12, cpus=(1, 2, 3), runs=gamma(2.0, 600)),
            Stream(queue="b1", per_hour=10, cpus=(1, 2, 4), runs=lognormal(400, 0.8)),
            Stream(queue="b2", per_hour=6, cpus=(1, 2), runs=exponential(900)),
        ),
        configuration=_FAIR,
    ),
}


@dataclass(frozen=True, slots=True)
class Wait:
    """The forecast and the truth for one workload.

    Args:
        low: The start of the interval, in seconds.
        high: The end of the interval.
        truth: When it was admitted.
    """

    low: float
    high: float
    truth: float


def waits_of(family: str, seed: str, n_draws: int) -> list[Wait]:
    """Ask about one state of one history.

    Args:
        family: The name of the family.
        seed: The seed of all random draws.
        n_draws: The number of futures.
    """
    given = FAMILIES[family]
    random = Random(f"{family}/{seed}")
    hours = random.uniform(6, 14)
    configuration = Configuration.parse(given.configuration or CONFIGURATION)
    history = history_of(given, random, configuration, hours * HOUR + HORIZON)
    now = history.start + round(hours * HOUR) * 10**9
    history.advance(now)
    objects = (*parse_manifests(given.queues), *workloads_of(history))
    pending = [workload.key for workload in history.engine.workloads() if workload.stage.value == "Pending"]
    chosen = sorted(random.sample(pending, min(len(pending), _MAX_WAITS)))
    if not chosen:
        return []
    scenario = Scenario(cluster=ClusterPart(objects=objects, configuration=configuration), start=now)
    found = eta(scenario, chosen, seeds=range(n_draws), horizon_seconds=HORIZON)
    truths = _truths(history, now, chosen)
    return [
        Wait(forecast.quantile(0.1), forecast.quantile(0.9), truths.get(forecast.workload, inf))
        for forecast in found.forecasts
    ]


def history_of(family: Family, random: Random, configuration: Configuration, seconds: float) -> Stepper:
    rows: list[tuple[float, float, int, str]] = []
    templates: list[Happening] = []
    for stream in family.streams:
        first = len(templates)
        shapes = [(cpu, priority) for cpu in stream.cpus for priority in stream.priorities]
        templates += [Happening(at=0, op=Operation.CREATE, object=_workload(stream, *shape)) for shape in shapes]
        at = random.expovariate(stream.per_hour / HOUR)
        while at < seconds:
            rows.append((at, round(stream.runs(random), 3), first + random.randrange(len(shapes)), stream.name))
            at += random.expovariate(stream.per_hour / HOUR)
    rows.sort()
    names, ends = joined_names([f"{row[3]}-{number}" for number, row in enumerate(rows, 1)])
    stepper = Stepper(
        World.of(parse_manifests(family.queues)).manifests,
        configuration=configuration,
        now=START,
        checks=[],
        trusted=False,
        cycle_seconds=1.0,
        max_cycles=None,
        eviction_seconds=0.0,
        messages=False,
        cycles=False,
    )
    copies = Copies(
        templates=templates,
        template=np.array([row[2] for row in rows], np.uint32),
        names=names,
        ends=ends,
        at=np.array([row[0] for row in rows]),
        run_seconds=np.array([row[1] for row in rows]),
    )
    stepper.schedule_copies(copies)
    stepper.happened()
    return stepper


def _workload(stream: Stream, cpu: int, priority: int) -> Manifest:
    container: JsonObject = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}}
    pods: JsonObject = {
        "name": "main",
        "count": 1,
        "template": {"spec": {"containers": [container], "restartPolicy": "Never"}},
    }
    return Manifest(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {"name": "template", "namespace": stream.namespace},
            "spec": {"queueName": stream.queue, "priority": priority, "podSets": [pods]},
        }
    )


def workloads_of(history: Stepper) -> Iterator[Manifest]:
    """Yield all current Workloads with their statuses."""
    stored = history.stored
    for state in history.engine.workloads():
        yield Manifest({**stored.workload(state), "status": dict(state.status)})


def _truths(history: Stepper, now: int, keys: Sequence[str]) -> dict[str, float]:
    """Return how many seconds after now each is admitted."""
    found: dict[str, float] = {}
    n_steps, seconds = len(history.clock.steps_since(0)), HOUR
    while len(found) < len(keys) and seconds <= HORIZON:
        history.advance(now + round(seconds * 1e9))
        steps = history.clock.steps_since(n_steps)
        n_steps += len(steps)
        for time, kind, key in steps:
            if kind == "Admitted" and key in keys:
                found.setdefault(key, (time - now) / 1e9)
        seconds = HORIZON if seconds < HORIZON < 2 * seconds else 2 * seconds
    return found


@dataclass(frozen=True, slots=True)
class Coverage:
    """How often the interval contains the truth.

    Args:
        waits: All forecasts, state by state.
    """

    states: Sequence[Sequence[Wait]]

    def __str__(self) -> str:
        waits = [entry for state in self.states for entry in state]
        n = len(waits)
        held = sum(wait.low <= wait.truth <= wait.high for wait in waits) / n
        below, above = (
            sum(entry) / n for entry in ((w.truth < w.low for w in waits), (w.truth > w.high for w in waits))
        )
        # Waits in one state are correlated, but states are independent.
        spread = [sum((entry.low <= entry.truth <= entry.high) - held for entry in state) for state in self.states]
        error = sqrt(sum(deviation * deviation for deviation in spread)) / n
        return (
            f"{n} waits in {len(self.states)} states: {held:.1%} in the 80 % interval (standard error {error:.1%}), "
            f"{below:.1%} earlier, {above:.1%} later"
        )

    @property
    def held(self) -> float:
        """The share of waits within their intervals."""
        waits = [entry for state in self.states for entry in state]
        return sum(wait.low <= wait.truth <= wait.high for wait in waits) / len(waits)


def coverage(family: str, *, n_waits: int, seed: int, n_draws: int, workers: int = 1) -> Coverage:
    """Ask about states until there are `n_waits` waits."""
    states: list[list[Wait]] = []
    first, n = 0, 0
    with processes(workers) as executor:
        while n < n_waits:
            # Alone, no state is asked in vain; several processes wait for the slowest of a batch.
            n_calls = 1 if executor is None else 4 * workers
            calls = [(family, f"{seed}/{number}", n_draws) for number in range(first, first + n_calls)]
            for _, waits in sorted(run_all(waits_of, calls, executor)):
                if n < n_waits and waits:
                    states.append(waits[: n_waits - n])
                    n += len(states[-1])
            first += len(calls)
    return Coverage(states)


def main() -> int:
    """Print a line for each family; return 1 if one is out of bounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", choices=FAMILIES, action="append", help="by default all")
    parser.add_argument("--waits", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draws", type=int, default=39)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--check", action="store_true", help=f"exit with 1 unless {LEAST_HELD} to {MOST_HELD} of the waits are held"
    )
    options = parser.parse_args()
    is_held = True
    for family in options.family or FAMILIES:
        found = coverage(
            family, n_waits=options.waits, seed=options.seed, n_draws=options.draws, workers=options.workers
        )
        print(f"{family}: {found}", flush=True)
        is_held &= LEAST_HELD <= found.held <= MOST_HELD
    return int(options.check and not is_held)


if __name__ == "__main__":
    sys.exit(main())
