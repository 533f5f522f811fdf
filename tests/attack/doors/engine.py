"""Calls of `Engine`, `simulate`, `World`, `jobs` and the objects' classes."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import json
from collections.abc import Callable
from random import Random
from typing import Any

import kueuecore.objects
from kueuecore import Configuration, Engine, World, jobs, settle, simulate
from kueuecore.manifests import parse_manifests, to_json_lines
from kueuecore.simulation import Happening, JobPlan, Operation
from kueuecore.submissions import Submissions
from tests.attack.case import Case, Wrong
from tests.attack.documents import CONFIGURATION, FULL_WORKLOAD, JOBS, KINDS, WORKLOAD
from tests.attack.doors.calls import Call, case_of
from tests.attack.values import Hostile
from tests.builders import T0, at, cluster_queue, flavor, local_queue, snapshot, workload

__all__ = ["draw", "engine_state", "replays"]

_CALLS: dict[str, dict[str, Any]] = {
    "apply": {"objects": [WORKLOAD], "now": at(2), "trusted": False},
    "delete": {"kind": "Workload", "name": "w", "namespace": "ns", "now": at(2)},
    "cycle": {"now": at(2)},
    "what_if": {"workload": WORKLOAD, "now": at(2), "trusted": False},
    "reconcile": {"now": at(2)},
    "next_wake": {"since": at(2)},
    "finish": {"name": "w", "namespace": "ns", "now": at(2), "reason": "R", "message": "m"},
    "evict": {"name": "w", "namespace": "ns", "now": at(2), "reason": "R", "message": "m", "stopped": True},
    "release": {"name": "w", "namespace": "ns", "now": at(2)},
    "note_readiness": {"name": "w", "namespace": "ns", "now": at(2), "are_ready": True},
    "confirm": {"name": "w", "namespace": "ns"},
    "forget": {"name": "w", "namespace": "ns", "now": at(2), "gone": False},
    "workload": {"name": "w", "namespace": "ns"},
    "pending": {"cluster_queue": "cq"},
    "cluster_queue": {"name": "cq"},
    "local_queue": {"name": "lq", "namespace": "ns"},
}
_PARTS = (*KINDS, *JOBS)
_FLAVOR = next(kind for kind in KINDS if kind["kind"] == "ResourceFlavor")
_REASON = jobs.StopReason.NOT_ADMITTED
_CLASSES = [
    made
    for name in kueuecore.objects.__all__
    if inspect.isclass(made := getattr(kueuecore.objects, name)) and dataclasses.is_dataclass(made)
]


def draw(rng: Random) -> Case:
    """A call with wrong arguments: of an engine, mostly."""
    makers: list[tuple[float, Callable[[Random], Call]]] = [
        (0.35, _apply), (0.65, _engine_call), (0.70, _loaded), (0.78, _simulated), (0.84, _texts), (0.9, _world),
        (0.96, _jobs), (1, _classes),
    ]  # fmt: skip
    what = rng.random()
    return case_of(rng, next(make for share, make in makers if what <= share)(rng), parts=_PARTS)


def _engine() -> Engine:
    """One that holds a workload with quota and one that waits, and writes down what it does."""
    engine = Engine(keeps_journal=True)
    engine.apply([kueuecore.objects.Namespace("ns"), flavor(), cluster_queue(), local_queue()], now=T0)
    engine.apply([workload("w"), workload("b", 20, created=1)], now=T0)
    engine.take_written()
    engine.cycle(at(1))
    return engine


def engine_state(engine: Engine) -> Callable[[], object]:
    """What distinguishes one engine from another."""
    return lambda: (engine.save(), engine.journal(), snapshot(engine), engine.workload_keys(), engine.names())


def replays(engine: Engine) -> None:
    """An engine that is loaded, or made by its journal, is the same, and all go on."""
    loaded, replayed = Engine.load(engine.save()), Engine.replay(json.loads(json.dumps(engine.journal())))
    later = max(engine.now, at(3))
    others = {"save and load": loaded, "replay": replayed}
    for how, other in others.items():
        if repr(snapshot(other)) != repr(snapshot(engine)) or other.save() != engine.save():
            raise Wrong(f"another engine after {how}")
    decided = repr(engine.cycle(later))
    for how, other in others.items():
        if repr(other.cycle(later)) != decided or other.save() != engine.save():
            raise Wrong(f"another decision after {how}")


def _apply(rng: Random) -> Call:
    engine = _engine()
    given = {"objects": rng.sample(KINDS, rng.choice([1, 1, 3])), "now": at(2), "trusted": rng.random() < 0.3}
    return Call("Engine.apply", engine.apply, given, engine_state(engine), lambda _: replays(engine))


def _engine_call(rng: Random) -> Call:
    engine, name = _engine(), rng.choice(sorted(_CALLS))
    return Call(f"Engine.{name}", getattr(engine, name), _CALLS[name], engine_state(engine), lambda _: replays(engine))


def _loaded(rng: Random) -> Call:
    if rng.random() < 0.5:
        gates = {"models_readiness": False, "keeps_journal": False}
        return Call("Engine", Engine, {"configuration": Configuration(), **gates})
    engine = _engine()
    return Call("settle", settle, {"engine": engine, "now": at(2), "max_cycles": 5}, engine_state(engine))


def _simulated(rng: Random) -> Call:
    objects = [
        entry.to_manifest() for entry in (kueuecore.objects.Namespace("ns"), flavor(), cluster_queue(), local_queue())
    ]
    create = {"at": 1, "op": "create", "object": copy.deepcopy(WORKLOAD), "runSeconds": 3}
    what = rng.random()
    if what < 0.4:
        rows = [Submissions(namespace="ns", local_queues=["lq"], queue=[0], requests={"cpu": 1000})]
        given = {
            "objects": objects,
            "events": [create],
            "submissions": rows,
            "configuration": None,
            "now": T0,
            "trusted": False,
            "cycle_seconds": 1.0,
            "max_cycles": 20,
            "eviction_seconds": 1.0,
            "messages": True,
            "checks": (),
        }
        return Call("simulate", simulate, given, seconds=10)
    if what < 0.7:
        given = {
            "namespace": "ns",
            "local_queues": ["lq"],
            "queue": [0, 0],
            "requests": {"cpu": 1},
            "count": 1,
            "priority": 0,
            "at": 0,
            "run_seconds": 5,
            "prefix": "workload-",
            "first": 0,
        }

        def submitted(**columns: Any) -> object:
            return simulate(objects, submissions=[Submissions(**columns)], now=T0, max_cycles=10)

        return Call("Submissions", submitted, given, seconds=10)
    given = {
        "at": 0,
        "op": Operation.CREATE,
        "object": copy.deepcopy(WORKLOAD),
        "key": None,
        "run_seconds": 1,
        "ready_seconds": [1],
        "fail_seconds": 1,
        "recover_seconds": 1,
    }

    def happened(**fields: Any) -> object:
        plan = {name: fields.pop(name) for name in [*fields] if name.endswith("_seconds")}
        return simulate(objects, [Happening(**fields, plan=JobPlan(**plan))], now=T0, max_cycles=10)

    return Call("Happening", happened, given, seconds=10)


def _texts(rng: Random) -> Call:
    one = copy.deepcopy(rng.choice(_PARTS))
    settings = copy.deepcopy(CONFIGURATION)
    return rng.choice(
        [
            Call("parse_manifests", parse_manifests, {"text": json.dumps(one), "file": "x.json"}),
            Call("to_json_lines", to_json_lines, {"manifests": [one]}),
            Call("from_manifest", _there_and_back, {"manifest": copy.deepcopy(rng.choice(KINDS))}),
            Call("Configuration.parse", Configuration.parse, {"text": json.dumps(settings), "file": "x"}),
            Call("Configuration", lambda settings: Configuration.parse(_json(settings)), {"settings": settings}),
            Call("Configuration.trusted", Configuration.trusted, {"settings": settings}),
        ]
    )


def _json(value: Any) -> str:
    try:
        return json.dumps(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise Hostile from error


def _there_and_back(manifest: Any) -> None:
    made = kueuecore.objects.from_manifest(manifest)
    Engine().apply(made.to_manifest())
    if not repr(made) or made != made:
        raise Wrong("an object that is not itself")


def _world(rng: Random) -> Call:
    engine = _engine()

    def of(manifests: Any, now: Any) -> None:
        World.of(manifests).apply_to(engine, now=now)

    given = {"manifests": [copy.deepcopy(part) for part in rng.sample(_PARTS, 2)], "now": at(2)}
    return Call("World", of, given, engine_state(engine), lambda _: replays(engine))


def _jobs(rng: Random) -> Call:
    job, flavors = copy.deepcopy(rng.choice(JOBS)), {"default": _FLAVOR}
    held = copy.deepcopy(FULL_WORKLOAD)
    return rng.choice(
        [
            Call("workloads_for", jobs.workloads_for, {"manifests": [job]}),
            Call("start_job", jobs.start_job, {"job": job, "workload": held, "flavors": flavors}),
            Call(
                "stop_job",
                jobs.stop_job,
                {"job": job, "workload": held, "message": "m", "reason": _REASON},
            ),
            Call("fits_workload", jobs.fits_workload, {"job": job, "workload": held, "flavors": flavors}),
            Call("reclaimable_pods", jobs.reclaimable_pods, {"job": job, "workload": held}),
            Call("sync_workloads", jobs.sync_workloads, {"job": job, "workloads": [held], "now": at(1), "around": []}),
            Call("update_problems", jobs.update_problems, {"old": job, "new": copy.deepcopy(job)}, others=("object",)),
        ]
    )


def _classes(rng: Random) -> Call:
    made = rng.choice(_CLASSES)
    while (given := _fields_of(made, rng)) is None:
        made = rng.choice(_CLASSES)

    def build(**fields: Any) -> None:
        value = made(**fields)
        if hasattr(value, "to_manifest"):
            Engine().apply(value.to_manifest())

    return Call(made.__name__, build, given)


def _fields_of(made: type, rng: Random) -> dict[str, Any] | None:
    """What an object of a class can be made of; None if that needs more than chance."""
    given: dict[str, Any] = {}
    for field in dataclasses.fields(made):
        if field.init and (field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING):
            given[field.name] = {} if "Mapping" in str(field.type) else () if "Sequence" in str(field.type) else "x"
        elif field.init and rng.random() < 0.3:
            has_default = field.default is not dataclasses.MISSING
            made_default: Any = field.default_factory
            given[field.name] = field.default if has_default else made_default()
    try:
        made(**given)
    except (TypeError, ValueError):
        return None
    return given
