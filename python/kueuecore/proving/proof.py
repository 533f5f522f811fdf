"""Searches a configuration for counterexamples, one tree of cohorts after the other."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from kueuecore._json import object_at
from kueuecore.configuration import Configuration
from kueuecore.errors import ManifestError
from kueuecore.findings.building import facts_of
from kueuecore.findings.finding import Severity
from kueuecore.manifests import ManifestLike, as_manifest
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import IN_EXPLORER, Explorer, Move, Property
from kueuecore.proving.orders import order_dependence
from kueuecore.proving.own_properties import NotHereError, OwnProperty, broken_by
from kueuecore.proving.placement import never_placed
from kueuecore.proving.scope import Scope, scopes_of
from kueuecore.proving.search import Coverage, Found, Search, Spent, search
from kueuecore.proving.shapes import Tier
from kueuecore.proving.shrinking import smallest

__all__ = ["Proof", "TreeProof", "properties_of", "prove", "severity_of"]

_SEVERITIES = {
    Property.LOOPS: Severity.ERROR,
    Property.NOMINAL_QUOTA: Severity.ERROR,
    Property.GUARANTEE: Severity.WARNING,
    Property.PLACEMENT: Severity.WARNING,
    Property.WASTE: Severity.NOTE,
    Property.STARVATION: Severity.NOTE,
    Property.ORDER: Severity.NOTE,
    Property.TURNS: Severity.NOTE,
}

_FEW_MOVES = 200_000
_MAX_OWN_STATES = 50_000


def severity_of(counterexample: Counterexample) -> Severity:
    """Return how bad a counterexample is.

    A property of the user's own counts as an error. Most configurations in which ClusterQueues reclaim quota have a
    loop with a workload that may start with fewer pods (docs/prove.md), which does no harm where there are none.
    A loop that chance ends costs a few evictions.

    Args:
        counterexample: The counterexample.
    """
    if counterexample.needs_partial_admission or counterexample.is_by_chance:
        return Severity.WARNING
    return _SEVERITIES[Property(counterexample.breaks)] if counterexample.breaks in _SEVERITIES else Severity.ERROR


def properties_of(configuration: Configuration | None) -> tuple[Property, ...]:
    """Return the properties that can be broken: nobody takes turns unless an experiment has it.

    Args:
        configuration: Kueue's Configuration, with its experiments.
    """
    has_turns = configuration is not None and configuration.experiments.time_share_seconds is not None
    return tuple(it for it in Property if has_turns or it is not Property.TURNS)


@dataclass(frozen=True, slots=True)
class TreeProof:
    """What was found in one tree of cohorts.

    Args:
        scope: The tree.
        counterexamples: One for each property that is broken: the most severe first, else in the order of the
            properties.
        coverage: What was tried.
        n_own_states: In how many states the user's properties were evaluated.
        elsewhere: Properties of the user's that ask for objects of other trees, and were not evaluated here.
        is_late: Whether the search was over before anything was tried but each shape alone.
    """

    scope: Scope
    counterexamples: tuple[Counterexample, ...]
    coverage: Coverage
    n_own_states: int = 0
    elsewhere: tuple[str, ...] = ()
    is_late: bool = False


@dataclass(frozen=True, slots=True)
class Proof:
    """What was found in a configuration.

    Args:
        trees: What was found in each tree of cohorts, by the name of its root.
        is_interrupted: Whether Ctrl-C ended the search, perhaps before some trees.
    """

    trees: tuple[TreeProof, ...]
    is_interrupted: bool = False

    @property
    def counterexamples(self) -> tuple[Counterexample, ...]:
        """All counterexamples."""
        return tuple(it for tree in self.trees for it in tree.counterexamples)


@dataclass(slots=True)
class _SoFar:
    """What was found in one tree so far.

    Args:
        found: The counterexamples.
        search: What the search has found that is not shrunk yet, and what it has tried.
        n_own_states: In how many states the user's properties were evaluated.
        elsewhere: By their names, properties that ask for what this tree does not have.
    """

    found: list[Counterexample] = field(default_factory=list)
    search: Search = field(default_factory=Search)
    n_own_states: int = 0
    elsewhere: dict[str, ManifestError] = field(default_factory=dict)

    @property
    def has_tried(self) -> bool:
        """Whether more was tried than each shape alone."""
        coverage = self.search.coverage
        return bool(coverage.n_played or coverage.n_orders or self.n_own_states)


def prove(
    manifests: Iterable[ManifestLike],
    *,
    configuration: Configuration | None = None,
    properties: Iterable[Property] = tuple(Property),
    own: Sequence[OwnProperty] = (),
    spent: Spent | None = None,
    seed: int = 0,
    n_threads: int = 1,
    progress: Callable[[str], None] | None = None,
    trusted: bool = False,
) -> Proof:
    """Search for workloads under which a configuration loops, starves somebody, or breaks a promise.

    That nothing is found is no proof: `TreeProof.coverage` says what was tried. Ctrl-C ends it with what was found by
    then.

    Args:
        manifests: The configuration; its Workloads and jobs are shapes that may arrive.
        configuration: Kueue's Configuration, with its experiments.
        properties: What to search for.
        own: Properties of your own.
        spent: Given how many moves were played, returns which part of the time is over; 1 ends the search. By default,
            200,000 moves are.
        seed: Of the moves that are drawn.
        n_threads: How many threads search. Without a limit of time the result is the same with any number.
        progress: Called with what is tried next.
        trusted: Whether the objects are a dump, which an API server has validated.

    Raises:
        ManifestError: An API server with Kueue would reject an object, or a property of your own failed.

    Example:
        >>> from pathlib import Path
        >>> from kueuecore import parse_manifests
        >>> queues = parse_manifests(Path("examples/two-teams/queues.yaml").read_text())
        >>> proof = prove(queues, properties=[Property.GUARANTEE], spent=lambda n_moves: n_moves / 2_000)
        >>> [str(found.breaks) for found in proof.counterexamples]
        ['guarantee']
    """
    given = [as_manifest(manifest, f"manifests[{n}]") for n, manifest in enumerate(manifests)]
    facts = facts_of(given, configuration=_with_ready_pods(configuration), trusted=trusted)
    scopes = tuple(scopes_of(facts))
    asked = tuple(properties)
    order = [*asked, *(it.name for it in own)]
    trees: list[TreeProof] = []
    not_here: list[dict[str, ManifestError]] = []
    asks_more = bool(own) or any(it is not Property.PLACEMENT for it in asked if it in properties_of(configuration))
    is_interrupted = False
    for n, scope in enumerate(scopes):
        clock = _part_of(spent or _few, n, len(scopes), sum(tree.coverage.n_played for tree in trees))
        so_far = _SoFar()
        try:
            _of_tree(scope, asked, own, clock, seed, n_threads, progress, so_far)
        except KeyboardInterrupt:
            is_interrupted = True
            _shrink_rest(scope, so_far)
        found = tuple(sorted(so_far.found, key=lambda it: (-severity_of(it).rank, order.index(it.breaks))))
        n_states = so_far.n_own_states if len(so_far.elsewhere) < len(own) else 0
        elsewhere = tuple(so_far.elsewhere)
        is_late = asks_more and bool(scope.shapes) and not (so_far.has_tried or elsewhere)
        trees.append(TreeProof(scope, found, so_far.search.coverage, n_states, elsewhere, is_late))
        not_here.append(so_far.elsewhere)
        if is_interrupted:
            break
    else:
        _check_somewhere(not_here)
    return Proof(tuple(trees), is_interrupted=is_interrupted)


def _check_somewhere(elsewhere: Sequence[Mapping[str, ManifestError]]) -> None:
    """Check that each property can be evaluated in some tree."""
    for name in elsewhere[0] if elsewhere else ():
        if all(name in it for it in elsewhere):
            raise elsewhere[0][name]


def _with_ready_pods(configuration: Configuration | None) -> Configuration | None:
    """Return a Configuration in which no workload waits for the pods of others: here, pods are ready at once."""
    plain = {} if configuration is None else configuration.to_dict()
    waiting = object_at(plain, "waitForPodsReady")
    if configuration is None or not waiting.get("blockAdmission"):
        return configuration
    text = json.dumps({**plain, "waitForPodsReady": {**waiting, "blockAdmission": False}})
    found = Configuration.parse(text, release=configuration.release)
    return found.with_experiments(configuration.experiments)


def _few(n_moves: int) -> float:
    return n_moves / _FEW_MOVES


def _part_of(spent: Spent, n: int, n_parts: int, before: int) -> Spent:
    """The clock of the n-th of several parts of the time; what one does not use goes to those after it."""
    began = spent(before)
    left = max(1 - began, 1e-9) / (n_parts - n)
    return lambda n_moves: (spent(before + n_moves) - began) / left


def _of_tree(
    scope: Scope,
    properties: Sequence[Property],
    own: Sequence[OwnProperty],
    spent: Spent,
    seed: int,
    n_threads: int,
    progress: Callable[[str], None] | None,
    so_far: _SoFar,
) -> None:
    if not scope.shapes:
        return
    found = so_far.found
    if Property.PLACEMENT in properties:
        so_far.search.coverage.n_alone = len(scope.shapes)
        if (unplaced := never_placed(scope, scope.explorer())) is not None:
            found.append(smallest(scope, unplaced))
    if own:
        if progress is not None:
            progress("states for properties of your own")
        _own(scope, own, spent, so_far)
    if Property.ORDER in properties and (orders := order_dependence(scope, spent, so_far.search.coverage)) is not None:
        found.append(smallest(scope, orders))
    possible = properties_of(scope.facts.configuration)
    asked = [it for it in properties if it in IN_EXPLORER and it in possible]
    search(scope, asked, spent=spent, seed=seed, n_threads=n_threads, progress=progress, result=so_far.search)
    _shrink_rest(scope, so_far)


def _shrink_rest(scope: Scope, so_far: _SoFar) -> None:
    """Shrink what the search of a tree has found."""
    left = so_far.search.found
    while left:
        so_far.found.append(replace(smallest(scope, left[0]), is_by_chance=left[0].is_by_chance))
        del left[0]


def _own(scope: Scope, own: Sequence[OwnProperty], spent: Spent, so_far: _SoFar) -> None:
    """Evaluate properties in each state that is reached by few moves of the simplest shapes."""
    shapes = tuple(shape for shape in scope.shapes if shape.tier is Tier.FIRST)
    explorer = scope.explorer(shapes)
    left = list(own)
    for moves in _states(explorer):
        if not left or so_far.n_own_states >= _MAX_OWN_STATES or spent(so_far.n_own_states) >= 0.5:
            break
        so_far.n_own_states += 1
        for property_ in tuple(left):
            try:
                if not broken_by(property_, explorer, moves):
                    continue
                found = Found(property_.name, shapes, moves)
                so_far.found.append(smallest(scope, found, breaks=partial(_breaks, property_)))
            except NotHereError as error:
                so_far.elsewhere[property_.name] = error
            left.remove(property_)


def _breaks(property_: OwnProperty, explorer: Explorer, moves: tuple[Move, ...]) -> bool:
    """Whether moves break a property; not where an object is gone for which it asks."""
    try:
        return broken_by(property_, explorer, moves)
    except NotHereError:
        return False


def _states(explorer: Explorer) -> Iterator[tuple[Move, ...]]:
    """Yield moves to each state, those with fewer moves first."""
    seen: set[int] = set()
    frontier: list[tuple[Move, ...]] = [()]
    yield ()
    while frontier:
        reached = []
        for moves in frontier:
            for longer, standing in explorer.expand(moves):
                if standing not in seen:
                    seen.add(standing)
                    reached.append(longer)
                    yield longer
        frontier = reached
