"""Jobs: looks at them, what their controllers remember, webhooks, and parents with their variants."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from random import Random
from typing import Any

from kueuecore import Configuration
from kueuecore._json import object_at
from kueuecore.concurrent_admission import reconcile_parent
from kueuecore.controller import Controller, JobController, Metrics
from kueuecore.engine import Engine
from kueuecore.errors import KueuecoreError
from kueuecore.jobs import INTEGRATIONS, JobsConfiguration, pod_group, reconcile_job, requests_of, workloads_for
from kueuecore.objects import Namespace
from kueuecore.simulation import JobPlan, VirtualCluster
from kueuecore.webhooks import admit
from kueuecore.writes import Answer, Verb, Write
from tests.attack.case import Case, Wrong, size_of
from tests.attack.documents import FULL_WORKLOAD, KINDS, NOW, WORKLOAD, condition
from tests.attack.doors.calls import Call, case_of
from tests.attack.values import Hostile, damaged
from tests.builders import T0, at, cluster_queue, flavor, local_queue, snapshot
from tests.jobs import ALL_KINDS, job

__all__ = ["draw"]

_ALL = JobsConfiguration(
    frameworks=[integration.framework for integration in INTEGRATIONS.values()],
    feature_gates={"SparkApplicationIntegration": True},
)
_GATES = Configuration.trusted({}, feature_gates={"ConcurrentAdmission": True})
_AROUND = [
    json.loads(json.dumps(entry.to_manifest())) for entry in (Namespace("ns"), flavor(), cluster_queue(), local_queue())
]
_PARENT_LABEL = "kueue.x-k8s.io/concurrent-admission-parent"
_ANSWERS = (KueuecoreError, TypeError, ValueError, Hostile)


def draw(rng: Random) -> Case:
    """A wrong call, or a wrong history of jobs."""
    if rng.random() < 0.3:
        return _history(rng)
    call = rng.choice([_look, _look, _requests, _controller, _webhook, _family, _metrics, _cluster])(rng)
    return case_of(rng, call, parts=(*KINDS, WORKLOAD, FULL_WORKLOAD))


def _stored(plain: dict[str, Any], version: str = "1", **metadata: Any) -> dict[str, Any]:
    """A job as an API server holds it, in the namespace of the queues."""
    name = plain["metadata"]["name"]
    given = {"namespace": "ns", "uid": f"uid-{name}", "creationTimestamp": NOW, "resourceVersion": version, **metadata}
    return {**plain, "metadata": {**plain["metadata"], **given}}


def _job(rng: Random, name: str = "j") -> dict[str, Any]:
    """A job of any kind; of pods now and then a group."""
    kind = rng.choice(["Job", "Job", *sorted(ALL_KINDS)])
    return _stored(job(kind, name))


def _admitted(workload: dict[str, Any], *kinds: str) -> dict[str, Any]:
    assigned = [
        {"name": pod_set["name"], "flavors": {"cpu": "default"}, "count": 1} for pod_set in workload["spec"]["podSets"]
    ]
    status = {
        "conditions": [condition(kind) for kind in kinds],
        "admission": {"clusterQueue": "cq", "podSetAssignments": assigned},
    }
    return {**workload, "status": status}


def _with_workload(rng: Random) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A job, and its Workload in some state."""
    made = _job(rng)
    group = made["kind"] == "Pod" and rng.random() < 0.5
    if group:
        made["metadata"]["labels"]["kueue.x-k8s.io/pod-group-name"] = "g"
        made["metadata"]["annotations"] = {"kueue.x-k8s.io/pod-group-total-count": "1"}
    result = workloads_for([made, *_AROUND], configuration=_ALL)
    workloads = [json.loads(json.dumps(workload.object)) for workload in result.workloads]
    states = [
        (), ("QuotaReserved",), ("QuotaReserved", "Admitted"), ("QuotaReserved", "Admitted", "Evicted"), ("Evicted",),
        ("Finished",),
    ]  # fmt: skip
    workloads = [_stored(_admitted(workload, *rng.choice(states))) for workload in workloads]
    return (json.loads(json.dumps(pod_group("g", [made]))) if group else made), workloads


def _unchanged(function: Callable[..., Any]) -> Callable[..., Any]:
    """The call, which may not change its arguments."""

    def called(**given: Any) -> Any:
        before = _text(given)
        try:
            return function(**given)
        finally:
            if before is not None and _text(given) != before:
                raise Wrong("it has changed an argument")

    return called


def _text(given: dict[str, Any]) -> str | None:
    try:
        return json.dumps(given, default=lambda entry: type(entry).__name__)
    except (ValueError, TypeError, RecursionError, Hostile):
        return None


def _look(rng: Random) -> Call:
    made, workloads = _with_workload(rng)

    def look(**given: Any) -> object:
        return reconcile_job(given.pop("job"), given.pop("workloads"), **given)

    given = {
        "job": made,
        "workloads": workloads,
        "now": at(2),
        "around": _AROUND,
        "configuration": _ALL,
        "integrations": INTEGRATIONS,
        "gone": False,
    }

    def then(found: Any) -> None:
        stored = {workload["metadata"]["name"]: workload for workload in [made, *workloads]}
        requests_of(found.writes, lambda ref: stored.get(ref.name))

    return Call("reconcile_job", _unchanged(look), given, then=then, others=("Workload",))


def _requests(rng: Random) -> Call:
    made = _job(rng)
    given = {"writes": [Write(Verb.UPDATE, {**made, "spec": {**made["spec"], "suspend": True}})]}
    return Call("requests_of", lambda writes: requests_of(writes, lambda _: made), given)


def _watching() -> JobController:
    metrics = Metrics()
    jobs = JobController(Controller(metrics=metrics), configuration=_ALL, metrics=metrics)
    for number, row in enumerate(_AROUND, start=1):
        jobs.observe(
            {"type": "ADDED", "object": _stored(row, str(number), namespace=row["metadata"].get("namespace", ""))},
            now=at(1),
        )
    jobs.observe({"type": "ADDED", "object": _stored(job("Job"), "9")}, now=at(1))
    return jobs


def _controller(rng: Random) -> Call:
    name = rng.choice(["JobController", "observe", "observe", "resync", "take_due", "done", "next_wake"])
    jobs = _watching()
    if name == "JobController":
        given: dict[str, Any] = {
            "loop": Controller(),
            "configuration": _ALL,
            "integrations": INTEGRATIONS,
            "metrics": Metrics(),
        }

        def made(**given: Any) -> JobController:
            return JobController(given.pop("loop"), **given)

        return Call("JobController", made, given, then=lambda entry: _goes_on(entry, at(3)))
    match name:
        case "observe":
            given = {"event": {"type": "ADDED", "object": _stored(_job(rng), "99")}, "now": at(2)}
        case "resync":
            given = {"kind": "Job", "objects": [_stored(job("Job", "k"), "98")], "now": at(2), "resource_version": "99"}
        case "take_due" | "next_wake":
            given = {"now": at(2)}
        case "done":
            answer = rng.choice([Answer(), Answer(error="refused")])
            given = {"job": jobs.take_due(at(2))[0].job, "answer": answer, "now": at(2)}
    return Call(
        f"JobController.{name}",
        getattr(jobs, name),
        given,
        lambda: _state(jobs),
        lambda _: _goes_on(jobs, at(4)),
        others=("kinds", "list", "objects"),
    )


def _state(jobs: JobController) -> object:
    inside = (jobs._due, jobs._failures, jobs._open, jobs._gone, jobs._waiting, list(jobs._store))
    return json.dumps(jobs._loop.save(), sort_keys=True), snapshot(jobs._loop.engine), copy.deepcopy(inside)


def _goes_on(jobs: JobController, now: int) -> None:
    for work in jobs.take_due(now):
        jobs.done(work.job, Answer(), now=now)
    jobs.next_wake(now)


def _webhook(rng: Random) -> Call:
    made = rng.choice([_job(rng), _job(rng), *KINDS])
    settings = Configuration.trusted(
        {"integrations": {"frameworks": sorted({integration.framework for integration in INTEGRATIONS.values()})}}
    )
    given: dict[str, Any] = {
        "new": made,
        "around": _AROUND,
        "configuration": settings,
        "integrations": INTEGRATIONS,
    }
    if rng.random() < 0.5:
        given["old"] = copy.deepcopy(made)

    def admitted(**given: Any) -> object:
        return admit(given.pop("new"), **given)

    return Call("admit", _unchanged(admitted), given, others=("spec", "metadata", "manifest"))


def _family(rng: Random) -> Call:
    label = {_PARENT_LABEL: "true"}
    parent = _stored({**FULL_WORKLOAD, "metadata": {**FULL_WORKLOAD["metadata"], "labels": label}}, "5")
    queue = copy.deepcopy(_AROUND[2])
    queue["spec"]["concurrentAdmissionPolicy"] = {
        "migration": {"mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "default"}}
    }
    variants = [
        json.loads(json.dumps(create))
        for create in reconcile_parent(parent, [], queue, now=at(1), configuration=_GATES).creates
    ]
    kinds = rng.choice([(), ("QuotaReserved", "Admitted"), ("Evicted", "QuotaReserved"), ("BlockedOnPreemptionGates",)])
    variants = [_admitted(variant, *kinds) for variant in variants]

    def look(**given: Any) -> object:
        return reconcile_parent(given.pop("parent"), given.pop("variants"), given.pop("cluster_queue"), **given)

    given = {"parent": parent, "variants": variants, "cluster_queue": queue, "now": at(2), "configuration": _GATES}
    return Call("reconcile_parent", _unchanged(look), given)


def _metrics(rng: Random) -> Call:
    metrics = Metrics()
    workload = _stored(FULL_WORKLOAD)

    def created(**given: Any) -> None:
        metrics.workload_created(**given)

    given: dict[str, Any] = {"job": _job(rng), "workload": workload}
    name = "workload_created"
    if rng.random() < 0.5:
        name, given = "gate_removed", {
            "gate": "kueue.x-k8s.io/admission", "workload": workload, "now": at(2), "is_group": False,
        }  # fmt: skip
    engine = Engine()
    return Call(
        f"Metrics.{name}",
        _unchanged(getattr(metrics, name)),
        given,
        lambda: metrics.text(engine),
        lambda _: metrics.text(engine),
        others=("creationTimestamp", "lastTransitionTime"),
    )


def _cluster(rng: Random) -> Call:
    cluster = VirtualCluster(_AROUND, now=T0)
    made = {**job("Job", "a"), "metadata": {**job("Job", "a")["metadata"], "namespace": "ns"}}
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    cluster.submit(made, JobPlan(run_seconds=50))
    if rng.random() < 0.5:
        cluster.advance(T0 + 5 * 10**9)
    if rng.random() < 0.7:
        changed = copy.deepcopy(made)
        changed["spec"] |= {"parallelism": 2, "completions": 2}
        given: dict[str, Any] = {"job": changed, "run_seconds": 5, "now": at(9)}
        function: Callable[..., Any] = cluster.update
    else:
        given = {"kind": "Job", "name": "a", "namespace": "ns", "now": at(9)}
        function = cluster.delete

    def called(**given: Any) -> object:
        first = given.pop(next(iter(given)))
        if "name" in given:
            return function(first, given.pop("name"), **given)
        return function(first, **given)

    return Call(
        f"VirtualCluster.{function.__name__}",
        _unchanged(called),
        given,
        # Its time may have gone on.
        lambda: (cluster.run().steps, cluster.engine.workloads(), [cluster.object("Job", "a", namespace="ns")]),
        lambda _: cluster.advance(at(100)),
        others=("manifest", "spec", "run_seconds"),
    )


def _history(rng: Random) -> Case:
    """Whatever watches and answers say, in any order, the controllers of jobs go on."""
    jobs = _watching()
    made = [_with_workload(rng) for _ in range(2)]
    objects = [item for one, workloads in made for item in ([*one["items"]] if "items" in one else [one]) + workloads]
    damages = [damaged(rng, object_, parts=KINDS) for object_ in (*objects, *_AROUND)]
    rng.shuffle(damages)
    steps = [(damage, rng.choice(["ADDED", "MODIFIED", "DELETED", "list"]), rng.random()) for damage in damages]

    def act() -> None:
        keys: list[Any] = []
        for number, (damage, kind, chance) in enumerate(steps):
            now = at(2 + number)
            for each in ("ADDED", kind):
                try:
                    if each == "list":
                        jobs.resync(
                            rng.choice(list(jobs.kinds)), [damage.value], now=now, resource_version=str(200 + number)
                        )
                    else:
                        jobs.observe({"type": each, "object": damage.value}, now=now)
                except _ANSWERS:
                    continue
            for work in jobs.take_due(now):
                keys.append(work.job)
                if chance < 0.4:
                    for request in work.requests:
                        if request.verb == "create":
                            given: Any = {"uid": f"m{number}", "resourceVersion": str(300 + number)}
                            metadata = {**object_at(request.manifest, "metadata"), **given}
                            answer = {**request.manifest, "metadata": metadata}
                            try:
                                jobs.observe({"type": "ADDED", "object": answer}, now=now)
                            except _ANSWERS:
                                continue
                    jobs.done(work.job, Answer(), now=now)
                elif chance < 0.7:
                    jobs.done(work.job, Answer(error="refused"), now=now)
            if keys:
                # Twice, and late.
                jobs.done(rng.choice(keys), Answer(), now=now)
                jobs.done(rng.choice(keys), Answer(error="refused"), now=now)
            for write in jobs._loop.turn(now).writes:
                jobs._loop.done(write, Answer(), now=now)
            jobs.next_wake(now)

    reported = " | ".join(f"{kind} {step.what}" for step, kind, _ in steps)
    return Case(f"history of jobs: {reported}", act, sum(size_of(damage.value) for damage in damages), seconds=6)
