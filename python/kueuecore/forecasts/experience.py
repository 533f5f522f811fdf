"""What earlier calls for the same cluster have read and forecast."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from kueuecore._json import JsonObject
from kueuecore.forecasts.calibration import Curve
from kueuecore.forecasts.past_jobs import PastJob, past_job_of
from kueuecore.forecasts.present_workloads import LocalQueueName, PresentWorkload, present_workload
from kueuecore.manifests import Manifest

__all__ = ["Experience", "Moment"]

Moment = tuple[int, int]
"""A moment of the past, as the width of a grid in seconds, and its place in it."""
# Many times as many as one call looks at: what runs for months must not keep them all.
_MOST_MOMENTS = 2000


@dataclass(slots=True)
class Experience:
    """Keeps the Workloads that have ended and the past forecasts of a cluster for the next call.

    Pass the same object to each call for the same cluster; it is no use for another one.
    """

    _forecasts: dict[Moment, list[tuple[int, str, Curve]]] = field(default_factory=dict)
    _templates: dict[str, JsonObject] = field(default_factory=dict)
    _ended: dict[int, tuple[Manifest, PresentWorkload, PastJob]] = field(default_factory=dict)

    def forecasts(self, moment: Moment) -> list[tuple[int, str, Curve]] | None:
        """Return what was forecast for a moment: when exactly, for which Workload, its waits; None: nothing yet."""
        return self._forecasts.get(moment)

    def keep(self, moment: Moment, forecasts: list[tuple[int, str, Curve]]) -> None:
        """Keep what was forecast for a moment."""
        self._forecasts[moment] = forecasts
        if len(self._forecasts) > _MOST_MOMENTS:
            # Several threads may keep something at once.
            for old in list(self._forecasts)[: -_MOST_MOMENTS // 2]:
                self._forecasts.pop(old, None)

    def has_ended(self, manifest: Manifest) -> bool:
        """Return whether the last call has read a Workload that had ended."""
        return id(manifest) in self._ended

    def ended(
        self, manifests: Sequence[Manifest], homes: Mapping[LocalQueueName, str]
    ) -> tuple[list[PresentWorkload], list[PastJob]]:
        """Read Workloads that have ended, unless the last call did.

        Args:
            manifests: The Workloads.
            homes: The ClusterQueue of each LocalQueue.
        """
        kept: dict[int, tuple[Manifest, PresentWorkload, PastJob]] = {}
        for manifest in manifests:
            known = self._ended.get(id(manifest))
            if known is None:
                workload = present_workload(manifest, homes)
                known = manifest, workload, self._interned(past_job_of(workload))
            kept[id(manifest)] = known
        self._ended = kept
        if len(self._templates) > 2 * len(kept):
            # Those of Workloads that are gone by now.
            self._templates = {
                json.dumps(job.template, sort_keys=True): job.template
                for *_, job in kept.values()
                if job.template is not None
            }
        return [workload for _, workload, _ in kept.values()], [job for _, _, job in kept.values()]

    def _interned(self, job: PastJob) -> PastJob:
        """Return a job whose template is the same object as any equal one."""
        if job.template is None:
            return job
        text = json.dumps(job.template, sort_keys=True)
        return replace(job, template=self._templates.setdefault(text, job.template))
