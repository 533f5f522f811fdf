"""Whatever a client sends, the server answers: it refuses, and never fails by itself."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest

from kueuecore_apiserver.plain_crds import plain_crd
from tests.unit.apiserver.wire import (
    APPLY,
    CRDS,
    JOBS,
    JSON_PATCH,
    MAPS,
    MERGE,
    PODS,
    STRATEGIC,
    Client,
    Object,
    cluster,
    config_map,
    job,
    pod,
)

ODD: list[Any] = [None, True, 0, -1, 1.5, "", "x", "Ä b", [], {}, [None], [[]], {"a": None}, {"name": 1}, 2**70]
DEPLOYMENTS = "/apis/apps/v1/namespaces/lab/deployments"


def bodies() -> dict[str, Object]:
    """An object of several kinds, by the path of its collection."""
    ref = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    owned: Object = {"f:data": {"f:a": {}, 'k:{"name":"c"}': {".": {}}, 'v:"x"': {}}}
    manager = {"manager": "a", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": owned}
    metadata: Object = {
        "labels": {"a": "b"},
        "annotations": {"a": "b"},
        "finalizers": ["x/a"],
        "ownerReferences": [ref],
        "managedFields": [manager],
    }
    resources = {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}}
    container = {
        "name": "c",
        "image": "i",
        "resources": resources,
        "ports": [{"containerPort": 1}],
        "env": [{"name": "e"}],
    }
    terms = [{"matchExpressions": [{"key": "k", "operator": "Exists"}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    rich: Object = {
        "containers": [container],
        "initContainers": [{**container, "name": "d"}],
        "tolerations": [{"key": "a"}],
        "schedulingGates": [{"name": "g"}],
        "nodeSelector": {"a": "b"},
        "affinity": affinity,
    }
    crd = plain_crd("example.com/v1", "Thing", short_names=("th",))
    whole = job("o")
    whole["metadata"] |= metadata
    whole["spec"]["template"]["spec"] |= rich
    deployment = {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": rich},
    }
    return {
        JOBS: whole,
        PODS: pod("o", metadata=metadata, **rich),
        MAPS: config_map("o", **metadata),
        CRDS: crd,
        DEPLOYMENTS: {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "o"}, "spec": deployment},
    }


def spoilt(random: Random, body: Any) -> Any:
    """A body with something odd somewhere in it."""
    body = copy.deepcopy(body)
    place = body
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not keys:
            return body
        key = random.choice(keys)
        if not isinstance(place[key], dict | list) or random.random() < 0.3:
            place[key] = random.choice(ODD)
            return body
        place = place[key]


def ask(random: Random, client: Client, path: str, good: Object) -> int:
    """Create, or change what is there, by something odd."""
    name = good["metadata"]["name"]
    odd = spoilt(random, good)
    one = f"{path}/{name}{random.choice(['', '', '/status'])}"
    match random.randrange(6):
        case 0:
            return client.post(path, odd).code
        case 1:
            return client.put(one, odd).code
        case 2:
            return client.patch(f"{one}?fieldManager={random.choice('ab')}&force=true", odd, APPLY).code
        case 3:
            operation = random.choice(["add", "replace", "remove", "test"])
            steps = [{"op": operation, "path": random.choice(["/spec", "/metadata/labels", ""]), "value": odd}]
            return client.patch(one, spoilt(random, steps), JSON_PATCH).code
        case 4:
            return client.delete(
                one, spoilt(random, {"preconditions": {"uid": "x"}, "propagationPolicy": "Orphan"})
            ).code
        case _:
            return client.patch(one, odd, random.choice([MERGE, STRATEGIC])).code


@pytest.mark.parametrize("seed", range(4))
def test_odd_bodies_are_answered(seed: int) -> None:
    random = Random(seed)
    seen = set()
    # Bugs come out when the server stops.
    with cluster(collects_garbage=True) as client:
        for _ in range(250):
            path, good = random.choice(list(bodies().items()))
            client.post(path, good)
            code = ask(random, client, path, good)
            seen.add(code)
            client.get(path)
        client.patch(f"{MAPS}/o", {})
    assert 200 in seen
    assert {400, 422} <= seen
