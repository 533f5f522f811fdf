"""The release of Kueue that decides in what Python makes: of the Configuration, or of `release`."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from kueuecore import Configuration, Engine, VirtualCluster, World, simulate
from kueuecore.configuration import configuration_for
from kueuecore.controller import Controller
from kueuecore.fleet import Fleet, NodeSettings
from kueuecore.multikueue import MANAGER
from kueuecore.policy_tests.asking import Kueue
from kueuecore.releases import DEFAULT_RELEASE, Release, UnknownReleaseError
from kueuecore.saved_engine import configuration_of
from tests.builders import T0

OLDER = Configuration(release="0.17")
# Kueue before 0.19 does not copy this annotation: its gate is off.
GATED = "kueue.x-k8s.io/admission-gated-by"
JOB: Any = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "gated",
        "namespace": "team",
        "labels": {"kueue.x-k8s.io/queue-name": "lq"},
        "annotations": {GATED: "example.com/a"},
    },
    "spec": {
        "template": {
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}
        }
    },
}


def asked(configuration: Configuration) -> Engine:
    kueue = Kueue()
    kueue.load(configuration=configuration)
    return kueue.cluster.engine


def of_fleet(configuration: Configuration) -> Engine:
    fleet = Fleet([], now=T0, nodes={MANAGER: NodeSettings(configuration=configuration)})
    return fleet.nodes[MANAGER].controller.engine


@pytest.mark.parametrize(
    "make",
    [
        Engine,
        lambda it: Engine(it).fork(),
        lambda it: VirtualCluster(configuration=it, now=T0).engine,
        lambda it: simulate([], configuration=it, now=T0).engine,
        lambda it: pickle.loads(pickle.dumps(simulate([], configuration=it, now=T0))).engine,
        lambda it: Controller(it).engine,
        asked,
        of_fleet,
    ],
    ids=["Engine", "fork", "VirtualCluster", "simulate", "pickled run", "Controller", "Kueue", "Fleet"],
)
def test_a_configuration_brings_its_release(make: Callable[[Configuration], Engine]) -> None:
    assert make(OLDER).configuration.release.name == "0.17.8"
    assert make(Configuration()).configuration.release.name == DEFAULT_RELEASE


def test_a_release_is_enough() -> None:
    assert Engine(release="0.17").configuration.release.name == "0.17.8"
    assert VirtualCluster(release="v0.16.3", now=T0).engine.configuration.release.name == "0.16.3"
    assert Engine(OLDER, release="0.17").configuration is OLDER


@pytest.mark.parametrize(
    "make",
    [
        lambda **given: Engine(**given),
        lambda **given: VirtualCluster(now=T0, **given),
        lambda **given: World.of([], **given),
    ],
    ids=["Engine", "VirtualCluster", "World"],
)
def test_two_releases_are_refused(make: Callable[..., object]) -> None:
    with pytest.raises(ValueError, match=r"^release is 0\.18\.6, and the Configuration is for 0\.17\.8$"):
        make(configuration=OLDER, release="0.18")
    with pytest.raises(UnknownReleaseError, match=r"does not know the release 0\.15 of Kueue: write 0\.16\.9"):
        make(release="0.15")
    with pytest.raises(TypeError, match=r"^release must be"):
        make(release=0.17)


def test_a_world_has_the_workloads_that_the_release_makes() -> None:
    def annotations(world: World) -> Any:
        (made,) = world.made
        return made.object["metadata"].get("annotations", {})  # type: ignore[union-attr]

    assert annotations(World.of([JOB])) == annotations(World.of([JOB], release="0.19")) == {GATED: "example.com/a"}
    assert annotations(World.of([JOB], release="0.18")) == {}
    assert annotations(World.of([JOB], configuration=OLDER)) == {}
    # As in a new installation, whichever the release.
    pod = {**JOB, "apiVersion": "v1", "kind": "Pod", "spec": JOB["spec"]["template"]["spec"]}
    assert len(World.of([pod], release="0.18").made) == len(World.of([pod]).made) == 1


def test_neither_is_none() -> None:
    assert configuration_for(None, None) is None
    assert configuration_for(None, Release.named("0.19.1")) is not None


@pytest.mark.parametrize("is_journal", [False, True], ids=["save", "journal"])
def test_a_saved_engine_has_its_release(is_journal: bool) -> None:
    engine = Engine(OLDER, keeps_journal=True)
    saved: Any = json.loads(json.dumps(engine.journal())) if is_journal else engine.save()
    load: Callable[..., Engine] = Engine.replay if is_journal else Engine.load
    assert configuration_of(saved).release == OLDER.release
    for loaded in (load(saved), load(saved, configuration=Configuration(release="0.17.8"))):
        assert loaded.configuration.release == OLDER.release
        # What decides is the engine in Rust: it has the release in its own save.
        assert loaded.save() == engine.save()
    with pytest.raises(
        ValueError, match=r"^the saved engine decides as Kueue v0\.17\.8, and this Configuration as Kueue v0\.18\.6$"
    ):
        load(saved, configuration=Configuration(release="0.18"))


def test_a_configuration_of_a_saved_engine_keeps_gates_that_only_its_release_has() -> None:
    text = "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, featureGates: {LendingLimit: true}}"
    configuration = Configuration.parse(text, release="0.17")
    saved = Engine(configuration).save()
    assert Engine.load(saved, configuration=configuration_of(saved)).configuration.release.name == "0.17.8"
