"""What the tools answer is what their schemas say, to the last field, for many states."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from kueuecore import Engine, World, read_manifests
from kueuecore.agents.answering import Answering, Limits, NoAnswerError
from kueuecore.agents.tools import TOOLS, tool_named
from kueuecore.cli.state_source import StateSource
from kueuecore.states import Stage
from tests.unit.agents.connections import EXAMPLES, closed, source

LIMITS = Limits(seconds=4, most_bytes=10_000_000)
VALIDATORS = {tool.name: Draft202012Validator(closed(tool.answers)) for tool in TOOLS}
CONFIGURATION = {"apiVersion": "config.kueue.x-k8s.io/v1beta2", "kind": "Configuration"}
# Of each of these kinds of states at least one is asked about.
STATES = [
    "fair-sharing-month",
    "lost-rack",
    "mistakes",
    "taking-back",
    "topology",
    "two-flavors",
    "two-teams",
    "upgrade",
]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_schemas_are_schemas(tool: Any) -> None:
    Draft202012Validator.check_schema(dict(tool.input_schema))
    Draft202012Validator.check_schema(dict(tool.answers))
    assert set(tool.needs) <= set(tool.takes)
    assert all(shape.get("description") for shape in tool.takes.values())


class Asking:
    """Asks all tools about a state, and checks each answer."""

    def __init__(self, of: StateSource) -> None:
        self.answering = Answering(of, LIMITS)
        self.answered: list[str] = []

    def ask(self, name: str, **asked: Any) -> dict[str, Any]:
        tool = tool_named(name)
        assert tool is not None
        answer = self.answering.answer(tool, asked)
        found = [f"{error.json_path}: {error.message[:200]}" for error in VALIDATORS[name].iter_errors(answer.document)]
        assert found == []
        assert len(answer.sentences) == 3
        assert all(sentence.endswith((".", "!", "?")) and sentence.isprintable() for sentence in answer.sentences)
        self.answered.append(name)
        return answer.document

    def ask_everything(self, of: StateSource, *, most: int) -> None:
        self.ask("queues")
        self.ask("pending")
        self.ask("check")
        # Gates that a release lacks are refused.
        self.ask("compare_releases", **{"from": "0.17" if of.settings["config"] is None else "0.19"})
        states = of.state().engine.workloads()
        waiting = [state.key for state in states if state.stage is Stage.PENDING]
        for key in [*waiting[:most], *[state.key for state in states if state.key not in waiting][:most]]:
            self.ask("explain", workload=key)
            for change in self.ask("unblock", workload=key, tries=200)["changes"][:most]:
                edits = [f"{edit['target']}={json.dumps(edit['value'])}" for edit in change["edits"]]
                if edits or change["deletions"]:
                    self.ask("what_if", set=edits, delete=change["deletions"])
        self.ask("eta", workloads=waiting[:1], run_seconds=["1h"], seeds=2)


@pytest.mark.parametrize("example", STATES)
def test_answers_about_examples(example: str) -> None:
    of = source(str(EXAMPLES / example))
    asking = Asking(of)
    asking.ask_everything(of, most=2)
    # Where nothing has finished, there are bounds.
    asking.ask("eta", seeds=2)


def test_answers_about_a_saved_engine(tmp_path: Path) -> None:
    world = World.of(read_manifests(EXAMPLES / "two-teams"))
    engine = Engine()
    world.apply_to(engine, now="2026-01-01T10:00:00Z")
    file = tmp_path / "saved.engine"
    file.write_bytes(engine.save())
    of = source(str(file))
    Asking(of).ask_everything(of, most=1)


@pytest.mark.parametrize("seed", range(12))
def test_answers_about_random_worlds(seed: int, tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    from kueuecore.testing import random_history

    history = random_history(seed)
    state, settings = tmp_path / "state.json", tmp_path / "kueue.json"
    state.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*history.objects]}))
    settings.write_text(json.dumps({**CONFIGURATION, **(history.configuration or {})}))
    of = source(str(state), "--trusted", "--config", str(settings))
    Asking(of).ask_everything(of, most=2)


def test_a_job_that_is_tried_is_answered_in_the_same_form() -> None:
    of = source(str(EXAMPLES / "two-teams"))
    job = """
apiVersion: batch/v1
kind: Job
metadata: {name: new, namespace: team-b, labels: {kueue.x-k8s.io/queue-name: %s}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}}
"""
    queue = of.state().engine.workloads()[-1].local_queue
    alone = Asking(of).ask("what_if", objects=job % queue)
    assert [row["would"] for row in alone["workloads"]] == ["Fits"]
    assert "settled" not in alone
    settled = Asking(of).ask("what_if", objects=job % queue, settle=True)
    assert settled["settled"]["ending"] == "Settled"


@pytest.mark.parametrize("example", ["eta", "taking-back", "two-teams", "what-happened"])
def test_histories_are_answered(example: str) -> None:
    of = source(str(EXAMPLES / example), "--trusted")
    asking = Asking(of)
    for state in of.state().engine.workloads()[:20]:
        asking.ask("history", workload=state.key)
    assert asking.answered


def test_a_schema_that_is_closed_notices_a_new_field() -> None:
    of = source(str(EXAMPLES / "two-teams"))
    document = Asking(of).ask("queues")
    document["clusterQueues"][0]["forgotten"] = 1
    assert len(list(VALIDATORS["queues"].iter_errors(document))) == 1
    with pytest.raises(NoAnswerError, match=r'does not take "forgotten"'):
        Asking(of).ask("queues", forgotten=1)
