"""Arguments of other types and sizes than their names say: refused by name, at once, and nothing has changed."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from kueuecore import Configuration, Manifest, World, read_manifests, settle, simulate
from kueuecore.api_server import RefusedError
from kueuecore.controller import Controller
from kueuecore.engine import Engine
from kueuecore.errors import ConfigurationError, KueuecoreError, ManifestError
from kueuecore.jobs import (
    JobsConfiguration,
    StartError,
    StopReason,
    fits_workload,
    integration_of,
    pod_group,
    pod_of_leader_worker_set,
    pod_of_stateful_set,
    reclaimable_pods,
    start_job,
    stop_job,
    sync_workloads,
    update_problems,
    workload_name,
    workloads_for,
)
from kueuecore.manifests import to_json_lines
from kueuecore.multikueue import Connect, ConnectionReason, Manager
from kueuecore.objects import AdmissionCheckState, ClusterQueue, Cohort, PodSet, ResourceQuota, from_manifest
from kueuecore.simulation import Happening
from kueuecore.submissions import Submissions
from kueuecore.writes import Answer
from tests.builders import T0, at, snapshot, workload, world

Json = dict[str, Any]
# What is refused; the types would not allow it.
ANY: Any = None
ONE: Any = 1
FIVE: Any = 5
LIST: Any = []
ODD: Any = np.ones(2)
KEY: Any = b"x"
CLASS: Any = Configuration
LONG: Any = 10**5000
HUGE: Any = np.broadcast_to(np.int64(0), 10**8)
KUEUE = "kueue.x-k8s.io/v1beta2"
JOB: Json = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j", "namespace": "ns"}, "spec": {}}
WORKLOAD: Json = json.loads(json.dumps(workload("w").to_manifest()))


def numbered(*cases: tuple[Any, ...]) -> Any:
    return [pytest.param(*case, id=str(number)) for number, case in enumerate(cases)]


def endless() -> Any:
    found: list[Any] = []
    found += [found, found]
    return found


def refused(call: Callable[[], object], match: str, error: type[Exception] = TypeError) -> None:
    """It is refused with these words, quickly and in little memory."""
    tracemalloc.start()
    begin = time.process_time()
    with pytest.raises(error, match=match):
        call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert time.process_time() - begin < 2
    assert peak < 20_000_000


ENGINE: list[tuple[Callable[[Engine, Any], object], Any, str]] = [
    (lambda it, odd: it.apply([], trusted=odd), "no", "^trusted must be a bool, not str"),
    (lambda it, odd: it.apply([], trusted=odd), None, "^trusted must be a bool, not NoneType"),
    (lambda it, odd: it.what_if(ANY, trusted=odd), np.array([1, 2]), "^(trusted|workload) must be a"),
    (lambda it, odd: it.evict("w", namespace="ns", now=T0, stopped=odd), np.ones(2), "^stopped must be a bool"),
    (lambda it, odd: it.forget("w", namespace="ns", now=T0, gone=odd), 1, "^gone must be a bool, not int"),
    (
        lambda it, odd: it.note_readiness("w", namespace="ns", now=T0, are_ready=odd),
        None,
        "^are_ready must be a bool",
    ),
    (
        lambda it, odd: it.apply(odd),
        5,
        "^objects must be a Manifest, a dict or of a class of kueuecore.objects",
    ),
    (lambda it, odd: it.apply(odd), np.array(3), "^objects must be a Manifest, a dict"),
    (lambda it, odd: it.apply(odd), HUGE, r"^objects\[0\] must be a Manifest, a dict .*, not int64"),
    (lambda it, odd: it.apply(odd), range(10**12), r"^objects\[0\] must be a Manifest, a dict"),
    (lambda it, odd: it.apply(odd), ClusterQueue, "^objects must be a Manifest, a dict"),
    (
        lambda it, odd: it.apply(odd),
        Manifest(ANY),
        "^objects must be a Manifest.*not Manifest of a None",
    ),
    (lambda it, odd: it.what_if(odd), ["x"], r"^workload\[0\] must be a Manifest, a dict"),
    (lambda it, odd: it.submit(**ROWS | {"first": odd}), np.array([1, 2]), "^first must be an int, not ndarray"),
    (lambda it, odd: it.submit(**ROWS | {"local_queues": odd}), np.array(3), "^local_queues must be a sequence"),
    (
        lambda it, odd: settle(it, now=T0, max_cycles=odd),
        "9",
        "^max_cycles must be a number of cycles or None, not str",
    ),
]
ROWS: Json = {"namespace": "ns", "local_queues": ["lq"], "queue": [0, 0], "requests": {"cpu": 1}}


@pytest.mark.parametrize(("call", "odd", "match"), numbered(*ENGINE))
def test_an_engine_names_the_argument(call: Callable[[Engine, Any], object], odd: Any, match: str) -> None:
    engine = world(workload("w"))
    engine.cycle(at(1))
    before = snapshot(engine), engine.now
    refused(lambda: call(engine, odd), match)
    assert (snapshot(engine), engine.now) == before


def test_a_flag_of_numpy_is_a_flag() -> None:
    yes: Any = np.True_
    no: Any = np.bool_(False)
    assert Engine(keeps_journal=yes, models_readiness=no).journal()["modelsReadiness"] is False
    for name in ("models_readiness", "keeps_journal"):
        refused(lambda: Engine(**{name: ONE}), f"^{name} must be a bool, not int")  # noqa: B023


def test_columns_beyond_all_sizes_are_refused_before_they_are_copied() -> None:
    refused(lambda: Engine().submit(**ROWS | {"queue": range(10**12)}), "^queue: has more than 10000000", ValueError)
    refused(lambda: Engine().submit(**ROWS | {"count": range(10**12)}), "^count: has more than 10000000", ValueError)
    for name in ("at", "run_seconds"):
        rows = Submissions(**ROWS, **{name: HUGE})
        refused(lambda: simulate([], submissions=[rows], now=T0), f"^{name}: must be a scalar or have", ValueError)  # noqa: B023


def test_half_a_surrogate_pair_in_a_text_is_refused_by_its_place() -> None:
    with pytest.raises(ManifestError) as caught:
        Engine().apply("apiVersion: v1\nkind: \ud800\n")
    (problem,) = caught.value.problems
    assert problem.message == "unpaired surrogate"
    assert (problem.file, problem.line, problem.column, problem.remedy) == ("<string>", 2, 7, "write both halves")


# Controllers.


def controller() -> Controller:
    found = Controller()
    for each in OBJECTS:
        found.observe({"type": "ADDED", "object": each}, now=T0)
    return found


def stored(kind: str, name: str, spec: Json | None = None, *, namespace: str = "", api_version: str = KUEUE) -> Json:
    metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata} | ({} if spec is None else {"spec": spec})


FLAVOR = {"name": "default", "resources": [{"name": "cpu", "nominalQuota": "9"}]}
QUOTA = {"namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [FLAVOR]}]}
OBJECTS = [
    stored("Namespace", "ns", api_version="v1"),
    stored("ResourceFlavor", "default"),
    stored("ClusterQueue", "cq", QUOTA),
    stored("LocalQueue", "lq", {"clusterQueue": "cq"}, namespace="ns"),
    stored("Workload", "w", WORKLOAD["spec"], namespace="ns"),
]
SEEN: Json = {"type": "ADDED", "object": OBJECTS[-1]}


@pytest.mark.parametrize(
    ("call", "match"),
    numbered(
        (lambda it: it.done(None, Answer(), now=T0), "^write must be a Write, not NoneType"),
        (lambda it: it.done(5, Answer(error="refused"), now=T0), "^write must be a Write, not int"),
        (lambda it: it.done(it.open_writes[0], "no", now=T0), "^answer must be an Answer, not str"),
        (lambda it: it.done(it.open_writes[0], Answer(LIST), now=T0), "^answer must be plain data .*, not list"),
        (
            lambda it: it.done(it.open_writes[0], Answer(LIST, "no"), now=T0),
            "^answer must be plain data .*, not list",
        ),
        (lambda it: it.finished([], namespace="ns"), "^name must be a str, not list"),
        (lambda it: it.stopped("w", namespace=None), "^namespace must be a str, not NoneType"),
        (lambda it: it.note_readiness("w", namespace="ns", are_ready=2), "^are_ready must be a bool"),
        (lambda it: it.workload(b"w", namespace="ns"), "^name must be a str, not bytes"),
        (lambda it: it.may_run({}, namespace="ns"), "^name must be a str, not dict"),
        (lambda it: it.watched([]), "^kind must be a str, not list"),
        (lambda it: it.resync([], [], now=T0), "^kind must be a str, not list"),
        (lambda it: it.resync("Cohort", 5, now=T0), "^objects must be a sequence, not int"),
        (lambda it: it.resync("Cohort", [{}, 5], now=T0), r"^objects\[1\] must be plain data .*, not int"),
        (lambda it: it.resync("Cohort", [], now=T0, resource_version=5), "^resource_version must be a str, not int"),
        (lambda it: Controller(considered=FIVE), "^considered must be a function, not int"),
        (lambda it: Controller(metrics=CLASS), "^metrics must be a Metrics, not type"),
        (lambda it: Controller(checks=FIVE), "^checks must be a sequence, not int"),
        (lambda it: Controller(checks=HUGE), "^checks must hold check controllers, not int64"),
        (lambda it: Controller(configuration=FIVE), "^configuration must be a Configuration or None, not int"),
    ),
)
def test_a_controller_names_the_argument(call: Callable[[Any], object], match: str) -> None:
    found = controller()
    (write,) = found.turn(T0).writes
    before = found.save(), found.engine.now
    refused(lambda: call(found), match)
    assert (found.save(), found.engine.now, found.open_writes) == (*before, (write,))


def test_what_a_controller_has_taken_it_can_save() -> None:
    found = Controller()
    labels = {5: "five", "a": "b"}
    cohort = stored("Cohort", "c")
    cohort["metadata"]["labels"] = labels
    found.observe({"type": "ADDED", "object": cohort}, now=T0)
    saved = found.save()
    assert Controller.load(json.loads(json.dumps(saved)), now=T0).save() == saved
    # And it shares nothing with what the controller goes on with.
    cohort["metadata"]["labels"]["a"] = "changed"
    assert saved["objects"][0]["metadata"]["labels"] == {"5": "five", "a": "b"}  # type: ignore[index, call-overload]


# Managers.


def manager() -> tuple[Manager, Any]:
    found = Manager()
    source = {"clusterSource": {"kubeConfig": {"location": "l", "locationType": "Secret"}}}
    found.observe({"type": "ADDED", "object": stored("MultiKueueCluster", "c1", source)}, now=T0)
    found.turn(T0)
    found.connection_failed("c1", ConnectionReason.BAD_KUBE_CONFIG, "bad", now=T0)
    (command,) = [command for command in found.turn(at(1)).commands if not isinstance(command, Connect)]
    return found, command


@pytest.mark.parametrize(
    ("call", "match", "error"),
    numbered(
        (
            lambda it, _: it.observe(None, now=at(2)),
            "^a watch event must be plain data with type and object",
            TypeError,
        ),
        (lambda it, _: it.observe({}, now=at(2)), "type: Required value", ManifestError),
        (
            lambda it, _: it.observe({"type": "NEW", "object": {}}, now=at(2)),
            "^a watch event's type is one of",
            ValueError,
        ),
        (
            lambda it, _: it.observe({"type": "ADDED", "object": 5}, now=at(2)),
            "^the object of the event must be",
            TypeError,
        ),
        (lambda it, _: it.observe(SEEN, now="never"), "'never' is not a time", ValueError),
        (lambda it, _: it.observe(SEEN, now=at(2), cluster=[]), "^cluster must be a str, not list", TypeError),
        (lambda it, _: it.resync("Pods", [], now=at(2)), "^'Pods' is not watched: the kinds are", ValueError),
        (
            lambda it, _: it.resync("Workload", [SEEN["object"], 5], now=at(2)),
            r"^objects\[1\] must be plain data",
            TypeError,
        ),
        (
            lambda it, _: it.resync("Workload", [], now=at(2), resource_version=FIVE),
            "^resource_version must be a str",
            TypeError,
        ),
        (lambda it, _: it.connected(None, now=at(2)), "^cluster must be a str", TypeError),
        (
            lambda it, _: it.connection_failed("c1", "why", "m", now=at(2)),
            "^reason must be a ConnectionReason",
            TypeError,
        ),
        (lambda it, _: it.connection_pending("c1", 5, now=at(2)), "^message must be a str", TypeError),
        (lambda it, _: it.connection_lost(set(), now=at(2)), "^cluster must be a str", TypeError),
        (lambda it, _: it.source_changed(set(), now=at(2)), "^cluster must be a str", TypeError),
        (lambda it, _: it.is_connected(set()), "^cluster must be a str", TypeError),
        (lambda it, _: it.attempts([], namespace="ns"), "^name must be a str", TypeError),
        (
            lambda it, _: it.done(None, Answer(), now=at(2)),
            "^write must be a Write",
            TypeError,
        ),
        (lambda it, command: it.done(command, Answer(LIST), now=at(2)), "^answer must be plain data", TypeError),
        (
            lambda it, command: it.done(command, Answer(FIVE, "no"), now=at(2)),
            "^answer must be plain data",
            TypeError,
        ),
        (lambda it, command: it.done(command, 5, now=at(2)), "^answer must be an Answer", TypeError),
        (
            lambda it, command: it.done(command, Answer(SEEN["object"]), now=at(2)),
            "^answer is about 'Workload ns w'",
            ValueError,
        ),
        (
            lambda it, command: it.done(command, Answer(SEEN["object"], error="refused"), now=at(2)),
            "^answer is about 'Workload ns w'",
            ValueError,
        ),
        (lambda it, _: Manager(configuration=FIVE), "^configuration must be a Configuration", TypeError),
        (lambda it, _: Manager(settings=FIVE), "^settings must be a MultiKueueSettings", TypeError),
        (
            lambda it, _: Manager(dispatcher=FIVE),
            "^dispatcher must be a Dispatcher with a method nominate",
            TypeError,
        ),
        (
            lambda it, _: Manager(overflow=FIVE),
            "^overflow must be an OverflowPolicy with a method look",
            TypeError,
        ),
        (lambda it, _: Manager(adapters={"x": FIVE}), r"^adapters\['x'\] must be an Adapter", TypeError),
        (lambda it, _: Manager(metrics=FIVE), "^metrics must be a Metrics", TypeError),
    ),
)
def test_a_manager_names_the_argument(call: Callable[[Any, Any], object], match: str, error: type[Exception]) -> None:
    found, command = manager()
    refused(lambda: call(found, command), match, error)
    assert found.open_commands == (command,)
    # What was refused was not seen either.
    assert found.observe(SEEN, now=at(3))


# Configurations, jobs, objects, files.


@pytest.mark.parametrize(
    ("call", "match", "error"),
    numbered(
        (lambda: Configuration.parse("", file=ANY), "^file must be a str", TypeError),
        (lambda: Configuration.parse("", feature_gates=FIVE), "^feature_gates must be a mapping, not int", TypeError),
        (lambda: Configuration.parse("", feature_gates={FIVE: True}), "^a key of feature_gates must be", TypeError),
        (lambda: Configuration.parse("", feature_gates={"A": ONE}), r"^feature_gates\['A'\] must be a bool", TypeError),
        (lambda: Configuration.read(ANY), "^path must be the name of a file", TypeError),
        (lambda: Configuration.read("\0"), "cannot be read: embedded null", ConfigurationError),
        (lambda: Configuration.trusted(ANY), "^settings must be a mapping", TypeError),
        (lambda: Configuration.trusted({"a": float("nan")}), "settings are not plain data", ConfigurationError),
        (lambda: Configuration.trusted({"a": endless()}), "settings are not plain data", ConfigurationError),
        (lambda: Configuration.trusted({"\ud800": 1}), "settings are not plain data", ConfigurationError),
        (lambda: Configuration().is_enabled(ANY), "^gate must be a str", TypeError),
        (lambda: read_manifests(ANY), "^sources must be names of files and open streams, not NoneType", TypeError),
        (lambda: read_manifests(CLASS), "^sources must be names of files", TypeError),
        (lambda: read_manifests("\0"), "cannot be read: embedded null", ManifestError),
        (lambda: read_manifests("\ud800"), "cannot be read: .*surrogates", ManifestError),
        (lambda: World.of([], configuration=FIVE), "^configuration must be a Configuration", TypeError),
        (lambda: World.of(HUGE), r"^manifests\[0\] must be a Manifest, a dict", TypeError),
        (lambda: World.of([], trusted=ONE), "^trusted must be a bool", TypeError),
        (lambda: from_manifest({**WORKLOAD, KEY: 1}), "a key is not a string: b'x'", ManifestError),
        (lambda: from_manifest({"kind": endless()}), "an object without apiVersion and kind", ManifestError),
        (lambda: from_manifest({**WORKLOAD, "spec": ODD}), "must be a mapping", ManifestError),
        (lambda: ResourceQuota("cpu", nominal_quota=Decimal("1e999999999")), "at most 309 digits", ValueError),
        (lambda: ResourceQuota("cpu", nominal_quota=Decimal("1e-999999999")), "at most 309 digits", ValueError),
        (lambda: ResourceQuota("cpu", nominal_quota=10**5000), "at most 309 digits", ValueError),
        (lambda: Cohort("c", parent_name=endless()), "Cohort.parent_name must be a string, not", TypeError),
        (lambda: Cohort("c", parent_name=LONG), "Cohort.parent_name must be a string, not a int", TypeError),
        (lambda: AdmissionCheckState("c", state=HUGE), "AdmissionCheckState.state: Unsupported value", ValueError),
        (lambda: settle(FIVE, now=T0), "^engine must be an Engine, not int", TypeError),
        (lambda: simulate([], checks=ODD, now=T0), "^checks must hold check controllers", TypeError),
        (lambda: simulate([], checks=range(10**12), now=T0), "^checks must hold check controllers", TypeError),  # type: ignore[arg-type]
        (lambda: simulate([], [Happening(at=0, op=LONG)], now=T0), "^op must be a str, not int", TypeError),
        (lambda: Controller().resync("x" * 1000, [], now=T0), f"^'{'x' * 252}... is not watched", ValueError),
        (lambda: Manager().resync("x" * 1000, [], now=T0), f"^'{'x' * 252}... is not watched", ValueError),
        (lambda: simulate([], checks=FIVE, now=T0), "^checks must be a sequence", TypeError),
        (lambda: simulate([], now="x" * 10**6), f"^'{'x' * 252}... is not a time", ValueError),
        (lambda: to_json_lines(FIVE), "^manifests must be a sequence", TypeError),
        (lambda: PodSet(template=ODD, requests={"cpu": 1}), "PodSet.template must be a PodTemplate", TypeError),
    ),
)  # fmt: skip
def test_a_function_names_the_argument(call: Callable[[], object], match: str, error: type[Exception]) -> None:
    refused(call, match, error)


LWS: Json = {**JOB, "apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"}
NUMBERED: Json = {"metadata": {"labels": {"leaderworkerset.sigs.k8s.io/group-index": "x"}}}
STATEFUL: Json = {**JOB, "apiVersion": "apps/v1", "kind": "StatefulSet"}


@pytest.mark.parametrize(
    ("call", "match", "error"),
    numbered(
        (lambda odd: workloads_for([], configuration=odd), "^configuration must be a JobsConfiguration", TypeError),
        (lambda odd: workloads_for([], integrations=odd), "^integrations must be a mapping", TypeError),
        (lambda odd: workloads_for(odd), "^manifests must be a sequence", TypeError),
        (lambda odd: workloads_for([JOB, odd]), r"^manifests\[1\] must be a Manifest, a dict", TypeError),
        (
            lambda odd: start_job(JOB, WORKLOAD, flavors={}, configuration=odd),
            "^configuration must be a Jobs",
            TypeError,
        ),
        (lambda odd: start_job(JOB, ANY, flavors={}), 'Workload: Invalid value: "null"', ManifestError),
        (lambda odd: start_job(JOB, endless_workload(), flavors={}), "it is nested too deep", ManifestError),
        (lambda odd: stop_job(JOB, None, reason=odd), "^reason must be a StopReason", TypeError),
        (
            lambda odd: stop_job(JOB, None, reason=StopReason.NOT_ADMITTED, message=odd),
            "^message must be a str",
            TypeError,
        ),
        (
            lambda odd: fits_workload(JOB, WORKLOAD, flavors={}, surroundings=odd),
            "^surroundings must be a Surr",
            TypeError,
        ),
        (lambda odd: reclaimable_pods(JOB, WORKLOAD, configuration=odd), "^configuration must be a Jobs", TypeError),
        (lambda odd: sync_workloads(JOB, odd, now=T0), "^workloads must be a sequence", TypeError),
        (lambda odd: sync_workloads(JOB, HUGE, now=T0), "a int64 is no plain data", ManifestError),
        (lambda odd: sync_workloads(JOB, [], now=T0, around=odd), "^around must be a sequence", TypeError),
        (lambda odd: sync_workloads(JOB, [], now=T0, configuration=odd), "^configuration must be a Jobs", TypeError),
        (lambda odd: update_problems(JOB, ANY), "is no kind of jobs", ManifestError),
        (
            lambda odd: update_problems(JOB, JOB, configuration=odd),
            "^configuration must be a JobsConfiguration",
            TypeError,
        ),
        (lambda odd: integration_of(JOB, integrations=odd), "^integrations must be a mapping", TypeError),
        (lambda odd: pod_group(odd, [{}]), "^name must be a str", TypeError),
        (lambda odd: pod_group("g", odd), "^pods must be a sequence", TypeError),
        (lambda odd: pod_group("g", HUGE), r"items\[0\]: Invalid value: a int64 is no plain data", ManifestError),
        (lambda odd: workload_name(odd, kind="Job", group="batch"), "^owner_name must be a str", TypeError),
        (lambda odd: workload_name("j", kind="Job", group="batch", short=ONE), "^short must be a bool", TypeError),
        (lambda odd: pod_of_stateful_set({}, STATEFUL, odd), "^configuration must be a JobsConfiguration", TypeError),
        (
            lambda odd: pod_of_stateful_set(ANY, STATEFUL, JobsConfiguration()),
            'Pod: Invalid value: "null"',
            ManifestError,
        ),
        (lambda odd: pod_of_stateful_set({}, ANY, JobsConfiguration()), 'Invalid value: "null"', ManifestError),
        (lambda odd: pod_of_leader_worker_set(NUMBERED, LWS, JobsConfiguration()), 'parsing "x"', ManifestError),
    ),
)
def test_a_function_of_jobs_names_the_argument(
    call: Callable[[Any], object], match: str, error: type[Exception]
) -> None:
    refused(lambda: call(5), match, error)


def endless_workload() -> Json:
    return {**WORKLOAD, "spec": {"podSets": endless()}}


class Odd(str):
    """A key that can be put in, and never be compared again."""

    def __eq__(self, other: object) -> bool:
        raise KeyError

    __hash__ = str.__hash__


def test_a_controller_keeps_plain_names() -> None:
    found = controller()
    assert found.note_readiness(Odd("w"), namespace=Odd("ns"), are_ready=True)
    assert found.turn(at(1)) is not None
    assert found.note_readiness("w", namespace="ns", are_ready=False)


def test_every_error_of_kueuecore_is_one() -> None:
    for error in (StartError, RefusedError):
        assert issubclass(error, KueuecoreError)
