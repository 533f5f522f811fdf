"""What a template has in the place of a value is refused with what to do about it, not with a pattern."""

from __future__ import annotations

import re

import pytest

from kueuecore._written_values import template_remedy
from kueuecore.engine import Engine
from kueuecore.errors import ManifestError, Problem
from kueuecore.manifests import parse_manifests
from kueuecore.world import World

RENDER = "this looks like a template: render it first"
ENVSUBST, HELM = f"{RENDER}, for example with `envsubst`", f"{RENDER}, for example with `helm template`"
QUEUE = """\
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: NAME}
spec:
  queueingStrategy: STRATEGY
  resourceGroups:
  - coveredResources: [cpu]
    flavors: [{name: f, resources: [{name: cpu, nominalQuota: QUOTA}]}]
"""
JOB = """\
apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: NAMESPACE, labels: {kueue.x-k8s.io/queue-name: q}}
spec:
  parallelism: PODS
  template: {spec: {restartPolicy: Never, containers: [{name: c, resources: {requests: {cpu: CPU}}}]}}
"""


def problem(text: str, **values: str) -> Problem:
    """What is refused in a text in which values have been put."""
    defaults = {"NAME": "q", "STRATEGY": "StrictFIFO", "QUOTA": "4", "NAMESPACE": "team", "PODS": "1", "CPU": "1"}
    for name, value in {**defaults, **values}.items():
        text = re.sub(rf": {name}\b", lambda _, value=value: f": {value}", text)  # type: ignore[misc]
    with pytest.raises(ManifestError) as caught:
        World.of(parse_manifests(text, file="a.yaml")).apply_to(Engine(), now=0)
    return next(other for other in caught.value.problems if "some validation rules" not in other.message)


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("${NAME}", ENVSUBST),
        ("team-$name", ENVSUBST),
        ("($name)", ENVSUBST),
        ("'{{ .Values.name }}'", HELM),
        ("'{% raw %}'", HELM),
        ("<your-name>", f"{RENDER}, or replace <your-name>"),
        ("x-__NAME__", f"{RENDER}, or replace __NAME__"),
    ],
)
def test_a_placeholder_that_is_refused_is_to_be_rendered(value: str, remedy: str) -> None:
    text = QUEUE.replace("{name: NAME}", "\n  name: NAME")
    found = problem(text, NAME=value)
    assert (found.field, found.line, found.remedy) == ("metadata.name", 4, remedy)
    unquoted = value.strip("'")
    assert found.message == f'Invalid value: "{unquoted}"'


@pytest.mark.parametrize(
    ("text", "values", "field", "message"),
    [
        (
            QUEUE,
            {"QUOTA": '"${QUOTA}"'},
            "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota",
            'Invalid value: "${QUOTA}"',
        ),
        (QUEUE, {"STRATEGY": "$strategy"}, "spec.queueingStrategy", 'Unsupported value: "$strategy"'),
        (JOB, {"PODS": "<pods>"}, "spec.parallelism", 'Invalid value: "<pods>"'),
        (
            JOB,
            {"CPU": "<cpu>"},
            "spec.template.spec.containers[0].resources.requests.cpu",
            'Invalid value: "<cpu>"',
        ),
        (JOB, {"NAMESPACE": "<team>"}, "", 'in its Workload: metadata.namespace: Invalid value: "<team>"'),
    ],
)
def test_so_it_is_in_every_field(text: str, values: dict[str, str], field: str, message: str) -> None:
    found = problem(text, **values)
    assert (found.field, found.message) == (field, message)
    assert found.remedy.startswith(RENDER)


def test_a_placeholder_without_a_text_is_found_too() -> None:
    with pytest.raises(ManifestError) as caught:
        Engine().apply([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "${TEAM}"}}])
    assert caught.value.problems[0].remedy == ENVSUBST


@pytest.mark.parametrize("line", ["a: [{b: ${B}}]", "{% if x %}"])
def test_what_is_no_yaml_because_of_placeholders_is_a_template(line: str) -> None:
    with pytest.raises(ManifestError) as caught:
        parse_manifests(f"apiVersion: v1\nkind: A\n{line}\n")
    assert caught.value.remedy.startswith(RENDER)


@pytest.mark.parametrize(
    "text", ["8Gi", "$", "$5", "a<b", "a < b > c", "<>", "__", "____", "$(", "a$", "{a}", "__1__", ""]
)
def test_other_texts_have_no_placeholder(text: str) -> None:
    assert template_remedy(text) == ""


@pytest.mark.parametrize(
    ("value", "remedy"),
    [
        ("yes", 'write "yes": without quotes YAML reads true'),
        ("0755", 'write "0755": without quotes YAML reads 493'),
        ("true", 'write "true"'),
        ("5", 'write "5"'),
        ("!!int '5'", ""),
    ],
)
def test_a_text_that_needs_quotes_is_shown_with_them(value: str, remedy: str) -> None:
    label = f"{{name: q, labels: {{x: {value}}}}}"
    found = problem(QUEUE.replace("{name: NAME}", label))
    assert found.message.endswith('must be of type string: "boolean"') or "integer" in found.message
    assert found.remedy == remedy
