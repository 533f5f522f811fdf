"""What `kueuecore run` prints: tables, YAML and JSON."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from kueuecore._documents import yaml_documents
from kueuecore.cli import ExitCode
from kueuecore.cli.documents import yaml_document
from kueuecore.cli.table import Style, table
from kueuecore.manifests import parse_manifests
from tests.command import JOB, PROVISIONING, QUEUED, QUEUES, Ran
from tests.recorded_yaml import scalars


def test_a_pipe_gets_plain_whole_lines(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "-o", "wide", "--events", text=QUEUES + JOB % ("a", 1) + JOB % ("b", 3))
    assert "\x1b" not in ran.out
    assert "1000m" not in ran.out
    message = (
        "insufficient quota for cpu in flavor default, previously considered podsets requests (0) + current podset"
    )
    assert message in ran.out
    assert "\x1b[32mAdmitted" in command("in.yaml", "--color=always", text=QUEUES + JOB % ("a", 1)).out


def test_a_workload_not_considered_says_why(command: Callable[..., Ran]) -> None:
    strict = QUEUES.replace("namespaceSelector: {}", "namespaceSelector: {}\n  queueingStrategy: StrictFIFO")
    ran = command(text=strict + JOB % ("a", 3) + JOB % ("b", 1))
    assert "(not considered yet: 1 workload ahead of it in the queue)" in ran.out
    ran = command(text=QUEUES + JOB % ("a", 3) + JOB % ("b", 3))
    assert "(not considered: an equivalent workload ahead of it did not get quota)" in ran.out


def test_an_inactive_queue_is_shown_with_its_reason(command: Callable[..., Ran]) -> None:
    ran = command(
        text=QUEUES.replace(
            "kind: ResourceFlavor, metadata: {name: default}", "kind: ResourceFlavor, metadata: {name: other}"
        )
    )
    assert re.search(r"^cq +FlavorNotFound +Can't admit new workloads", ran.out, re.M)


def test_yaml_holds_the_statuses_and_can_be_read_again(command: Callable[..., Ran]) -> None:
    first = command("in.yaml", "-o", "yaml", text=QUEUES + JOB % ("a", 2) + JOB % ("b", 1))
    objects = [manifest.object for manifest in parse_manifests(first.out)]
    kinds = [object_["kind"] for object_ in objects]
    assert kinds == ["Namespace", "ResourceFlavor", "ClusterQueue", "LocalQueue", "Job", "Workload", "Job", "Workload"]
    assert [bool(object_.get("status")) for object_ in objects] == [
        kind in ("ClusterQueue", "LocalQueue", "Workload") for kind in kinds
    ]
    again = command("in.yaml", "-o", "yaml", text=first.out)
    assert again == Ran(ExitCode.OK, first.out, "")
    assert command("in.yaml", "-o", "yaml", "--trusted", text=first.out) == Ran(ExitCode.OK, first.out, "")


@pytest.mark.parametrize("text", scalars())
def test_a_text_is_written_so_that_it_is_read_as_one(text: str) -> None:
    written = yaml_document({"a": text, text: "b"}, is_ascii=True)
    (document,) = yaml_documents(written, "a.yaml")
    assert document.value == {"a": text, text: "b"}


CHECKED = QUEUES.replace(
    "namespaceSelector: {}", "namespaceSelector: {}\n  admissionChecksStrategy: {admissionChecks: [{name: dws}]}"
)


def test_what_a_workload_with_quota_waits_for_is_shown(command: Callable[..., Ran]) -> None:
    ran = command(text=CHECKED + PROVISIONING + QUEUED + JOB % ("a", 1))
    assert "(has quota, waiting for admission check dws)" in ran.out
    assert re.search(r"^team/job-a-\w+ +dws +Pending$", ran.out, re.M)
    assert re.search(r"^dws +kueue.x-k8s.io/provisioning-request +True +The admission check is active$", ran.out, re.M)
    assert ran.err == "note: added the Namespaces that the objects are in: team\n"
    document = json.loads(command("in.yaml", "-o", "json", text=CHECKED + PROVISIONING + QUEUED + JOB % ("a", 1)).out)
    (check,) = document["workloads"][0]["admissionChecks"]
    assert (check["name"], check["state"], check["retryCount"]) == ("dws", "Pending", 0)
    assert [
        (admission_check["name"], admission_check["active"], admission_check["reason"])
        for admission_check in document["admissionChecks"]
    ] == [("dws", True, "Active")]


def test_a_check_without_its_config_is_not_active(command: Callable[..., Ran]) -> None:
    ran = command(text=CHECKED + PROVISIONING + JOB % ("a", 1))
    assert re.search(r'^dws .* False +provisioningrequestconfigs.kueue.x-k8s.io "queued" not found$', ran.out, re.M)
    assert re.search(r"^cq +AdmissionCheckInactive +", ran.out, re.M)


def test_a_check_of_another_controller_gets_no_condition(command: Callable[..., Ran]) -> None:
    check = PROVISIONING.replace("kueue.x-k8s.io/provisioning-request", "example.com/x")
    assert re.search(r"^dws +example.com/x +-$", command(text=CHECKED + check).out, re.M)


def test_a_wrong_config_of_a_check_is_reported_with_its_line(command: Callable[..., Ran]) -> None:
    ran = command(text=CHECKED + PROVISIONING + QUEUED.replace("provisioningClassName", "provisioningClass"))
    assert ran.code == ExitCode.BAD_INPUT
    assert re.search(r'in\.yaml:\d+ \(document 5\): ProvisioningRequestConfig "queued": spec', ran.err)


def test_the_json_document_keeps_its_schema(command: Callable[..., Ran]) -> None:
    document = json.loads(command("in.yaml", "-o", "json", text=QUEUES + JOB % ("a", 1) + JOB % ("b", 3)).out)
    document["kueuecore"] = document["kueue"]["version"] = document["kueue"]["commit"] = ""
    assert form(document) == {
        "schema": "int",
        "kueuecore": "str",
        "kueue": {"version": "str", "commit": "str"},
        "now": "str",
        "ending": "str",
        "cycles": "int",
        "nextWake": "NoneType",
        "counts": {"Pending": "int", "Admitted": "int"},
        "workloads": [
            {
                "namespace": "str",
                "name": "str",
                "owner": "str",
                "localQueue": "str",
                "clusterQueue": "str",
                "priority": "int",
                "status": "str",
                "place": "NoneType",
                "positionInClusterQueue": "NoneType",
                "reason": "str",
                "message": "str",
                "note": "NoneType",
                "podSets": [
                    {
                        "name": "str",
                        "count": "int",
                        "flavors": {"cpu": "str"},
                        "resourceUsage": {"cpu": "str"},
                        "placement": "NoneType",
                    }
                ],
                "notPlaced": [],
                "failedNodes": [],
                "admissionChecks": [],
            }
        ],
        "preemptions": [],
        "admissionChecks": [],
        "clusterQueues": [
            {
                "name": "str",
                "active": "bool",
                "reason": "str",
                "message": "str",
                "pendingWorkloads": "int",
                "reservingWorkloads": "int",
                "admittedWorkloads": "int",
            }
        ],
        "quota": [
            {
                "kind": "str",
                "name": "str",
                "parent": "NoneType",
                "flavor": "str",
                "resource": "str",
                "nominal": "str",
                "borrowingLimit": "NoneType",
                "lendingLimit": "NoneType",
                "subtreeQuota": "str",
                "usage": "str",
                "available": "str",
                "potentialAvailable": "str",
                "borrowed": "str",
            }
        ],
        "capacity": [],
        "events": [{"type": "str", "reason": "str", "namespace": "str", "name": "str", "message": "str"}],
    }


def form(value: Any) -> Any:
    """The types in a document; of a list, those of its first entry."""
    if isinstance(value, dict):
        return {key: form(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [form(entry) for entry in value[:1]]
    return type(value).__name__


def test_preempted_workloads_are_shown_with_their_preemptor(command: Callable[..., Ran]) -> None:
    text = QUEUES.replace(
        "namespaceSelector: {}", "namespaceSelector: {}\n  preemption: {withinClusterQueue: LowerPriority}"
    )
    first = command("in.yaml", "-o", "yaml", text=text + JOB % ("low", 2))
    urgent = "\n---\n{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: urgent}, value: 5}"
    job = (JOB % ("high", 2)).replace("restartPolicy", "priorityClassName: urgent\n      restartPolicy")
    ran = command(text=first.out + urgent + job)
    shown = re.search(r"^team/job-low-\w+ +cq +team/job-high-\w+ +InClusterQueue +(.*)$", ran.out, re.M)
    assert shown
    assert re.fullmatch(r"team/job-high-\w+ goes first in cq: its priority is 5, that of team/job-low-\w+ 0", shown[1])


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "90")
    assert Style.of(io.StringIO()) == Style(color=False, width=None)
    assert Style.of(io.StringIO(), "always") == Style(color=True, width=None)
    assert Style.of(Terminal()) == Style(color=True, width=90)
    assert Style.of(Terminal(), "never") == Style(color=False, width=90)
    monkeypatch.setenv("NO_COLOR", "1")
    assert Style.of(Terminal()) == Style(color=False, width=90)


def test_a_terminal_gets_wrapped_messages() -> None:
    rows = [["a", "one two three four five six seven eight nine ten"]]
    assert table(["N", "MESSAGE"], rows, Style(width=44)).splitlines() == [
        "N  MESSAGE",
        "a  one two three four five six seven eight",
        "   nine ten",
    ]
    assert table(["N", "MESSAGE"], rows, Style(width=30)).splitlines() == [
        "N  MESSAGE",
        "a",
        "    one two three four five",
        "    six seven eight nine ten",
    ]
