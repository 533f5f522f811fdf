"""Plays a state forward: it becomes the start of a scenario in which its workloads run for some time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from kueuecore._json import JsonObject
from kueuecore.cli.state_source import StateSource
from kueuecore.errors import ManifestError
from kueuecore.held_objects import HELD_KINDS
from kueuecore.manifests import Manifest
from kueuecore.scenarios import ClusterPart
from kueuecore.scenarios.edits import parse_value
from kueuecore.scenarios.scenario_reader import API_VERSION, KIND, scenario_of
from kueuecore.ui.questions import heredoc, list_command
from kueuecore.ui.state_view import StateView
from kueuecore.ui.timeline import Timeline

__all__ = ["PlayForm", "played"]

_USUAL = {"runs": "1h", "waits": "1h", "until": ""}
_FIELDS = {"present.runs": "runs", "present.waitingRuns": "waits", "until": "until"}


@dataclass(frozen=True, slots=True)
class PlayForm:
    """How to play a state forward.

    Args:
        runs: How much longer the workloads run that hold quota: a duration or a distribution, as in a scenario.
        waits: How long the others run, once admitted.
        until: How far to play; empty: until nothing is left to happen.
        problems: What is wrong, beside no field.
        by_field: What is wrong, by the name of the field.
    """

    runs: str
    waits: str
    until: str
    problems: tuple[str, ...] = ()
    by_field: Mapping[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, asked: Mapping[str, str]) -> PlayForm:
        """Read what was filled in."""
        runs, waits, until = (asked.get(name, usual).strip() for name, usual in _USUAL.items())
        return cls(runs, waits, until)

    @property
    def question(self) -> tuple[str, str, str]:
        """What tells this run from others of the same state."""
        return self.runs, self.waits, self.until

    def refused(self, error: ManifestError) -> PlayForm:
        """Return the form with what is wrong."""
        by_field: dict[str, list[str]] = {}
        for problem in error.problems:
            by_field.setdefault(_FIELDS.get(problem.field, ""), []).append(str(problem))
        return replace(self, problems=tuple(by_field.pop("", ())), by_field=by_field)


def played(form: PlayForm, view: StateView, source: StateSource) -> Timeline:
    """Play a state forward.

    Raises:
        ManifestError: The form is not filled in right, or the state cannot be played.
    """
    plain = _scenario(form)
    # Its cluster is the state itself, which no file holds.
    read = scenario_of([Manifest({**plain, "cluster": {}})], "scenario.yaml")
    objects = tuple(Manifest(held) for kind in HELD_KINDS for held in view.engine.objects(kind))
    cluster = ClusterPart(objects=objects, configuration=view.engine.configuration)
    scenario = replace(read, cluster=cluster, start=view.state.now)
    return Timeline.of_scenario(scenario, title=f"{source.title}, played forward", command=_command(plain, source))


def _scenario(form: PlayForm) -> JsonObject:
    present: JsonObject = {
        name: parse_value(text) for name, text in (("runs", form.runs), ("waitingRuns", form.waits)) if text
    }
    plain: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, "present": present}
    return {**plain, "until": parse_value(form.until)} if form.until else plain


def _command(plain: JsonObject, source: StateSource) -> str:
    cluster: JsonObject = {"objects": ["dump.yaml"]}
    if source.settings.get("config"):
        cluster["configuration"] = str(source.settings["config"])
    if source.settings.get("kueue"):
        cluster["kueue"] = str(getattr(source.settings["kueue"], "name", source.settings["kueue"]))
    text = "".join(f"{name}: {json.dumps(value)}\n" for name, value in {**plain, "cluster": cluster}.items())
    dump = f"{list_command(source, '-o', 'yaml')} > dump.yaml"
    return f"{dump}\n{heredoc('kueuecore simulate scenario.yaml', text, to='scenario.yaml')}"
