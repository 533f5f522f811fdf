"""The draws of a part of a cluster: those of the whole, without what is left out."""

from __future__ import annotations

from collections.abc import Container, Sequence

import numpy as np
import numpy.typing as npt

from kueuecore._json import text_at
from kueuecore.forecasts.base_state import State
from kueuecore.forecasts.draws import ArrivalColumns, Drawn, Draws
from kueuecore.forecasts.present_workloads import LocalQueueName
from kueuecore.forecasts.relevance import local_queues_of
from kueuecore.manifests import Manifest, object_ref

__all__ = ["DrawsPart", "draws_of_part"]


class DrawsPart:
    """Draws for a part of a cluster, so that its futures are the same as within the whole.

    Args:
        whole: The draws of the whole.
        present: The places in the whole of those present workloads that belong to the part.
        local_queues: Its LocalQueues, by namespace and name.
    """

    def __init__(self, whole: Draws, present: Sequence[int], local_queues: Container[LocalQueueName]) -> None:
        self._whole, self._present = whole, np.array(present, np.intp)
        kept = [place for place, template in enumerate(whole.templates) if _queue_of(template) in local_queues]
        self.templates: Sequence[Manifest] = tuple(whole.templates[place] for place in kept)
        self._places = np.full(len(whole.templates), -1, np.intp)
        self._places[kept] = np.arange(len(kept))

    def drawn(self, seed: int) -> Drawn:
        """See `Draws`."""
        return _DrawnPart(self._whole.drawn(seed), self._present, self._places)


class _DrawnPart:
    """The part of one future."""

    def __init__(self, whole: Drawn, present: npt.NDArray[np.intp], places: npt.NDArray[np.intp]) -> None:
        self._whole, self._places = whole, places
        self.run_seconds = whole.run_seconds[present]
        self.done_seconds = whole.done_seconds[present]

    def arrivals(self, begin: float, end: float) -> ArrivalColumns:
        """See `Drawn`."""
        at, template, run_seconds = self._whole.arrivals(begin, end)
        places = self._places[template]
        kept = places >= 0
        return at[kept], places[kept], run_seconds[kept]


def draws_of_part(draws: Draws, whole: State, part: State) -> Draws:
    """Return the draws for a part of a state.

    Args:
        draws: The draws for the whole.
        whole: The whole.
        part: The part, with some of its workloads in the same order.
    """
    if part is whole:
        return draws
    kept = set(map(id, part.workloads))
    present = [place for place, workload in enumerate(whole.workloads) if id(workload) in kept]
    return DrawsPart(draws, present, local_queues_of(part.objects))


def _queue_of(template: Manifest) -> LocalQueueName:
    return object_ref(template.object).namespace, text_at(template.object, "spec", "queueName")
