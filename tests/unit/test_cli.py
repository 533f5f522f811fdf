"""The command: its output, its exit codes, its problems."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kueuecore.cli import ExitCode, main, state_file
from kueuecore.cli.table import Style, table
from kueuecore.manifests import parse_manifests
from kueuecore.steady_state import Ending, Settled
from kueuecore.version import KUEUE_COMMIT
from tests.command import QUEUES, Ran

ROOT = Path(__file__).parents[2]
# Those that are manifests, and no programs.
EXAMPLES = sorted(path.name for path in (ROOT / "examples").iterdir() if path.is_dir() and not [*path.glob("*.py")])
DOCUMENTED = [ROOT / "README.md", *(ROOT / "examples" / name / "README.md" for name in EXAMPLES)]

JOB = """
---
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: team, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  parallelism: %d
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, resources: {requests: {cpu: 1}}}]
"""


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Runs `kueuecore run` in an empty folder; `text` becomes the file `in.yaml` there."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, text: str = "") -> Ran:
        Path("in.yaml").write_text(text, encoding="utf-8")
        code = main(["run", *(arguments or ("in.yaml",))])
        return Ran(code, *capsys.readouterr())

    return run


# What is documented.


@pytest.mark.parametrize("readme", DOCUMENTED, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_readme_shows_what_the_command_prints(
    readme: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    shown = re.findall(r"^```console\n\$ kueuecore (.*?)\n(.*?)^```$", readme.read_text("utf-8"), re.M | re.S)
    assert shown
    for arguments, output in shown:
        assert main(shlex.split(arguments)) == (ExitCode.FOUND if arguments.startswith("check") else ExitCode.OK)
        assert capsys.readouterr().out == output


def test_every_example_has_a_readme_with_its_output() -> None:
    folders = [path for path in (ROOT / "examples").iterdir() if path.is_dir()]
    assert [path for path in folders if not (path / "README.md").exists()] == []


def test_the_exit_codes_are_documented() -> None:
    documented = (ROOT / "docs" / "cli.md").read_text("utf-8")
    for code in ExitCode:
        meaning = re.sub(r"--fail-on-\w+", r"`\g<0>`", code.meaning)
        assert f"| {code.value} | {meaning} |" in documented


def test_help_and_version_show_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == ExitCode.OK
    assert KUEUE_COMMIT in capsys.readouterr().out
    assert main(["run", "--help"]) == ExitCode.OK
    shown = capsys.readouterr().out
    assert "kubectl get" in shown
    assert all(code.meaning in shown for code in ExitCode)


def test_gates_lists_the_feature_gates(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gates"]) == ExitCode.OK
    assert re.search(r"^PartialAdmission +on +Beta ", capsys.readouterr().out, re.M)


# What the examples show.


def statuses(document: Any) -> dict[str, str]:
    return {workload["name"]: workload["status"] for workload in document["workloads"]}


def flavors(document: Any) -> dict[str, set[str]]:
    return {
        workload["name"]: {flavor for pod_set in workload["podSets"] for flavor in pod_set["flavors"].values()}
        for workload in document["workloads"]
    }


def run_example(name: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["run", "-q", "-o", "json", str(ROOT / "examples" / name)]) == ExitCode.OK
    return json.loads(capsys.readouterr().out)


def test_two_flavors_go_to_the_workloads_that_may_use_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert flavors(run_example("two-flavors", capsys)) == {
        "job-preprocess-e5aef": {"spot"},
        "job-report-210ea": {"on-demand"},
        "job-serve-tests-323b8": set(),
        "job-train-on-amd-cf3f0": {"spot", "amd"},
        "job-train-on-nvidia-32ada": {"on-demand", "nvidia"},
        "simulation": {"on-demand", "spot"},
    }


def test_two_teams_borrow_within_their_limits(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_example("two-teams", capsys)
    pending = {name for name, status in statuses(document).items() if status == "Pending"}
    assert pending == {"job-release-build-5ad41", "everything-at-once", "job-benchmark-86330"}
    usage = {row["name"]: (row["usage"], row["borrowed"], row["available"]) for row in document["quota"]}
    assert usage["team-b"] == ("1400m", "1200m", "300m")


def test_a_queue_without_quota_borrows_all(capsys: pytest.CaptureFixture[str]) -> None:
    document = run_example("zero-quota", capsys)
    assert flavors(document)["job-render-dec68"] == {"east"}
    assert flavors(document)["job-encode-67965"] == {"west"}
    assert statuses(document)["small"] == "Pending"


# Input.


def test_jobs_become_workloads_and_queue_in_the_order_of_the_file(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "-o", "json", text=QUEUES + JOB % ("z", 2) + JOB % ("a", 2))
    document = json.loads(ran.out)
    assert {workload["owner"]: workload["status"] for workload in document["workloads"]} == {
        "Job/z": "Admitted",
        "Job/a": "Pending",
    }


def test_standard_input_is_read(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(QUEUES.encode())))
    assert "cq " in command("-").out


def test_missing_namespaces_are_added_and_reported(command: Callable[..., Ran]) -> None:
    ran = command(text=QUEUES + JOB % ("a", 1))
    assert ran.err == "note: added the Namespaces that the objects are in: team\n"
    assert "1 Admitted" in ran.out
    assert command("in.yaml", "-q", text=QUEUES).err == ""


def test_a_dump_is_taken_as_it_is(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--trusted", text=QUEUES + JOB % ("a", 1))
    assert ran.err == ""
    assert 'workload namespace "team" does not exist' in ran.out


def test_kinds_that_are_not_read_are_named_once(command: Callable[..., Ran]) -> None:
    foreign = "\n---\n{apiVersion: v1, kind: Service, metadata: {name: %s}}"
    config = "\n---\n{apiVersion: config.kueue.x-k8s.io/v1beta2, kind: Configuration}"
    ran = command(text=QUEUES + foreign % "a" + foreign % "b" + config)
    assert "warning: these kinds are not read: Configuration (1), Service (2); pass the Configuration" in ran.err


def test_an_object_given_twice_is_reported_unless_it_is_the_same(command: Callable[..., Ran]) -> None:
    assert "last one counts" not in command(text=f"{QUEUES}---{QUEUES}").err
    ran = command(text=f"{QUEUES}---{QUEUES.replace('nominalQuota: 2', 'nominalQuota: 3')}")
    assert 'ClusterQueue "cq": it is also in' in ran.err
    assert ran.err.count("; the last one counts") == 1


def test_the_error_for_a_kind_of_another_group_names_its_group(command: Callable[..., Ran]) -> None:
    ran = command(text="{apiVersion: kueue.sigs.k8s.io/v1, kind: Cohort, metadata: {name: a}}")
    assert "these kinds are not read: Cohort (1); a Cohort is read as kueue.x-k8s.io/v1beta2" in ran.err


def test_the_error_for_a_misspelled_gate_suggests_the_right_one(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--feature-gates", "PartialAdmision=true", text=QUEUES)
    assert "unrecognized feature gate: PartialAdmision; write PartialAdmission" in ran.err


def test_a_removed_gate_is_reported_with_the_version_that_removed_it(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--feature-gates", "FlavorFungibilityImplicitPreferenceDefault=true", text=QUEUES)
    assert ran.code == ExitCode.BAD_INPUT
    assert "; Kueue 0.16 removed it; leave it out, and set spec.flavorFungibility.preference" in ran.err
    assert "PreserveScanProgress" not in ran.err


def test_an_unknown_gate_without_a_similar_name_gets_no_suggestion(command: Callable[..., Ran]) -> None:
    ran = command("in.yaml", "--feature-gates", "FlavorFungibilityNeverHeardOf=true", text=QUEUES)
    assert "FlavorFungibilityNeverHeardOf; write one of those that `kueuecore gates` lists" in ran.err


def test_a_job_that_an_api_server_would_reject_is_reported_with_the_cause(command: Callable[..., Ran]) -> None:
    nameless = command(text=QUEUES + (JOB % ("a", 1)).replace("name: a, ", ""))
    assert "metadata.name: Required value: name or generateName is required; give it a name" in nameless.err
    number = command(text=QUEUES + (JOB % ("a", 1)).replace("queue-name: lq", "queue-name: 5"))
    assert 'in body must be of type string: "integer"; write it in quotes' in number.err
    assert (nameless.code, number.code) == (ExitCode.BAD_INPUT, ExitCode.BAD_INPUT)


def test_a_job_without_a_queue_is_reported(command: Callable[..., Ran]) -> None:
    job = (JOB % ("a", 1)).replace(", labels: {kueue.x-k8s.io/queue-name: lq}", "")
    ran = command(text=QUEUES + job)
    assert 'note: Job "team/a": it has no label kueue.x-k8s.io/queue-name; it gets no Workload\n' in ran.err
    assert "not read" not in ran.err


def test_an_unknown_field_is_a_warning_with_its_line(command: Callable[..., Ran]) -> None:
    ran = command(
        text=QUEUES + "\n---\n" + QUEUES.split("---")[2].replace("clusterQueue", "clusterQeue: x, clusterQueue")
    )
    assert re.search(r"^warning: in\.yaml:\d+ \(document 4\): LocalQueue \"team/lq\": .*clusterQeue", ran.err, re.M)


def test_now_defaults_to_the_newest_time_in_the_objects(command: Callable[..., Ran]) -> None:
    dated = QUEUES.replace("{name: cq}", '{name: cq, creationTimestamp: "2026-03-01T00:00:00Z"}')
    assert json.loads(command("in.yaml", "-o", "json", text=dated).out)["now"] == "2026-03-01T00:00:00Z"
    assert json.loads(command("in.yaml", "-o", "json", text=QUEUES).out)["now"] == "1970-01-01T00:00:00Z"
    chosen = command("in.yaml", "-o", "json", "--now", "2027-01-01T00:00:00Z", text=dated)
    assert json.loads(chosen.out)["now"] == "2027-01-01T00:00:00Z"


def test_configuration_and_gates_affect_the_outcome(command: Callable[..., Ran]) -> None:
    job = (JOB % ("a", 5)).replace("labels:", 'annotations: {kueue.x-k8s.io/job-min-parallelism: "1"}, labels:')
    assert "2 of 5" in command(text=QUEUES + job).out
    assert "1 Pending" in command("in.yaml", "--feature-gates", "PartialAdmission=false", text=QUEUES + job).out
    settings = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfeatureGates: {PartialAdmission: false}"
    Path("config").write_text(settings, encoding="utf-8")
    assert "1 Pending" in command("in.yaml", "--config", "config", text=QUEUES + job).out


# Output.


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
    kinds = [it["kind"] for it in objects]
    assert kinds == ["Namespace", "ResourceFlavor", "ClusterQueue", "LocalQueue", "Job", "Workload", "Job", "Workload"]
    assert [bool(it.get("status")) for it in objects] == [
        kind in ("ClusterQueue", "LocalQueue", "Workload") for kind in kinds
    ]
    again = command("in.yaml", "-o", "yaml", text=first.out)
    assert again == Ran(ExitCode.OK, first.out, "")
    assert command("in.yaml", "-o", "yaml", "--trusted", text=first.out) == Ran(ExitCode.OK, first.out, "")


CHECKED = QUEUES.replace(
    "namespaceSelector: {}", "namespaceSelector: {}\n  admissionChecksStrategy: {admissionChecks: [{name: dws}]}"
)
CHECK = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: AdmissionCheck
metadata: {name: dws}
spec:
  controllerName: kueue.x-k8s.io/provisioning-request
  parameters: {apiGroup: kueue.x-k8s.io, kind: ProvisioningRequestConfig, name: queued}
"""
QUEUED = """
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ProvisioningRequestConfig
metadata: {name: queued}
spec: {provisioningClassName: queued-provisioning.gke.io}
"""


def test_what_a_workload_with_quota_waits_for_is_shown(command: Callable[..., Ran]) -> None:
    ran = command(text=CHECKED + CHECK + QUEUED + JOB % ("a", 1))
    assert "(has quota, waiting for admission check dws)" in ran.out
    assert re.search(r"^team/job-a-\w+ +dws +Pending$", ran.out, re.M)
    assert re.search(r"^dws +kueue.x-k8s.io/provisioning-request +True +The admission check is active$", ran.out, re.M)
    assert ran.err == "note: added the Namespaces that the objects are in: team\n"
    document = json.loads(command("in.yaml", "-o", "json", text=CHECKED + CHECK + QUEUED + JOB % ("a", 1)).out)
    (check,) = document["workloads"][0]["admissionChecks"]
    assert (check["name"], check["state"], check["retryCount"]) == ("dws", "Pending", 0)
    assert [(it["name"], it["active"], it["reason"]) for it in document["admissionChecks"]] == [("dws", True, "Active")]


def test_a_check_without_its_config_is_not_active(command: Callable[..., Ran]) -> None:
    ran = command(text=CHECKED + CHECK + JOB % ("a", 1))
    assert re.search(r'^dws .* False +provisioningrequestconfigs.kueue.x-k8s.io "queued" not found$', ran.out, re.M)
    assert re.search(r"^cq +AdmissionCheckInactive +", ran.out, re.M)


def test_a_check_of_another_controller_gets_no_condition(command: Callable[..., Ran]) -> None:
    check = CHECK.replace("kueue.x-k8s.io/provisioning-request", "example.com/x")
    assert re.search(r"^dws +example.com/x +-$", command(text=CHECKED + check).out, re.M)


def test_a_wrong_config_of_a_check_is_reported_with_its_line(command: Callable[..., Ran]) -> None:
    ran = command(text=CHECKED + CHECK + QUEUED.replace("provisioningClassName", "provisioningClass"))
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


# Exit codes.


def test_pending_workloads_fail_only_with_fail_on_pending(command: Callable[..., Ran]) -> None:
    text = QUEUES + JOB % ("a", 3)
    assert command(text=text).code == ExitCode.OK
    assert command("in.yaml", "--fail-on-pending", text=text).code == ExitCode.PENDING
    assert command("in.yaml", "--fail-on-pending", text=QUEUES).code == ExitCode.OK


def test_a_job_with_a_missing_reference_waits_while_others_run(command: Callable[..., Ran]) -> None:
    waiting = (JOB % ("waits", 1)).replace("lq}", "lq, kueue.x-k8s.io/priority-class: gone}")
    ran = command("in.yaml", "--fail-on-pending", text=QUEUES + JOB % ("runs", 1) + waiting)
    assert ran.code == ExitCode.PENDING
    assert 'WorkloadPriorityClass "gone" not found' in ran.err
    assert "until then the job waits" in ran.err
    assert "job-runs" in ran.out
    assert "job-waits" not in ran.out


def test_every_problem_is_reported_with_file_line_and_field(command: Callable[..., Ran]) -> None:
    text = QUEUES.replace("nominalQuota: 2", "nominalQuota: -2") + (JOB % ("a", 1)).replace("cpu: 1}", "cpu: -1}")
    ran = command(text=text)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    quota, request, last = ran.err.splitlines()
    assert quota.startswith(
        'in.yaml:11 (document 2): ClusterQueue "cq": spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: '
    )
    assert re.match(r'in\.yaml:\d+ \(document 4\): (Job|Workload) "team/', request)
    assert last == "kueuecore: 2 problems, nothing was decided"


@pytest.mark.parametrize(
    ("arguments", "reported"),
    [
        (["absent.yaml"], "absent.yaml: there is no such file; check the name"),
        (["in.yaml", "--now", "soon"], "'soon' is not a time: write RFC 3339"),
        (["in.yaml", "--feature-gates", "A"], "'A' is not of the form Name=true or Name=false"),
        (["in.yaml", "--feature-gates", "A=true"], "--feature-gates: Invalid value"),
        (["in.yaml", "--config", "absent"], "absent: cannot be read"),
        (["in.yaml", "-o", "xml"], "invalid choice: 'xml'"),
        (["folder"], "add -R to read its directories too"),
    ],
)
def test_wrong_usage_is_reported(command: Callable[..., Ran], arguments: list[str], reported: str) -> None:
    Path("folder/inner").mkdir(parents=True)
    ran = command(*arguments, text=QUEUES)
    assert (ran.code, ran.out) == (ExitCode.BAD_INPUT, "")
    assert reported in ran.err
    assert "Traceback" not in ran.err


def test_no_command_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.BAD_INPUT
    assert "COMMAND" in capsys.readouterr().err


def test_undecided_workloads_have_their_own_exit_code(command: Callable[..., Ran]) -> None:
    template = """
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu, namespace: team}
spec:
  spec:
    devices:
      requests: [{name: r, exactly: {deviceClassName: gpu, selectors: [{cel: {expression: "true"}}]}}]
"""
    mapping = "resources: {deviceClassMappings: [{name: gpus, deviceClassNames: [gpu]}]}"
    header = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
    Path("config.yaml").write_text(header + mapping, encoding="utf-8")
    claims = "resourceClaims: [{name: d, resourceClaimTemplateName: gpu}]"
    job = (JOB % ("a", 1)).replace("restartPolicy: Never", f"restartPolicy: Never\n      {claims}")
    ran = command("in.yaml", "--config", "config.yaml", text=QUEUES + template + job)
    assert ran.code == ExitCode.UNDECIDED
    assert re.search(r"Undecided .* spec\.podSets\[0\]\.template\.spec\.resourceClaims\[0\]: ", ran.out)


def test_unsettled_runs_have_their_own_exit_code(command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_file, "settle", lambda *_, **__: Settled(Ending.REPEATING, (), (), ()))
    ran = command(text=QUEUES)
    assert ran.code == ExitCode.UNSETTLED
    assert "never settles" in ran.out


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt, ExitCode.INTERRUPTED), (ZeroDivisionError, ExitCode.BUG)]
)
def test_a_bug_and_an_interrupt_have_their_own_exit_codes(
    command: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, error: type[BaseException], code: int
) -> None:
    def settle(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(state_file, "settle", settle)
    ran = command(text=QUEUES)
    assert ran.code == code
    assert ("this is a bug" in ran.err) == (code == ExitCode.BUG)


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    text = QUEUES + "".join(JOB % (f"job-{i}", 1) for i in range(300))
    (tmp_path / "in.yaml").write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "kueuecore", "run", "-q", "-o", "json", str(tmp_path / "in.yaml")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == ExitCode.BROKEN_PIPE
