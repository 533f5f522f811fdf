"""A Namespace that is added has no labels: who waits because of that is told so, and labels can be given."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from kueuecore.cli import ExitCode
from kueuecore.engine import Engine
from tests.command import JOB, QUEUES, Ran

SITE = "{key: site, operator: In, values: [a, b]}"
SELECTOR = f"namespaceSelector: {{matchLabels: {{tier: gold}}, matchExpressions: [{SITE}]}}"
OBJECTS = QUEUES.replace("namespaceSelector: {}", SELECTOR) + JOB % ("train", 1)
NAMESPACE = "---\n{apiVersion: v1, kind: Namespace, metadata: {name: team, labels: {tier: iron}}}\n"
MESSAGE = "workload namespace doesn't match ClusterQueue selector"
NOTE = (
    "Namespace team was added without labels, and ClusterQueue cq asks for tier=gold, site in (a,b): "
    "give the Namespace, or set its labels with --namespace-labels"
)


@pytest.fixture
def ran(any_command: Callable[..., Ran]) -> Callable[..., Ran]:
    """Runs a command beside these objects in the file `in.yaml`."""
    return partial(any_command, text=OBJECTS)


def test_run_and_explain_and_unblock_say_which_labels_are_missing(ran: Callable[..., Ran]) -> None:
    assert f"{MESSAGE} ({NOTE})\n" in ran("run", "in.yaml").out
    assert f"{MESSAGE}\n{NOTE}\n" in ran("explain", "in.yaml", "Job/team/train").out
    assert f"{MESSAGE} ({NOTE})\n" in ran("unblock", "in.yaml", "Job/team/train").out
    (workload,) = json.loads(ran("run", "in.yaml", "-o", "json").out)["workloads"]
    assert (workload["message"], workload["note"]) == (MESSAGE, NOTE)
    explained = json.loads(ran("explain", "in.yaml", "Job/team/train", "-o", "json").out)
    assert explained["workload"]["note"] == NOTE


@pytest.mark.parametrize(
    "text",
    [
        OBJECTS + NAMESPACE,
        OBJECTS.replace(SELECTOR, "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}"),
    ],
    ids=["a given Namespace", "another name"],
)
def test_nothing_is_said_where_labels_would_not_help(text: str, ran: Callable[..., Ran]) -> None:
    out = ran("run", "in.yaml", text=text).out
    assert (MESSAGE in out, "was added" in out) == (True, False)


@pytest.mark.parametrize(
    "labels", [("tier=gold,site=b",), ("team:tier=gold", "site=a"), ("tier=iron,site=a", "team:tier=gold")]
)
def test_labels_can_be_given(labels: tuple[str, ...], ran: Callable[..., Ran]) -> None:
    options = [part for label in labels for part in ("--namespace-labels", label)]
    assert "1 Admitted" in ran("run", "in.yaml", *options).out
    assert ran("check", "in.yaml", *options).out == "nothing found\n"
    assert "tier: gold" in ran("run", "in.yaml", "-o", "yaml", *options).out


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("teem:tier=gold", "--namespace-labels: no object is in namespace teem; did you mean team?\n"),
        ("team=tier=gold", 'argument --namespace-labels: "team=tier=gold" is not of the form KEY=VALUE,... or'),
        (":tier=gold", 'argument --namespace-labels: ":tier=gold" is not of the form'),
        ("team:tier", 'argument --namespace-labels: "team:tier" is not of the form'),
    ],
)
def test_wrong_labels_are_refused(labels: str, said: str, ran: Callable[..., Ran]) -> None:
    code, out, err = ran("run", "in.yaml", "--namespace-labels", labels)
    assert (code, out, said in err) == (ExitCode.BAD_INPUT, "", True), err


def test_a_given_namespace_keeps_its_labels(ran: Callable[..., Ran]) -> None:
    both = ran("run", "in.yaml", "--namespace-labels", "tier=gold,site=a", text=OBJECTS + NAMESPACE)
    assert "1 Pending" in both.out
    code, out, err = ran("run", "in.yaml", "--namespace-labels", "team:tier=gold", text=OBJECTS + NAMESPACE)
    assert (code, out) == (ExitCode.BAD_INPUT, "")
    assert 'Namespace "team": --namespace-labels is for Namespaces that are not given; write its labels there' in err


def test_a_dump_without_namespaces_can_get_some(ran: Callable[..., Ran]) -> None:
    assert "1 Pending" in ran("run", "in.yaml", "--trusted").out
    assert "1 Admitted" in ran("run", "in.yaml", "--trusted", "--namespace-labels", "tier=gold,site=a").out


def test_a_saved_engine_takes_none(ran: Callable[..., Ran]) -> None:
    Path("saved").write_bytes(Engine().save())
    assert "leave out --namespace-labels" in ran("run", "saved", "--namespace-labels", "tier=gold").err
