"""Excludes workers that the job does not allow or that can never hold it.

Example:
    >>> from kueuecore.multikueue import AllAtOnce
    >>> job = {"metadata": {"annotations": {CLUSTERS: "west"}}}
    >>> clusters = tuple(KnownCluster(name=name, is_connected=True) for name in ("west", "east"))
    >>> Filtered(AllAtOnce()).nominate(Dispatch(workload={}, job=job, clusters=clusters, now=0)).clusters
    ('west',)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from kueuecore.multikueue.dispatcher_protocol import Dispatch, Dispatcher, KnownCluster, Nomination, Recall
from kueuecore.multikueue.policies.quota import cannot_hold
from kueuecore.multikueue.policies.scoring import job_annotations
from kueuecore.multikueue.policies.wrapping import among, inner_recall

__all__ = ["CLUSTERS", "SELECTOR", "Filtered", "Refusal", "not_allowed"]

CLUSTERS = "multikueue.kueuecore/clusters"
"""Annotation of a job: the workers on which it may run, separated by commas; without it, any worker."""
SELECTOR = "multikueue.kueuecore/cluster-selector"
"""Annotation of a job: labels that the MultiKueueCluster must have, such as `region=eu,tier=gold`."""

Refusal: TypeAlias = Callable[[Dispatch, KnownCluster], str]
"""Returns why a worker can never run a workload; empty if it can. Pure."""


def not_allowed(dispatch: Dispatch, cluster: KnownCluster) -> str:
    """Return why the job does not allow a worker: by its name, or by the labels of its MultiKueueCluster."""
    annotations = job_annotations(dispatch)
    if (allowed := annotations.get(CLUSTERS)) is not None and cluster.name not in _parts(allowed):
        return f"the job allows {allowed}"
    for wanted in _parts(annotations.get(SELECTOR, "")):
        key, _, value = wanted.partition("=")
        if cluster.labels.get(key.strip()) != value.strip():
            return f"the job asks for {wanted}"
    return ""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Excludes unsuitable workers; if none is left, the workload is rejected, and its check says why.

    Args:
        inner: The dispatcher that chooses among the others.
        refusals: Return why a worker is unsuitable; by default what the job allows, and what can never fit.
    """

    inner: Dispatcher
    refusals: tuple[Refusal, ...] = (not_allowed, cannot_hold)

    @property
    def waits_for_checks(self) -> bool:
        """The setting of the inner dispatcher."""
        return self.inner.waits_for_checks

    def nominate(self, dispatch: Dispatch) -> Nomination:
        """Nominate what the inner dispatcher chooses from the suitable workers."""
        why = {cluster.name: self._why_not(dispatch, cluster) for cluster in dispatch.clusters}
        if why and all(why.values()):
            reported = "; ".join(f"{name}: {reason}" for name, reason in why.items())
            return Nomination((), rejection=f"No worker can run the workload: {reported}")
        return among(self.inner, dispatch, lambda entry: not why[entry.name])

    def recall(self, dispatch: Dispatch, cluster: str) -> Recall:
        """Leave the decision to the inner dispatcher."""
        return inner_recall(self, dispatch, cluster)

    def _why_not(self, dispatch: Dispatch, cluster: KnownCluster) -> str:
        return next(filter(None, (refusal(dispatch, cluster) for refusal in self.refusals)), "")


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]
