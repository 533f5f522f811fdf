"""Server-side apply: who owns which field, conflicts, and what goes when nobody wants it any more."""

from __future__ import annotations

from typing import Any

import pytest

from kueuecore_apiserver.field_sets import compared, difference, intersection, paths, union, without
from kueuecore_apiserver.plain_crds import plain_crd
from kueuecore_apiserver.shapes import ANY
from tests.unit.apiserver.wire import CRDS, JOBS, MAPS, PODS, Object, cluster, config_map, job, pod

MAP: Object = {"apiVersion": "v1", "kind": "ConfigMap"}
JOB: Object = {"apiVersion": "batch/v1", "kind": "Job"}


def owners(manifest: Object) -> dict[tuple[str, str, str], Any]:
    entries = manifest["metadata"].get("managedFields", [])
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"] for entry in entries
    }


def test_who_creates_and_updates_owns_what_was_written() -> None:
    with cluster() as client:
        client.post(f"{MAPS}?fieldManager=maker", config_map(data={"a": "1", "b": "2"}))
        client.patch(f"{MAPS}/cm", {"data": {"b": "3", "c": "4"}})
        new = client.patch(f"{MAPS}/cm?fieldManager=other", {"data": {"a": None}}).body
    # Without a parameter, the client's name up to the slash counts.
    assert owners(new) == {
        ("maker", "Update", ""): {"f:data": {}},
        ("tiny", "Update", ""): {"f:data": {"f:b": {}, "f:c": {}}},
    }
    (entry, _) = new["metadata"]["managedFields"]
    assert {key: row for key, row in entry.items() if key != "fieldsV1"} == {
        "manager": "maker",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
    }


def test_the_status_has_an_owner_of_its_own() -> None:
    with cluster() as client:
        client.post(JOBS, job())
        new = client.patch(f"{JOBS}/sum/status", {"status": {"active": 1}}).body
    assert owners(new)["tiny", "Update", "status"] == {"f:status": {"f:active": {}}}


def test_applying_creates_and_goes_on() -> None:
    with cluster() as client:
        made = client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "1", "b": "2"}})
        more = client.apply(f"{MAPS}/cm", {**MAP, "data": {"b": "2", "c": "3"}})
        again = client.apply(f"{MAPS}/cm", {**MAP, "data": {"b": "2", "c": "3"}})
    assert (made.code, more.code) == (201, 200)
    # What is no longer applied goes.
    assert more.body["data"] == {"b": "2", "c": "3"}
    assert owners(more.body) == {("me", "Apply", ""): {"f:data": {"f:b": {}, "f:c": {}}}}
    assert again.body == more.body


def test_another_owner_is_a_conflict_in_the_words_of_the_server() -> None:
    with cluster() as client:
        client.post(MAPS, config_map(data={"a": "1", "b": "1"}))
        client.apply(f"{MAPS}/cm", {**MAP, "data": {"c": "1"}}, "first")
        one = client.apply(f"{MAPS}/cm", {**MAP, "data": {"c": "2"}}, "second")
        two = client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "2", "b": "2", "c": "2"}}, "second")
        same = client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "1"}}, "second")
    assert (one.code, one.body["reason"]) == (409, "Conflict")
    assert one.message == 'Apply failed with 1 conflict: conflict with "first": .data.c'
    assert one.body["details"]["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "first"', "field": ".data.c"}
    ]
    assert two.message == (
        'Apply failed with 3 conflicts: conflicts with "first":\n- .data.c\nconflicts with "tiny" using v1:\n'
        "- .data.a\n- .data.b"
    )
    # What two say alike both own.
    assert same.code == 200
    assert owners(same.body)["second", "Apply", ""] == {"f:data": {"f:a": {}}}
    assert owners(same.body)["tiny", "Update", ""] == {"f:data": {".": {}, "f:a": {}, "f:b": {}}}


def test_force_takes_fields_over() -> None:
    with cluster() as client:
        client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "1", "b": "1"}}, "first")
        new = client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "2"}}, "second", force=True).body
        kept = client.apply(f"{MAPS}/cm", {**MAP, "data": {}}, "first").body
    assert owners(new) == {
        ("first", "Apply", ""): {"f:data": {"f:b": {}}},
        ("second", "Apply", ""): {"f:data": {"f:a": {}}},
    }
    assert kept["data"] == {"a": "2"}


def test_an_update_takes_fields_from_who_applied_them() -> None:
    with cluster() as client:
        client.apply(f"{JOBS}/sum", {**JOB, "spec": job()["spec"]}, "kueue")
        client.patch(f"{JOBS}/sum", {"spec": {"suspend": False}})
        reply = client.apply(f"{JOBS}/sum", {**JOB, "spec": {"suspend": True}}, "kueue")
    assert reply.message == 'Apply failed with 1 conflict: conflict with "tiny" using batch/v1: .spec.suspend'


def test_items_of_lists_belong_to_their_owners_by_key() -> None:
    gates = {"apiVersion": "v1", "kind": "Pod"}
    with cluster() as client:
        client.post(PODS, pod(schedulingGates=[{"name": "a"}], metadata={"finalizers": ["x/a"]}))
        finalizers = {"metadata": {"finalizers": ["x/b"]}}
        new = client.apply(f"{PODS}/p", {**gates, **finalizers, "spec": {"schedulingGates": [{"name": "a"}]}}).body
        left = client.apply(f"{PODS}/p", {**gates, "spec": {"containers": [{"name": "c", "image": "i"}]}}).body
    assert owners(new)["me", "Apply", ""] == {
        "f:metadata": {"f:finalizers": {'v:"x/b"': {}}},
        "f:spec": {"f:schedulingGates": {'k:{"name":"a"}': {".": {}, "f:name": {}}}},
    }
    assert new["metadata"]["finalizers"] == ["x/a", "x/b"]
    # The gate belongs to who created the pod, too.
    assert left["metadata"]["finalizers"] == ["x/a"]
    assert left["spec"]["schedulingGates"] == [{"name": "a"}]


def test_an_item_goes_with_what_only_its_owner_has_in_it() -> None:
    crd = plain_crd("example.com/v1", "Thing")
    checks = {
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "properties": {"name": {"type": "string"}}},
    }
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"] = {
        "status": {"type": "object", "properties": {"checks": checks}}
    }
    thing: Object = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    path = "/apis/example.com/v1/namespaces/lab/things"

    def status(*names: str) -> Object:
        return {**thing, "status": {"checks": [{"name": name, "state": "Ready"} for name in names]}}

    with cluster() as client:
        client.post(CRDS, crd)
        client.post(path, thing)
        client.apply(f"{path}/t/status", status("a", "b"), "one")
        client.apply(f"{path}/t/status", status("c"), "two")
        both = client.apply(f"{path}/t/status", status("b"), "one").body
        main = client.apply(f"{path}/t", {**status("z"), "spec": {"x": 1}}, "one").body
        none = client.apply(f"{path}/none/status", {**status("c"), "metadata": {}}, "two").code
    assert [check["name"] for check in both["status"]["checks"]] == ["b", "c"]
    assert owners(both)["two", "Apply", "status"] == {
        "f:status": {"f:checks": {'k:{"name":"c"}': {".": {}, "f:name": {}, "f:state": {}}}}
    }
    # Without the subresource, the status of a configuration is not looked at.
    assert (main["status"], main["spec"]) == (both["status"], {"x": 1})
    assert none == 404


def test_objects_from_before_have_an_owner_called_so() -> None:
    with cluster() as client:
        client.server.api.create({**config_map(), "metadata": {"name": "cm", "namespace": "lab"}})
        reply = client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "2"}})
        forced = client.apply(f"{MAPS}/cm", {**MAP, "data": {"a": "2"}}, force=True)
    assert reply.message == 'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a'
    assert forced.body["data"] == {"a": "2"}


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        (f"{MAPS}/cm?force=true", MAP, 422, "PatchOptions.meta.k8s.io"),
        (f"{MAPS}/cm?fieldManager=me", {**MAP, "metadata": {"managedFields": [{}]}}, 400, "must be nil"),
        (f"{MAPS}/cm?fieldManager=me", {**MAP, "metadata": {"name": "x"}}, 400, "does not match the name on the URL"),
        (f"{MAPS}/cm?fieldManager=me", {"kind": "Job", "apiVersion": "batch/v1"}, 400, "cannot be handled"),
        (f"{MAPS}/cm?fieldManager=me", [], 400, "the configuration is no object"),
        (f"{MAPS}/cm?fieldManager=me", {**MAP, "metadata": {"uid": "x"}}, 404, 'configmaps "cm" not found'),
        (f"{JOBS}/sum?fieldManager=me", {**JOB, "spec": {}}, 422, "spec.template.spec.containers: Required value"),
    ],
)
def test_what_can_not_be_applied(path: str, body: Any, code: int, message: str) -> None:
    with cluster() as client:
        reply = client.patch(path, body, "application/apply-patch+yaml")
    assert (reply.code, message in reply.message) == (code, True), reply.message


def test_one_empty_entry_forgets_all_owners_and_no_entry_keeps_them() -> None:
    with cluster() as client:
        client.post(MAPS, config_map())
        kept = client.patch(f"{MAPS}/cm", {"metadata": {"managedFields": []}}).body
        malformed = client.patch(f"{MAPS}/cm", {"metadata": {"managedFields": [{"manager": "x"}]}}).body
        new = client.patch(f"{MAPS}/cm", {"metadata": {"managedFields": [{}]}}).body
    assert len(owners(kept)) == len(owners(malformed)) == 1
    assert "managedFields" not in new["metadata"]


def test_owners_may_be_written() -> None:
    with cluster() as client:
        made = client.post(MAPS, config_map()).body
        (entry,) = made["metadata"]["managedFields"]
        mine = {**entry, "manager": "me", "operation": "Apply", "fieldsV1": {"f:data": {"f:a": {}}}}
        client.patch(f"{MAPS}/cm", {"metadata": {"managedFields": [mine]}})
        applied = client.apply(f"{MAPS}/cm", {**MAP, "data": {"b": "2"}})
    assert (applied.code, applied.body["data"]) == (200, {"b": "2"})


def test_sets_of_fields() -> None:
    one: Object = {"f:a": {}, "f:b": {".": {}, "f:c": {}}}
    assert union(one, {"f:a": {"f:d": {}}}) == {"f:a": {".": {}, "f:d": {}}, "f:b": {".": {}, "f:c": {}}}
    assert intersection(one, {"f:b": {"f:c": {}}, "f:z": {}}) == {"f:b": {"f:c": {}}}
    assert difference(one, {"f:b": {}}) == {"f:a": {}, "f:b": {"f:c": {}}}
    assert without(one, {"f:b": {}}) == {"f:a": {}}
    assert difference(one, one) is None
    assert list(paths({"f:a": {'k:{"n":"x"}': {"f:b": {}}, 'v:"y"': {}}})) == ['.a[n="x"].b', '.a[="y"]']


@pytest.mark.parametrize(
    ("old", "new", "changed", "gone"),
    [
        ({"a": 1}, {"a": 1}, None, None),
        ({"a": {"b": 1}}, {"a": 1}, {"f:a": {}}, {"f:a": {}}),
        ({"a": [1]}, {"a": [1, 2]}, {"f:a": {}}, None),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, None, {"f:a": {"f:c": {}}}),
        ({}, {"a": {}}, {"f:a": {}}, None),
    ],
)
def test_what_two_versions_differ_in(old: Object, new: Object, changed: Any, gone: Any) -> None:
    assert compared(old, new, ANY) == (changed, gone)
