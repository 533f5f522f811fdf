"""Predicts the workloads that will arrive at a cluster from those that have arrived so far."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import accumulate, groupby
from random import Random
from typing import TypeAlias

from kueuecore._json import JsonObject, object_at, texts_at
from kueuecore.manifests import Manifest
from kueuecore.scenarios.job_rows import JOB_UID
from kueuecore.studies.present_workloads import JobKind, PresentWorkload

__all__ = ["Arrivals", "QueueArrivals", "arrivals_of"]

LocalQueueName: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class QueueArrivals:
    """The workloads that arrived at a LocalQueue within a window.

    Args:
        local_queue: Namespace and name.
        batches: For each arrival time, the templates of the workloads that arrived then.
        window_seconds: The length of the window; greater than 0.
    """

    local_queue: LocalQueueName
    batches: tuple[tuple[int, ...], ...]
    window_seconds: float

    @property
    def per_hour(self) -> float:
        """The average number of arrivals per hour."""
        return sum(map(len, self.batches)) * 3600 / self.window_seconds

    def draws(self, random: Random) -> Iterator[tuple[float, int]]:
        """Yield endless arrivals: seconds from now, and a template.

        Batches arrive as a Poisson process. Its rate and the frequency of each batch are drawn first, because a window
        does not determine them exactly.
        """
        # The posterior of a rate after so many events in a window, with Jeffreys' prior.
        rate = random.gammavariate(len(self.batches) + 0.5, 1 / self.window_seconds)
        weights = list(accumulate(random.expovariate(1.0) for _ in self.batches))
        at = 0.0
        while True:
            at += random.expovariate(rate)
            for template in random.choices(self.batches, cum_weights=weights)[0]:
                yield at, template


@dataclass(frozen=True, slots=True)
class Arrivals:
    """The workloads that arrived at a cluster within a window.

    Args:
        queues: LocalQueues with arrivals, by name.
        templates: Workloads without names and statuses, to copy for new ones.
        kinds: The kind of each.
    """

    queues: tuple[QueueArrivals, ...] = ()
    templates: tuple[Manifest, ...] = ()
    kinds: tuple[JobKind, ...] = ()

    def draws(self, seed: str) -> Iterator[tuple[float, int]]:
        """Yield arrivals in order of time: seconds from now and templates. Endless, unless there are no queues.

        Args:
            seed: The seed of the random draws.
        """
        return merge(*(queue.draws(Random(f"{seed}/{'/'.join(queue.local_queue)}")) for queue in self.queues))


def arrivals_of(
    workloads: Sequence[PresentWorkload], *, now: int, window_seconds: float | None = None
) -> tuple[Arrivals, float]:
    """Return the workloads that arrived at a cluster, and the length of the window in seconds.

    Kueue deletes finished Workloads after a while (`objectRetentionPolicies`). All that arrived after the first end
    still on record are present, so the window starts there; without any end, at the first creation.

    Args:
        workloads: Its Workloads.
        now: When they were dumped, in nanoseconds since 1970.
        window_seconds: The longest window.
    """
    created = [workload.created for workload in workloads if workload.created is not None]
    ended = [workload.ended for workload in workloads if workload.ended is not None]
    begin = min(ended or created, default=now)
    if window_seconds is not None:
        begin = max(begin, now - round(window_seconds * 1e9))
    seconds = (now - begin) / 1e9
    came = [workload for workload in workloads if workload.created is not None and begin < workload.created <= now]
    if not came or seconds <= 0:
        return Arrivals(), max(seconds, 0.0)
    templates: dict[str, int] = {}
    manifests: list[Manifest] = []
    kinds: list[JobKind] = []
    moments: dict[LocalQueueName, list[tuple[int, int]]] = {}
    for workload in came:
        template = _template(workload.manifest.object)
        number = templates.setdefault(json.dumps(template, sort_keys=True), len(templates))
        if number == len(manifests):
            manifests.append(Manifest(template))
            kinds.append(workload.kind)
        moments.setdefault(workload.local_queue, []).append((workload.created or 0, number))
    queues = tuple(QueueArrivals(queue, _batches(moments[queue]), seconds) for queue in sorted(moments))
    return Arrivals(queues, tuple(manifests), tuple(kinds)), seconds


def _batches(moments: Sequence[tuple[int, int]]) -> tuple[tuple[int, ...], ...]:
    groups: Mapping[int, list[int]] = {
        at: [number for _, number in group] for at, group in groupby(sorted(moments), key=lambda moment: moment[0])
    }
    return tuple(tuple(group) for group in groups.values())


def _template(workload: JsonObject) -> JsonObject:
    """Return a Workload as it was created, without its name."""
    metadata = object_at(workload, "metadata")
    labels = {name: value for name, value in texts_at(metadata, "labels").items() if name != JOB_UID}
    kept: JsonObject = {"namespace": metadata.get("namespace"), "name": "template"}
    if labels:
        kept["labels"] = dict(labels)
    if annotations := texts_at(metadata, "annotations"):
        kept["annotations"] = dict(annotations)
    spec = {name: entry for name, entry in object_at(workload, "spec").items() if name != "active"}
    return {"apiVersion": workload.get("apiVersion"), "kind": "Workload", "metadata": kept, "spec": spec}
