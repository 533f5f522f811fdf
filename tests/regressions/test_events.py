"""Events and arguments of virtual time of which a part was ignored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kueuecore import Configuration, KueuecoreError, simulate
from kueuecore.errors import ConfigurationError
from kueuecore.fleet import NodeSettings
from kueuecore.simulation import VirtualCluster
from kueuecore.submissions import Submissions
from tests.unit.test_simulation import NOW, QUEUES, workload

WAITING = Configuration.parse(
    "{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration, waitForPodsReady: {timeout: 5m}}"
)


def stepped(event: Any, configuration: Configuration | None) -> None:
    VirtualCluster(QUEUES, now=NOW, configuration=configuration).schedule([event])


def ran(event: Any, configuration: Configuration | None) -> None:
    simulate(QUEUES, [event], now=NOW, configuration=configuration)


@pytest.mark.parametrize("run", [ran, stepped])
@pytest.mark.parametrize("configuration", [None, WAITING], ids=["", "waits"])
@pytest.mark.parametrize(
    "wrong",
    [
        # A letter is missing, and the job ran forever.
        {"runSecond": 5},
        # Nobody waits for pods, or they are ready at once: what they do later was not looked at.
        {"failSeconds": -1},
        {"failSeconds": "soon"},
        {"recoverSeconds": []},
        {"readySeconds": ["soon"]},
        {"readySeconds": 5},
        {"readySeconds": {}},
        # It is created, and ends?
        {"key": "ns/a"},
        {"key": ""},
        {"key": 5},
    ],
    ids=str,
)
def test_an_event_of_which_a_part_is_wrong_is_refused(
    run: Callable[..., None], configuration: Configuration | None, wrong: dict[str, Any]
) -> None:
    event = {"at": 0, "op": "create", "object": workload("a"), "runSeconds": 5}
    run(event, configuration)
    with pytest.raises((KueuecoreError, TypeError, ValueError)):
        run({**event, **wrong}, configuration)


@pytest.mark.parametrize("event", [5, None, "create", [], ()], ids=str)
def test_what_is_no_event_is_refused(event: Any) -> None:
    for run in (ran, stepped):
        with pytest.raises(TypeError, match="an event must be a Happening or a dict"):
            run(event, None)


@pytest.mark.parametrize("submissions", [[5], ["ns"], [None]])
def test_what_is_no_submission_is_refused(submissions: Any) -> None:
    with pytest.raises(TypeError, match="submissions must hold Submissions"):
        simulate(QUEUES, submissions=submissions, now=NOW)


def test_submissions_have_a_namespace() -> None:
    rows = Submissions(namespace="", local_queues=["lq"], queue=[0], requests={"cpu": 1000})
    with pytest.raises(ValueError, match="namespace: '': a lowercase RFC 1123 label"):
        simulate(QUEUES, submissions=[rows], now=NOW)


@pytest.mark.parametrize("interval", ["", "0s", "1ns", "999ms"])
def test_samples_that_a_run_could_never_take_are_refused(interval: str) -> None:
    # The run took one after the other, and time went on by a nanosecond each, or not at all.
    sharing = {"usageSamplingInterval": interval} if interval else {}
    configuration = Configuration.trusted({"admissionFairSharing": sharing})
    for make in (
        lambda: simulate(QUEUES, now=NOW, configuration=configuration),
        lambda: VirtualCluster(QUEUES, now=NOW, configuration=configuration),
        lambda: NodeSettings(configuration=configuration),
    ):
        with pytest.raises(ConfigurationError) as error:
            make()
        assert error.value.field == "admissionFairSharing.usageSamplingInterval"
