"""Describes a counterexample step by step, with the rules that decide."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from kueuecore._json import int_at, object_at, text_at
from kueuecore._quantities import number
from kueuecore._spans import span
from kueuecore._text import counted
from kueuecore.findings.facts import Facts as ClusterFacts
from kueuecore.findings.quota_tree import Node, plain
from kueuecore.histories.facts import Facts, Found
from kueuecore.histories.timeline import What
from kueuecore.histories.wording import rule_of_preemption, step_of, why_it_gave_way
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Move, MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.proving.replayed import (
    Admitted,
    Evicted,
    Preempted,
    Replay,
    ReplayedCycle,
    ReplayedMove,
    ReplayEnding,
    Waiting,
)
from kueuecore.proving.shapes import Shape
from kueuecore.proving.steps import Event, Step, Story
from kueuecore.times import SECOND_NS

__all__ = ["story_of"]


def story_of(counterexample: Counterexample, played: Replay | None = None) -> Story:
    """Describe what the moves of a counterexample do, with amounts, Kueue's messages and the rules that decide.

    Args:
        counterexample: The counterexample.
        played: Its replay, if it was replayed before.

    Example:
        >>> from pathlib import Path
        >>> from kueuecore import parse_manifests
        >>> from kueuecore.proving import prove
        >>> queues = parse_manifests(Path("examples/two-teams/queues.yaml").read_text())
        >>> proof = prove(queues, properties=[Property.GUARANTEE], spent=lambda n_moves: n_moves / 2_000)
        >>> story_of(proof.counterexamples[0]).end
        'team-b/team-b-200m-cpu-1 waits, although team-b uses 0 of its own 200m cpu of default-flavor.'
    """
    telling = _Telling(counterexample)
    played = replay(counterexample) if played is None else played
    steps = tuple(telling.steps(played))
    instead: tuple[Step, ...] = ()
    if counterexample.instead:
        other = _Telling(counterexample)
        instead = tuple(other.steps(replay(counterexample, moves=counterexample.instead)))
        return Story(steps, instead, _of_orders(telling, other), ())
    about = telling.about(counterexample.breaks, played)
    return Story(steps, instead, telling.end(counterexample.breaks, played, about), about)


@dataclass(slots=True)
class _Telling:
    counterexample: Counterexample
    # The shape of each workload.
    shapes: dict[str, Shape] = field(default_factory=dict)
    # What each one that holds quota uses, by flavor and resource.
    held: dict[str, dict[tuple[str, str], Fraction]] = field(default_factory=dict)
    # What was last said about those that wait.
    said: dict[str, str] = field(default_factory=dict)
    # The steps of one turn.
    turn_begins: int = 0
    turn_ends: int = 0
    # Preemptions for another ClusterQueue of those within their nominal quota.
    unfair: list[Preempted] = field(default_factory=list)
    before: dict[tuple[str, str], Fraction] = field(default_factory=dict)

    def steps(self, played: Replay) -> Iterator[Step]:
        n = 0
        begun: list[Event] = []
        at = 0
        for move in played.moves:
            self.before = self._in_use()
            at = at if begun else move.at
            begun.append(self._move(move))
            begun += map(self._evicted, move.evicted)
            if move.move.kind is MoveKind.BURST:
                continue
            turn_begins = _turn_begins(move)
            cycles = move.cycles[: turn_begins + len(move.turn)] if move.visits else move.cycles
            for i, cycle in enumerate(cycles):
                events = [*begun, *self._cycle(cycle, move if i == 0 or not move.visits else None)]
                if events:
                    n += 1
                    yield self._step(n, at if begun else cycle.at, events)
                    begun = []
                if i == turn_begins:
                    self.turn_begins = n if events else n + 1
            if begun:
                n += 1
                yield self._step(n, at, begun)
                begun = []
        self.turn_ends = n

    def _step(self, number: int, at: int, events: Sequence[Event]) -> Step:
        return Step(number, at, tuple(events), tells_time=self._has_waits)

    @property
    def _has_waits(self) -> bool:
        configuration = self._facts.configuration
        return configuration is not None and bool(configuration.experiments)

    def about(self, property_: Property | str, played: Replay) -> tuple[str, ...]:
        """The workloads that the property is about."""
        if not played.moves:
            return ()
        last = played.moves[-1]
        waits = tuple(key for key in last.waiting if key in self.shapes)
        match property_:
            case Property.LOOPS | Property.TURNS:
                pairs = ((it.key, it.preemptor) for cycle in last.turn for it in cycle.preempted)
                return tuple(sorted({key for pair in pairs for key in pair}))
            case Property.GUARANTEE:
                return tuple(filter(self._is_denied, waits))
            case Property.NOMINAL_QUOTA:
                return tuple(dict.fromkeys(preempted.key for preempted in self.unfair))
            case Property.WASTE:
                return tuple(dict.fromkeys(preempted.key for preempted in last.preempted))
            case Property.STARVATION | Property.PLACEMENT:
                return waits
        return ()

    def end(self, property_: Property | str, played: Replay, about: Sequence[str]) -> str:
        """How it ends."""
        if played.ending is ReplayEnding.REPEATS:
            every = cycles = counted(len(played.turn), "cycle")
            if self._has_waits:
                every = f"{span(played.seconds_of_turn * SECOND_NS)} ({cycles})"
            return f"Steps {self.turn_begins} to {self.turn_ends} follow again and again, every {every}."
        if played.ending is ReplayEnding.UNSETTLED:
            return f"It has not come to rest after {counted(len(played.moves[-1].cycles), 'cycle')}."
        who = _listed(about)
        verb = "wait" if len(about) > 1 else "waits"
        match property_:
            case Property.GUARANTEE if about:
                return " ".join(map(self._denied, about))
            case Property.NOMINAL_QUOTA if about:
                return " ".join(map(self._unfair, self.unfair))
            case Property.WASTE:
                return f"In use before the last move: {_amounts(self.before)}; at the end: {_amounts(self._in_use())}."
            case Property.STARVATION if about:
                runs = f"{'one of ' if len(self.held) > 1 else ''}{_listed(sorted(self.held))}"
                return f"{who} {verb} for ever if, whenever {runs} ends, a workload like that one arrives."
            case Property.PLACEMENT if about:
                last = played.moves[-1]
                whys = dict.fromkeys(last.waiting[key] for key in about if key not in self.said)
                why = "; ".join(filter(None, whys))
                return f"{who} {verb} although nothing else is there{f': {why}' if why else ''}."
            case Property():
                return f"{property_} holds here."
        return f"{property_} does not hold here."

    def _is_denied(self, key: str) -> bool:
        """Whether a workload waits although there is room for it within the nominal quota of its ClusterQueue."""
        shape = self.shapes[key]
        move = Move(MoveKind.ARRIVE, self.counterexample.shapes.index(shape))
        alone = [it for cycle in replay(self.counterexample, moves=[move]).moves[0].cycles for it in cycle.admitted]
        own = {pair: (used, nominal) for pair, used, nominal in self._own(shape.cluster_queue)}
        wanted = _held(alone[0]).items() if alone else ()
        none = (Fraction(0), Fraction(0))
        return bool(wanted) and all(own.get(pair, none)[0] + it <= own.get(pair, none)[1] for pair, it in wanted)

    def _denied(self, key: str) -> str:
        queue = self.shapes[key].cluster_queue
        used = "; ".join(
            f"{queue} uses {plain(used, resource)} of its own {plain(nominal, resource)} {resource} of {flavor}"
            for (flavor, resource), used, nominal in self._own(queue)
        )
        return f"{key} waits, although {used}."

    def _unfair(self, preempted: Preempted) -> str:
        own = f"although {preempted.cluster_queue} uses no more than its own quota"
        by_queue = self.shapes[preempted.preemptor].cluster_queue
        return f"{preempted.key} gives way to {preempted.preemptor} of {by_queue}, {own}."

    def _own(self, queue: str) -> Iterator[tuple[tuple[str, str], Fraction, Fraction | float]]:
        """What a ClusterQueue uses, and its nominal quota."""
        for pair, quotas in sorted(self._facts.tree.quotas.get(Node("ClusterQueue", queue), {}).items()):
            yield pair, self._used(queue, pair), quotas.nominal

    def _used(self, queue: str, pair: tuple[str, str]) -> Fraction:
        of = (held.get(pair, Fraction(0)) for key, held in self.held.items() if self.shapes[key].cluster_queue == queue)
        return sum(of, Fraction(0))

    def _in_use(self) -> dict[tuple[str, str], Fraction]:
        pairs = sorted({pair for held in self.held.values() for pair in held})
        return {pair: sum((held.get(pair, Fraction(0)) for held in self.held.values()), Fraction(0)) for pair in pairs}

    @property
    def _facts(self) -> ClusterFacts:
        return self.counterexample.facts

    def _move(self, played: ReplayedMove) -> Event:
        kind = played.move.kind
        if kind is MoveKind.END:
            self.held.pop(played.subject, None)
            self.said.pop(played.subject, None)
            return Event("ends", played.subject, "ends")
        if kind is MoveKind.LOSE:
            return Event("lost", played.subject, "is lost, a node")
        shape = self.counterexample.shapes[played.move.number]
        self.shapes[played.subject] = shape
        priority = _priority(shape, self._facts)
        words = f"arrives in {shape.cluster_queue}" + (f" with priority {priority}" if priority else "")
        return Event("arrives", played.subject, words)

    def _cycle(self, cycle: ReplayedCycle, of: ReplayedMove | None) -> Iterator[Event]:
        """The events of a cycle; with who waits only if it is the cycle of a move, not one of a loop."""
        preemptors = {preempted.preemptor for preempted in cycle.preempted}
        for preempted in cycle.preempted:
            yield self._preempted(preempted)
        yield from map(self._evicted, cycle.evicted)
        for preempted in cycle.preempted:
            self.held.pop(preempted.key, None)
        for admitted in cycle.admitted:
            yield self._admitted(admitted)
        for waiting in cycle.waiting if of is not None else ():
            # Whoever preempts waits for that.
            if waiting.key not in preemptors and self.said.get(waiting.key) != waiting.message:
                yield self._waits(waiting)

    def _admitted(self, admitted: Admitted) -> Event:
        queue = admitted.cluster_queue
        self.said.pop(admitted.key, None)
        held = self.held[admitted.key] = _held(admitted)
        parts = []
        for (flavor, resource), amount in sorted(held.items()):
            used = self._used(queue, (flavor, resource))
            nominal = self._facts.tree.quotas_of(Node("ClusterQueue", queue), flavor, resource).nominal
            use = f"{queue} uses {plain(used, resource)} of its {plain(nominal, resource)}"
            if used > nominal:
                use = f"{queue} borrows {plain(used - nominal, resource)}"
            parts.append(f"{plain(amount, resource)} {resource} of {flavor}, {use}")
        pods = {it["name"]: it["count"] for it in _pod_sets(self.shapes[admitted.key])}
        fewer = [f"{n} of {pods[name]} pods" for name, n in admitted.counts.items() if pods.get(name, n) != n]
        how = f" with {' and '.join(fewer)}" if fewer else ""
        verb = "is admitted" if admitted.is_admitted else "gets quota, and waits for admission checks"
        return Event("admitted", admitted.key, f"{verb}{how}: {'; '.join(parts) or 'no quota'}", "05 §6.6")

    def _preempted(self, preempted: Preempted) -> Event:
        by, victim = preempted.preemptor, self.shapes[preempted.key]
        by_queue = self.shapes[by].cluster_queue
        facts = Facts(
            by=by,
            by_queue=by_queue,
            by_priority=str(_priority(self.shapes[by], self._facts)),
            queue=preempted.cluster_queue,
            priority=str(_priority(victim, self._facts)),
            why=preempted.reason,
        )
        why = why_it_gave_way(facts, victim=preempted.key)
        if preempted.cluster_queue != by_queue and self._is_within(preempted):
            self.unfair.append(preempted)
        rule = rule_of_preemption(preempted.reason)
        if self._is_turn(preempted, victim):
            why, rule = f"{preempted.key} has had its turn among equals", "13 §4"
        sentence = f"preempts {preempted.key}" + (f": {why}" if why else "")
        return Event("preempts", by, sentence, rule, preempted.reason)

    def _is_turn(self, preempted: Preempted, victim: Shape) -> bool:
        """Whether an equal gives way because of an experiment (rules/13 §4)."""
        configuration = self._facts.configuration
        has_turns = configuration is not None and configuration.experiments.time_share_seconds is not None
        priorities = {_priority(shape, self._facts) for shape in (victim, self.shapes[preempted.preemptor])}
        return has_turns and preempted.reason == "InClusterQueue" and len(priorities) == 1

    def _is_within(self, preempted: Preempted) -> bool:
        own = {pair: (used, nominal) for pair, used, nominal in self._own(preempted.cluster_queue)}
        each = (own.get(pair, (Fraction(1), Fraction(0))) for pair in self.held.get(preempted.key, {}))
        return all(used <= nominal for used, nominal in each)

    def _evicted(self, evicted: Evicted) -> Event:
        self.held.pop(evicted.key, None)
        step = step_of(Found(at=0, what=What.EVICTED, reason=evicted.reason, message=evicted.message))
        return Event("evicted", evicted.key, f"is {step.sentence}", step.rule)

    def _waits(self, waiting: Waiting) -> Event:
        self.said[waiting.key] = waiting.message
        step = step_of(Found(at=0, what=What.WAITING, message=waiting.message))
        return Event("waits", waiting.key, step.sentence, step.rule)


def _turn_begins(move: ReplayedMove) -> int:
    """The first cycle from which on the same happens as a turn later, whatever is said about those that wait."""
    if not move.visits:
        return -1
    begins, length = move.visits[0], len(move.turn)
    while begins and _happened(move.cycles[begins - 1]) == _happened(move.cycles[begins - 1 + length]):
        begins -= 1
    return begins


def _happened(cycle: ReplayedCycle) -> tuple[object, ...]:
    return cycle.admitted, cycle.preempted, cycle.evicted


def _of_orders(first: _Telling, second: _Telling) -> str:
    served = [sorted({it.shapes[key].cluster_queue for key in it.held}) for it in (first, second)]
    return f"The first order serves {_listed(served[0])}, the second {_listed(served[1])}."


def _priority(shape: Shape, facts: ClusterFacts) -> int:
    spec = object_at(shape.workload, "spec")
    if "priority" in spec:
        return int_at(spec, "priority")
    named = object_at(spec, "priorityClassRef")
    kind, name = text_at(named, "kind"), text_at(named, "name")
    return int_at(facts.of_kind(kind)[name].object, "value") if kind and name in facts.of_kind(kind) else 0


def _pod_sets(shape: Shape) -> Iterator[Mapping[str, int | str]]:
    pod_sets = object_at(shape.workload, "spec").get("podSets")
    for it in pod_sets if isinstance(pod_sets, list) else ():
        yield {"name": text_at(it, "name") or "main", "count": int_at(it, "count", default=1)}


def _held(admitted: Admitted) -> dict[tuple[str, str], Fraction]:
    return {
        (flavor, resource): sum((number(it) or Fraction(0) for it in quantities), Fraction(0))
        for flavor, resources in admitted.amounts.items()
        for resource, quantities in resources.items()
    }


def _amounts(amounts: Mapping[tuple[str, str], Fraction]) -> str:
    parts = (f"{plain(amount, resource)} {resource} of {flavor}" for (flavor, resource), amount in amounts.items())
    return ", ".join(parts) or "nothing"


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names) or "nobody"
