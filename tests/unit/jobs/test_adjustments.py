"""What happens to requests on their way into quota happens to those of every kind of jobs (rules/10 §4.6)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kueuecore.configuration import Configuration
from kueuecore.engine import Engine
from kueuecore.jobs import INTEGRATIONS
from kueuecore.manifests import Manifest
from kueuecore.steady_state import settle
from kueuecore.world import World
from tests.jobs import EVERY_KIND, job

_QUEUES: list[dict[str, Any]] = [
    {"kind": "ResourceFlavor", "metadata": {"name": "f"}},
    {
        "kind": "ClusterQueue",
        "metadata": {"name": "cq"},
        "spec": {
            "namespaceSelector": {},
            "resourceGroups": [
                {
                    "coveredResources": ["cpu", "memory", "credits"],
                    "flavors": [
                        {
                            "name": "f",
                            "resources": [
                                {"name": name, "nominalQuota": "100Gi"} for name in ("cpu", "memory", "credits")
                            ],
                        }
                    ],
                }
            ],
        },
    },
    {"kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "n"}, "spec": {"clusterQueue": "cq"}},
]
_QUEUES = [{"apiVersion": "kueue.x-k8s.io/v1beta2", **queue} for queue in _QUEUES]
_LIMITS = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "l", "namespace": "n"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]},
}
_RUNTIME = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "vm"},
    "handler": "vm",
    "overhead": {"podFixed": {"cpu": "250m"}},
}


def _usage(kind: str, pod: dict[str, Any], *around: dict[str, Any], **settings: Any) -> dict[str, str]:
    """Usage of the first pod set of a job whose pods all have this spec."""
    written = json.loads(json.dumps(job(kind)).replace(json.dumps(_CONTAINERS)[1:-1], json.dumps(pod)[1:-1]))
    file = {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "integrations": {"frameworks": sorted({integration.framework for integration in INTEGRATIONS.values()})},
        **settings,
    }
    configuration = Configuration.parse(json.dumps(file), feature_gates={"SparkApplicationIntegration": True})
    world = World.of([Manifest(queue) for queue in (*_QUEUES, *around, written)], configuration=configuration)
    engine = Engine(configuration)
    world.apply_to(engine, now=0)
    settle(engine, now=0)
    state = engine.workload(str(world.made[0].object["metadata"]["name"]), namespace="n")  # type: ignore[index,call-overload]
    usage: dict[str, str] = state.status["admission"]["podSetAssignments"][0]["resourceUsage"]
    return usage


_CONTAINERS: dict[str, Any] = {"containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}}]}


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_limit_ranges_fill_in_what_a_job_leaves_open(kind: str) -> None:
    assert _usage(kind, {"containers": [{"name": "c"}]}, _LIMITS)["cpu"] == "2"


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_runtime_classes_add_their_overhead(kind: str) -> None:
    usage = _usage(kind, {**_CONTAINERS, "runtimeClassName": "vm"}, _RUNTIME)
    # What AppWrappers copy of a template does not include the class.
    assert usage["cpu"] == ("1" if kind == "AppWrapper" else "1250m")


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_resources_are_transformed(kind: str) -> None:
    transformation = {"input": "cpu", "strategy": "Retain", "outputs": {"credits": "3"}}
    usage = _usage(kind, _CONTAINERS, resources={"transformations": [transformation]})
    assert usage == {"cpu": "1", "credits": "3"}
