"""A request that no quota covers: where it comes from, and what may be meant, wherever a command gives the cause."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Protocol

import pytest

from kueuecore.cli import main
from tests.command import JOB, QUEUES


class Said(Protocol):
    """Runs a command on a text, and returns what it prints."""

    def __call__(self, *arguments: str, text: str) -> str: ...


# Memory comes first in Kueue's canonical order, and fits: before 0.20.0, Kueue's status then says nothing.
QUIET = QUEUES.replace("coveredResources: [cpu]", "coveredResources: [memory, acme.io/npu]").replace(
    "{name: cpu, nominalQuota: 2}", "{name: memory, nominalQuota: 4Gi}, {name: acme.io/npu, nominalQuota: 1}"
)
MISNAMED = JOB.replace("{cpu: 1}", "{memory: 1Gi, acme.io/nup: 1}") % ("one", 1)
CAUSE = "couldn't assign flavors to pod set main: resource acme.io/nup unavailable in ClusterQueue"
MEANT = "no ClusterQueue covers acme.io/nup; did you mean acme.io/npu?"
SIZES = """---
apiVersion: v1
kind: LimitRange
metadata: {name: sizes, namespace: team}
spec: {limits: [{type: Container, defaultRequest: {scratch: 5}}]}
"""
ORIGIN = "scratch is from LimitRange team/sizes"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, text: str) -> str:
        Path("in.yaml").write_text(text, encoding="utf-8")
        main(arguments)
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("form", ["table", "wide"])
def test_a_run_names_the_resource_that_is_meant(form: str, said: Said) -> None:
    assert f" {CAUSE} ({MEANT})" in said("run", "in.yaml", "-o", form, text=QUIET + MISNAMED)


def test_json_has_kueues_message_as_it_is(said: Said) -> None:
    (workload,) = json.loads(said("run", "in.yaml", "-o", "json", text=QUIET + MISNAMED))["workloads"]
    assert (workload["reason"], workload["message"]) == ("NoMatchingFlavor", CAUSE)


@pytest.mark.parametrize("form", ["table", "wide", "json"])
def test_where_kueue_says_nothing_every_form_names_it_beside_the_cause(form: str, said: Said) -> None:
    out = said("run", "in.yaml", "-o", form, "--kueue", "0.20.0-devel", text=QUIET + MISNAMED)
    assert f"({CAUSE}; {MEANT})" in out


def test_a_run_adds_the_origin_to_kueues_message_for_people_only(said: Said) -> None:
    text = QUEUES + SIZES + JOB % ("one", 1)
    message = "couldn't assign flavors to pod set main: resource scratch unavailable in ClusterQueue"
    assert f"{message} ({ORIGIN})" in said("run", "in.yaml", text=text)
    (workload,) = json.loads(said("run", "in.yaml", "-o", "json", text=text))["workloads"]
    assert workload["message"] == message


def test_an_obstacle_names_the_origin_and_what_is_meant(said: Said) -> None:
    def texts(text: str) -> list[str]:
        ran = said("explain", "in.yaml", "Job/one", "-o", "json", text=text)
        return [obstacle["text"] for obstacle in json.loads(ran)["obstacles"]]

    has_none = "ClusterQueue cq has no quota for"
    assert texts(QUIET + MISNAMED) == [f"{has_none} acme.io/nup in any flavor; {MEANT}"]
    origin = "(from LimitRange team/sizes)"
    assert texts(QUEUES + SIZES + JOB % ("one", 1)) == [f"{has_none} scratch {origin} in any flavor"]


def test_an_obstacle_of_a_covered_resource_names_the_origin(said: Said) -> None:
    covered = QUEUES.replace("coveredResources: [cpu]", "coveredResources: [cpu, scratch]").replace(
        "{name: cpu, nominalQuota: 2}", "{name: cpu, nominalQuota: 2}, {name: scratch, nominalQuota: 1}"
    )
    ran = said("explain", "in.yaml", "Job/one", text=covered + SIZES + JOB % ("one", 1))
    assert "5 scratch (from LimitRange team/sizes) is more than ClusterQueue cq could get" in ran


@pytest.mark.parametrize(("text", "note"), [(QUIET + MISNAMED, MEANT), (QUEUES + SIZES + JOB % ("one", 1), ORIGIN)])
def test_unblock_says_so_too(text: str, note: str, said: Said) -> None:
    (first, *_) = said("unblock", "in.yaml", "Job/one", text=text).splitlines()
    assert first.endswith(f"{note})")


def test_check_advises_the_resource_that_is_meant(said: Said) -> None:
    assert "; did you mean acme.io/npu?" in said("check", "in.yaml", text=QUIET + MISNAMED)
