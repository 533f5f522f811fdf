"""Writes a counterexample as files: its objects, a scenario that shows it, and a policy test that fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from kueuecore._json import JsonObject, JsonValue, object_at, text_at
from kueuecore._replaced_files import replaced
from kueuecore._text import escaped
from kueuecore._yaml_output import yaml_document
from kueuecore.configuration import Configuration
from kueuecore.experiments import Experiments
from kueuecore.proving.counterexample import Counterexample
from kueuecore.proving.explorer import Move, MoveKind, Property
from kueuecore.proving.replay import replay
from kueuecore.proving.replayed import Replay, ReplayedMove
from kueuecore.proving.shapes import Shape
from kueuecore.proving.steps import Story
from kueuecore.proving.story import story_of
from kueuecore.releases import DEFAULT_RELEASE, Release
from kueuecore.times import format_time

__all__ = ["files_of", "save"]

_MINUTE = 60
# A loop is shown for so long; time passes until nothing is left to happen otherwise.
_MINUTES_OF_A_LOOP = 5
# Or for so many turns, where they take longer.
_TURNS = 5
# So often each one that runs is followed by another like it.
_ROUNDS = 5


def save(counterexample: Counterexample, folder: Path, name: str, *, story: Story | None = None) -> tuple[Path, ...]:
    """Write the files of a counterexample into a folder, which is created if it is missing.

    Args:
        counterexample: The counterexample.
        folder: The folder.
        name: What the names of the files begin with; files of these names are replaced.
        story: The counterexample as a story, if that is known.

    Returns:
        The files.

    Raises:
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, text in files_of(counterexample, name, story=story).items():
        path = folder / file
        try:
            with replaced(path) as out:
                out.write(text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise OSError(error.errno, error.strerror or str(error), str(path)) from None
        paths.append(path)
    return tuple(paths)


def files_of(counterexample: Counterexample, name: str, *, story: Story | None = None) -> dict[str, str]:
    """Return the text of each file of a counterexample, by name.

    `NAME.manifests.yaml` has the objects, `NAME.scenario.yaml` shows it with `kueuecore simulate`, and `NAME_test.yaml`
    is a policy test that fails until the configuration is mended; of a property of the user's own there is none.

    Args:
        counterexample: The counterexample.
        name: What the names begin with.
        story: The counterexample as a story, if that is known.
    """
    told = story_of(counterexample) if story is None else story
    manifests = f"{name}.manifests.yaml"
    files = {manifests: "---\n".join(yaml_document(it, is_ascii=False) for it in _objects(counterexample))}
    if not counterexample.manifests:
        del files[manifests]
    notice = _experiments(counterexample).notice
    lines = (notice, *told.lines) if notice else told.lines
    head = "".join(f"# {escaped(line)}\n" for line in lines)
    files[f"{name}.scenario.yaml"] = head + yaml_document(_scenario(counterexample, manifests), is_ascii=False)
    test = _policy_test(counterexample, manifests, told)
    if test is not None:
        files[f"{name}_test.yaml"] = head + yaml_document(test, is_ascii=False)
    return files


def _objects(counterexample: Counterexample) -> Iterator[JsonObject]:
    return (manifest.object for manifest in counterexample.manifests)


def _scenario(counterexample: Counterexample, manifests: str) -> JsonObject:
    timed = _Timed.of(counterexample)
    cluster: JsonObject = {"objects": [manifests] if counterexample.manifests else []}
    found: JsonObject = {"apiVersion": "kueuecore/v1", "kind": "Scenario", **_start(counterexample, "start")}
    if counterexample.breaks in _LOOPS:
        found["until"] = timed.until
    found["cluster"] = {**cluster, **_settings(counterexample.facts.configuration)}
    return {**found, **timed.timetable(), "work": [*timed.work(), *timed.followers()]}


def _policy_test(counterexample: Counterexample, manifests: str, story: Story) -> JsonObject | None:
    if not isinstance(counterexample.breaks, Property):
        return None
    timed = _Timed.of(counterexample)
    head: JsonObject = {
        "apiVersion": "kueuecore/v1",
        "kind": "PolicyTest",
        "manifests": [manifests],
        **_settings(counterexample.facts.configuration),
        **_start(counterexample, "now"),
    }
    if counterexample.breaks in _LOOPS and _experiments(counterexample):
        # Otherwise it would go on to the end of time if a turn takes long.
        head["until"] = timed.until
    if counterexample.breaks is Property.ORDER:
        other = _Timed.of(counterexample, counterexample.instead)
        better = max((timed.played, other.played), key=lambda it: len(_served(counterexample, it)))
        expect: list[JsonValue] = [*_as_many(counterexample, better)]
        cases: list[JsonValue] = [
            {"name": "workloads in one order", "submit": timed.work(), "expect": expect},
            {"name": "the same workloads in another order", "submit": other.work(), "expect": expect},
        ]
        return {**head, "cases": cases}
    case: JsonObject = {"name": _NAMES[counterexample.breaks], **timed.timetable()}
    case["submit"] = [*timed.work(), *timed.followers()]
    case["expect"] = list(_expected(counterexample, timed, story))
    return {**head, "cases": [case]}


_NAMES = {
    Property.LOOPS: "nobody preempts each other forever",
    Property.GUARANTEE: "a team gets the quota that it owns",
    Property.NOMINAL_QUOTA: "nobody loses quota of its own to another team",
    Property.WASTE: "nobody is preempted for less work",
    Property.STARVATION: "nobody is passed over forever",
    Property.PLACEMENT: "what fits into the quota is admitted",
    Property.TURNS: "equals do not take turns forever",
}
_LOOPS = (Property.LOOPS, Property.TURNS)


def _expected(counterexample: Counterexample, timed: _Timed, story: Story) -> Iterator[JsonObject]:
    match counterexample.breaks:
        case Property.LOOPS | Property.TURNS:
            yield {"settles": True}
        case Property.GUARANTEE | Property.PLACEMENT:
            for key in story.about:
                yield {"workload": key, "admitted": True}
        case Property.NOMINAL_QUOTA | Property.WASTE:
            for key in story.about:
                yield {"workload": key, "preempted": False}
        case Property.STARVATION:
            turn = max(len(timed.holders()), 1)
            for key in story.about:
                yield {"workload": key, "waits": {"below": _minutes(turn * (_ROUNDS - 1))}}


def _as_many(counterexample: Counterexample, played: Replay) -> Iterator[JsonObject]:
    """How many of each shape an order admits, whatever their numbers are."""
    holding = _holding(played)
    for shape in counterexample.shapes:
        namespace, name = (text_at(shape.workload, "metadata", field) for field in ("namespace", "name"))
        count = sum(key.rpartition("-")[0] == f"{namespace}/{name}" for key in holding)
        yield {"workload": f"{namespace}/{name}-?", "count": count, "admitted": True}


def _served(counterexample: Counterexample, played: Replay) -> set[str]:
    """The ClusterQueues of those who run at the end."""
    holding = set(_holding(played))
    arrived = ((it.subject, it.move) for it in played.moves if it.subject in holding)
    return {counterexample.shapes[move.number].cluster_queue for _, move in arrived if move.kind is not MoveKind.END}


@dataclass(frozen=True, slots=True)
class _Timed:
    """Moves with so much time in between that cycles come to rest, in whole minutes.

    Args:
        shapes: What arrives.
        played: What the moves did.
        at: When each of them happens, in minutes.
        gap: The minutes between two of them.
        is_followed: Whether those who run at the end are followed by others like them.
    """

    shapes: Sequence[Shape]
    played: Replay
    at: Mapping[int, int]
    gap: int
    is_followed: bool

    @classmethod
    def of(cls, counterexample: Counterexample, moves: Sequence[Move] | None = None) -> _Timed:
        """Give each move a time: a burst comes with the move after it."""
        played = replay(counterexample, moves=moves)
        longest = max((_seconds(move) for move in played.moves if not move.visits), default=0)
        if _experiments(counterexample):
            # Workloads may also wait while no cycle has anybody to try.
            waits = (then.at - move.at - 2 for move, then in pairwise(played.moves))
            longest = max(longest, _experiments(counterexample).longest_seconds, *waits)
        gap = 1 + 2 * longest // _MINUTE
        at: dict[int, int] = {}
        time = 0
        for n, move in enumerate(played.moves):
            at[n] = time
            time += 0 if move.move.kind is MoveKind.BURST else gap
        return cls(counterexample.shapes, played, at, gap, counterexample.breaks is Property.STARVATION)

    @property
    def last(self) -> int:
        """When the last move happens."""
        return max(self.at.values(), default=0)

    @property
    def until(self) -> str:
        """When a loop has been shown."""
        turns = -(-_TURNS * self.played.seconds_of_turn // _MINUTE)
        return _minutes(self.last + max(_MINUTES_OF_A_LOOP, turns))

    def work(self) -> list[JsonValue]:
        """The workloads that arrive, with how long those run that end."""
        runs = self._run_seconds()
        found: list[JsonValue] = []
        for n, move in enumerate(self.played.moves):
            if move.move.kind not in (MoveKind.ARRIVE, MoveKind.BURST):
                continue
            shape = self.shapes[move.move.number]
            work: JsonObject = {"job": _named(shape, move.subject.rpartition("/")[2])}
            if self.at[n]:
                work["at"] = _minutes(self.at[n])
            if move.subject in runs:
                work["runs"] = _span(runs[move.subject])
            found.append(work)
        return found

    def followers(self) -> Iterator[JsonObject]:
        """Those who follow whoever runs at the end, one after the other, at the instant at which it ends."""
        turn = len(self.holders())
        for n, key in enumerate(self.holders() if self.is_followed else ()):
            shape = self._shape_of(key)
            name = f"{text_at(shape.workload, 'metadata', 'name')}-after-{n}"
            yield {
                "job": _named(shape, name),
                "name": name,
                "count": _ROUNDS,
                "at": _minutes(self.last + self.gap * (n + 1)),
                "every": _minutes(self.gap * turn),
                "runs": _minutes(self.gap * turn),
            }

    def timetable(self) -> JsonObject:
        """The field with the nodes that are lost; nothing if there are none."""
        lost: list[JsonValue] = [
            {"at": _minutes(self.at[n]), "delete": {"kind": "Node", "name": move.subject}}
            for n, move in enumerate(self.played.moves)
            if move.move.kind is MoveKind.LOSE
        ]
        return {"timetable": lost} if lost else {}

    def holders(self) -> tuple[str, ...]:
        """Who runs at the end, in the order in which they got their quota."""
        return _holding(self.played)

    def _shape_of(self, key: str) -> Shape:
        return next(self.shapes[move.move.number] for move in self.played.moves if move.subject == key)

    def _run_seconds(self) -> dict[str, int]:
        """How long each one runs that ends, or is followed by another."""
        began: dict[str, int] = {}
        found: dict[str, int] = {}
        for n, move in enumerate(self.played.moves):
            if move.move.kind is MoveKind.END:
                found[move.subject] = self.at[n] * _MINUTE - began[move.subject]
            # The first cycle of a run is at the time of the move, not a second later.
            first = move.at + 1
            began |= {it.key: self.at[n] * _MINUTE + cycle.at - first for cycle in move.cycles for it in cycle.admitted}
        for n, key in enumerate(self.holders() if self.is_followed else ()):
            found[key] = (self.last + self.gap * (n + 1)) * _MINUTE - began[key]
        return found


def _experiments(counterexample: Counterexample) -> Experiments:
    configuration = counterexample.facts.configuration
    return Experiments() if configuration is None else configuration.experiments


def _seconds(move: ReplayedMove) -> int:
    """How long cycles went on after a move."""
    return move.cycles[-1].at - move.at if move.cycles else 0


def _holding(played: Replay) -> tuple[str, ...]:
    """Who holds quota at the end, in the order in which they got it."""
    holding: dict[str, None] = {}
    for move in played.moves:
        gone = [move.subject] if move.move.kind is MoveKind.END else []
        for key in (*gone, *(it.key for it in move.evicted)):
            holding.pop(key, None)
        for cycle in move.cycles:
            for key in (*(it.key for it in cycle.preempted), *(it.key for it in cycle.evicted)):
                holding.pop(key, None)
            holding |= {it.key: None for it in cycle.admitted}
    return tuple(holding)


def _named(shape: Shape, name: str) -> JsonObject:
    return {**shape.workload, "metadata": {**object_at(shape.workload, "metadata"), "name": name}}


def _start(counterexample: Counterexample, field: str) -> JsonObject:
    now = counterexample.facts.now
    return {field: format_time(now)} if now else {}


def _settings(configuration: Configuration | None) -> JsonObject:
    """The release, what the Configuration says beyond its defaults, and experiments; not the kinds of jobs."""
    if configuration is None:
        return {}
    release = configuration.release
    usual = Configuration(release=release).to_dict()
    own: JsonObject = {name: it for name, it in configuration.to_dict().items() if usual.get(name) != it}
    own.pop("integrations", None)
    named = {} if release == Release.named(DEFAULT_RELEASE) else {"kueue": release.name}
    tried: JsonObject = {"experiments": configuration.experiments.to_dict()} if configuration.experiments else {}
    return {**named, **({"configuration": own} if own else {}), **tried}


def _minutes(number: int) -> str:
    return f"{number}m"


def _span(seconds: int) -> str:
    return f"{seconds // _MINUTE}m" if seconds % _MINUTE == 0 else f"{seconds}s"
