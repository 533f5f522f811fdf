"""JSON patches, merge patches and strategic merge patches."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore_apiserver.patches import strategically_merged
from kueuecore_apiserver.plain_crds import plain_crd
from kueuecore_apiserver.shapes import built_in_shape
from tests.unit.apiserver.wire import (
    CRDS,
    JSON_PATCH,
    MAPS,
    PODS,
    STRATEGIC,
    Object,
    cluster,
    config_map,
    pod,
)


def test_a_merge_patch_removes_by_null_and_replaces_lists() -> None:
    with cluster() as client:
        client.post(MAPS, config_map(data={"a": "1", "b": "2"}, finalizers=["x/a", "x/b"]))
        patch = {"data": {"a": None, "c": "3"}, "metadata": {"finalizers": ["x/c"]}}
        new = client.patch(f"{MAPS}/cm", patch).body
    assert (new["data"], new["metadata"]["finalizers"]) == ({"b": "2", "c": "3"}, ["x/c"])


def test_a_json_patch_is_carried_out_in_order_or_not_at_all() -> None:
    good = [
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "add", "path": "/metadata/labels", "value": {"x~y": "1"}},
        {"op": "copy", "from": "/data/a", "path": "/data/b"},
        {"op": "move", "from": "/data/b", "path": "/data/c"},
        {"op": "remove", "path": "/metadata/labels/x~0y"},
    ]
    with cluster() as client:
        client.post(MAPS, config_map())
        new = client.patch(f"{MAPS}/cm", good, JSON_PATCH).body
        failed = client.patch(f"{MAPS}/cm", [{"op": "test", "path": "/data/a", "value": "1"}], JSON_PATCH)
        missing = client.patch(f"{MAPS}/cm", [{"op": "remove", "path": "/data/none"}], JSON_PATCH)
        wrong: list[Any] = [{}, [{"op": "x", "path": "/a"}]]
        nonsense = [client.patch(f"{MAPS}/cm", row, JSON_PATCH).code for row in wrong]
    assert (new["data"], "labels" in new["metadata"]) == ({"a": "2", "c": "2"}, False)
    assert (failed.code, missing.code, nonsense) == (422, 422, [400, 400])
    assert failed.message == "the server rejected our request due to an error in our request"


def test_a_strategic_patch_merges_containers_by_name() -> None:
    with cluster() as client:
        client.post(PODS, pod())
        patch = {"spec": {"containers": [{"name": "c", "image": "j"}]}}
        new = client.patch(f"{PODS}/p", patch, STRATEGIC).body
    (container,) = new["spec"]["containers"]
    assert (container["name"], container["image"]) == ("c", "j")
    assert container["imagePullPolicy"] == "Always"


def test_custom_kinds_take_no_strategic_patch() -> None:
    things = "/apis/example.com/v1/namespaces/lab/things"
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        client.post(things, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}})
        reply = client.patch(f"{things}/t", {}, STRATEGIC)
    assert reply.code == 415
    assert reply.message.endswith(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"
    )


def test_a_patch_can_not_rename() -> None:
    with cluster() as client:
        client.post(MAPS, config_map())
        reply = client.patch(f"{MAPS}/cm", {"metadata": {"name": "other"}})
    assert (reply.code, reply.causes) == (422, [("metadata.name", "Invalid value: field is immutable")])


C = {"name": "c", "image": "i"}
D = {"name": "d", "image": "i"}


@pytest.mark.parametrize(
    ("live", "patch", "after"),
    [
        ({"containers": [C]}, {"containers": [D]}, {"containers": [C, D]}),
        ({"containers": [C, D]}, {"containers": [{"name": "c", "$patch": "delete"}]}, {"containers": [D]}),
        ({"containers": [C]}, {"containers": [D, {"$patch": "replace"}]}, {"containers": [D]}),
        (
            {"containers": [C, D]},
            {"$setElementOrder/containers": [{"name": "d"}, {"name": "c"}], "containers": [{"name": "c", "tty": True}]},
            {"containers": [D, {**C, "tty": True}]},
        ),
        ({"tolerations": [{"key": "a"}]}, {"tolerations": [{"key": "b"}]}, {"tolerations": [{"key": "b"}]}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2"}}, {"nodeSelector": {"a": "1", "b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": {"b": "2", "$patch": "replace"}}, {"nodeSelector": {"b": "2"}}),
        ({"nodeSelector": {"a": "1"}}, {"nodeSelector": None}, {}),
        (
            {"volumes": [{"name": "v", "emptyDir": {}}]},
            {"volumes": [{"name": "v", "hostPath": {}, "$retainKeys": ["name", "hostPath"]}]},
            {"volumes": [{"name": "v", "hostPath": {}}]},
        ),
        (
            {"containers": [{**C, "ports": [{"containerPort": 1, "name": "x"}]}]},
            {"containers": [{"name": "c", "ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]}]},
            {"containers": [{**C, "ports": [{"containerPort": 1, "name": "y"}, {"containerPort": 2}]}]},
        ),
        ({"schedulingGates": [{"name": "a"}, {"name": "b"}]},
         {"schedulingGates": [{"name": "a", "$patch": "delete"}]},
         {"schedulingGates": [{"name": "b"}]}),
    ],
)  # fmt: skip
def test_strategic_patches_of_pods(live: Object, patch: Object, after: Object) -> None:
    merged = strategically_merged({"spec": live}, {"spec": patch}, built_in_shape("", "Pod"))
    assert merged == {"spec": after}


@pytest.mark.parametrize(
    ("live", "patch", "after"),
    [
        (["a"], {"finalizers": ["b", "a"]}, ["a", "b"]),
        (["a", "b"], {"$deleteFromPrimitiveList/finalizers": ["a"]}, ["b"]),
        (["a", "b"], {"$setElementOrder/finalizers": ["c", "b", "a"], "finalizers": ["c"]}, ["c", "b", "a"]),
    ],
)
def test_strategic_patches_of_finalizers(live: list[str], patch: Object, after: list[str]) -> None:
    merged = strategically_merged({"metadata": {"finalizers": live}}, {"metadata": patch}, built_in_shape("", "Node"))
    assert merged == {"metadata": {"finalizers": after}}


def test_conditions_and_owners_are_merged_by_their_keys() -> None:
    def merged(kind: tuple[str, str], live: Any, patch: Any) -> Any:
        return strategically_merged(live, patch, built_in_shape(*kind))

    old, new = {"type": "Ready", "status": "False", "reason": "x"}, {"type": "Ready", "status": "True"}
    other = {"type": "Other", "status": "True"}
    for kind in (("", "Node"), ("", "Pod"), ("batch", "Job"), ("apps", "Deployment")):
        status = merged(kind, {"status": {"conditions": [old, other]}}, {"status": {"conditions": [new]}})
        assert status == {"status": {"conditions": [{**old, "status": "True"}, other]}}
    owners = {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}}
    added = {"metadata": {"ownerReferences": [{"uid": "2", "name": "b"}]}}
    names = [reference["name"] for reference in merged(("", "Pod"), owners, added)["metadata"]["ownerReferences"]]
    assert names == ["a", "b"]


def test_a_list_item_without_its_key_is_refused() -> None:
    with cluster() as client:
        client.post(PODS, pod())
        reply = client.patch(f"{PODS}/p", {"spec": {"containers": [{"image": "j"}]}}, STRATEGIC)
    assert reply.code == 400
    assert reply.message.endswith("does not contain declared merge key: name")
