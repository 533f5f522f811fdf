"""Checks without a condition Active keep ClusterQueues inactive, unless they are assumed to be active."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode
from kueuecore.engine import Engine
from tests.command import JOB, PROVISIONING, QUEUED, QUEUES, Ran

OPTION = "--assume-checks-active"
CHECKS = "admissionChecksStrategy: {admissionChecks: [{name: dws}, {name: budget}]}"
CHECKED = QUEUES.replace("namespaceSelector: {}", f"namespaceSelector: {{}}\n  {CHECKS}")
NAMESPACE = "\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n"
CHECK = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: budget}
spec: {controllerName: example.com/budget}
"""
INACTIVE = """
status:
  conditions: [{type: Active, status: "False", message: no money, lastTransitionTime: "2026-01-01T00:00:00Z"}]
"""
NOTE = "note: these AdmissionChecks have no condition Active: budget; see --assume-checks-active\n"
OBJECTS = CHECKED + PROVISIONING + QUEUED + CHECK


@pytest.fixture
def ran(any_command: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs a command beside these objects in the file `in.yaml`."""
    return partial(any_command, text=OBJECTS)


def test_a_run_takes_checks_as_active_if_it_is_told_to(ran: Callable[..., Ran]) -> None:
    text = OBJECTS + JOB % ("a", 1)
    without = ran("run", "in.yaml", text=text)
    assert "1 Pending" in without.out
    assert NOTE in without.err
    told = ran("run", "in.yaml", OPTION, text=text)
    assert "1 QuotaReserved" in told.out
    assert "AdmissionChecks" not in told.err
    assert "1 QuotaReserved" in ran("run", "in.yaml", OPTION, "--trusted", text=text + NAMESPACE).out


def test_check_says_which_checks_keep_which_cluster_queues_inactive(ran: Callable[..., Ran]) -> None:
    code, out, _ = ran("check", "in.yaml")
    assert (code, out) == (
        ExitCode.OK,
        'in.yaml:37 (document 6): note KC415 inactive-check: AdmissionCheck "budget": spec.controllerName: '
        "it has no condition Active, which keeps ClusterQueue cq inactive in `kueuecore run`; "
        "pass --assume-checks-active if its controller runs in the cluster\n1 note\n",
    )
    assert ran("check", "in.yaml", OPTION).out == "nothing found\n"


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        (CHECKED + PROVISIONING + CHECK, "dws", 'provisioningrequestconfigs.kueue.x-k8s.io "queued" not found'),
        (OBJECTS + INACTIVE, "budget", "no money"),
    ],
    ids=["without its configuration", "by its own account"],
)
def test_what_is_known_to_be_inactive_stays_so(text: str, name: str, why: str, ran: Callable[..., Ran]) -> None:
    (finding,) = re.findall("^.*KC415.*$", ran("check", "in.yaml", OPTION, text=text).out, re.M)
    assert f'AdmissionCheck "{name}": spec.controllerName: it is not active, ' in finding
    assert f"which keeps ClusterQueue cq inactive: {why}" in finding
    assert re.search(r"^cq +AdmissionCheckInactive +", ran("run", "in.yaml", OPTION, text=text).out, re.M)


def test_a_saved_engine_assumes_nothing(ran: Callable[..., Ran]) -> None:
    Path("saved").write_bytes(Engine().save())
    assert "leave out --trusted and --assume-checks-active\n" in ran("run", "saved", "--trusted", OPTION).err
