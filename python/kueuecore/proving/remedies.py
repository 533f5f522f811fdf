"""Suggests what would stop a counterexample, and tries each change on its workloads before suggesting it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, permutations

from kueuecore.findings.facts import Facts
from kueuecore.findings.remedies import Change, fewer_policies, helpful, more_policies
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import IN_EXPLORER, Property

__all__ = ["remedies_of"]

# All orders of five moves.
_MAX_ORDERS = 120


def remedies_of(counterexample: Counterexample) -> tuple[Change, ...]:
    """Return changes of preemption policies that stop a counterexample.

    Each changes one field of one ClusterQueue. With it, the same moves in up to 120 orders neither break the property
    nor make a loop nor evict anybody within nominal quota, and each workload still fits alone. Other workloads may
    break the property as before: search again after a change.

    Args:
        counterexample: The counterexample.

    Returns:
        The changes; none if no single one helps, or if no policy decides the property, such as one of your own.

    Example:
        >>> from pathlib import Path
        >>> from kueuecore import parse_manifests
        >>> from kueuecore.proving import prove
        >>> queues = parse_manifests(Path("examples/two-teams/queues.yaml").read_text())
        >>> proof = prove(queues, properties=[Property.GUARANTEE], spent=lambda n_moves: n_moves / 2_000)
        >>> [str(change) for change in remedies_of(proof.counterexamples[0])]
        ['preemption.reclaimWithinCohort: Any in ClusterQueue team-b']
    """
    if counterexample.breaks not in IN_EXPLORER:
        return ()
    property_ = Property(counterexample.breaks)
    unwanted = {property_, Property.LOOPS, Property.NOMINAL_QUOTA}
    if property_ is Property.WASTE:
        # Whoever takes its own quota back may waste some; without that it would not get it at all.
        unwanted.add(Property.GUARANTEE)
    orders = list(dict.fromkeys(islice(permutations(counterexample.moves), _MAX_ORDERS)))
    fit_now = counterexample.explorer().fit_alone()

    def is_well(facts: Facts) -> bool:
        explorer = counterexample.explorer(facts)
        return explorer.fit_alone() == fit_now and not any(it.broken for it in explorer.play(orders, unwanted))

    return tuple(helpful(counterexample.facts, _changes(counterexample, property_), is_well))


def _changes(counterexample: Counterexample, property_: Property) -> Iterator[Change]:
    """Changes that could help: of whoever waits, so that it is served; else fewer preemptions."""
    queues = counterexample.facts.cluster_queues
    if property_ not in (Property.GUARANTEE, Property.STARVATION):
        yield from fewer_policies(counterexample.facts)
        return
    for name in sorted({shape.cluster_queue for shape in counterexample.shapes}):
        yield from more_policies(queues[name].object)
