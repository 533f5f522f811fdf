"""Deletions: preconditions, finalizers, dependents, namespaces, and of many."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.apiserver.wire import (
    JOBS,
    MAPS,
    PODS,
    Client,
    Object,
    cluster,
    config_map,
    job,
    namespace,
    pod,
)


def owner(manifest: Object, *, blocks: bool = False) -> Object:
    uid, name = manifest["metadata"]["uid"], manifest["metadata"]["name"]
    ref = {"apiVersion": manifest["apiVersion"], "kind": manifest["kind"], "name": name, "uid": uid}
    return {**ref, "controller": True, "blockOwnerDeletion": blocks}


def names(client: Client, path: str = MAPS) -> list[str]:
    return [item["metadata"]["name"] for item in client.get(path).body["items"]]


def test_what_is_deleted_has_gone() -> None:
    with cluster() as client:
        made = client.post(MAPS, config_map()).body
        gone = client.delete(f"{MAPS}/cm")
        again = client.delete(f"{MAPS}/cm")
    assert (gone.code, gone.body["status"], again.code) == (200, "Success", 404)
    assert gone.body["details"] == {"name": "cm", "kind": "configmaps", "uid": made["metadata"]["uid"]}


def test_preconditions_say_which_object_is_meant() -> None:
    with cluster() as client:
        made = client.post(MAPS, config_map()).body["metadata"]
        wrong = client.delete(f"{MAPS}/cm", {"preconditions": {"uid": "x"}})
        old = client.delete(f"{MAPS}/cm", {"preconditions": {"resourceVersion": "1"}})
        right = client.delete(f"{MAPS}/cm", {"preconditions": {"uid": made["uid"], "resourceVersion": "2"}})
    assert (wrong.code, old.code, right.code) == (409, 409, 200)
    assert wrong.message == (
        'Operation cannot be fulfilled on ConfigMap "cm": the UID in the precondition (x) does not match the UID in '
        f"record ({made['uid']}). The object might have been deleted and then recreated"
    )
    assert "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record (2)" in old.message


def test_finalizers_hold_an_object_and_no_new_ones_come() -> None:
    with cluster() as client:
        client.post(MAPS, config_map(finalizers=["x/a"]))
        waiting = client.delete(f"{MAPS}/cm").body
        again = client.delete(f"{MAPS}/cm").body
        more = client.patch(f"{MAPS}/cm", {"metadata": {"finalizers": ["x/a", "x/b"]}})
        with client.watch(MAPS, f"resourceVersion={waiting['metadata']['resourceVersion']}") as watch:
            last = client.patch(f"{MAPS}/cm", {"metadata": {"finalizers": []}})
            (event,) = watch.take(1)
        after = client.get(f"{MAPS}/cm").code
    assert waiting["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    assert again["metadata"]["resourceVersion"] == waiting["metadata"]["resourceVersion"]
    assert (more.code, more.causes[0][1]) == (
        422,
        "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
        '[]string{"x/b"}',
    )
    assert (last.code, event["type"], after) == (200, "DELETED", 404)


def test_many_are_deleted_by_labels() -> None:
    with cluster() as client:
        for name in "abc":
            client.post(MAPS, config_map(name, labels={"team": "x" if name < "c" else "y"}))
        reply = client.delete(f"{MAPS}?labelSelector=team%3Dx")
        assert [item["metadata"]["name"] for item in reply.body["items"]] == ["a", "b"]
        assert names(client) == ["c"]


def test_dependents_go_after_their_owners() -> None:
    with cluster() as client:
        made = client.post(JOBS, job()).body
        client.post(MAPS, config_map("own", ownerReferences=[owner(made)]))
        below = client.get(f"{MAPS}/own").body
        client.post(MAPS, config_map("below", ownerReferences=[owner(below)]))
        client.post(MAPS, config_map("shared", ownerReferences=[owner(made), {**owner(below), "controller": False}]))
        client.post(MAPS, config_map("free"))
        assert client.server.collect_garbage() == 0
        client.delete(f"{JOBS}/sum", {"propagationPolicy": "Background"})
        before = names(client)
        assert client.server.collect_garbage() > 0
        assert (before, names(client)) == (["below", "free", "own", "shared"], ["free"])


def test_one_owner_is_enough_to_stay() -> None:
    with cluster() as client:
        one, two = (client.post(JOBS, job(name)).body for name in ("one", "two"))
        refs = [owner(one), {**owner(two), "controller": False}]
        client.post(MAPS, config_map("own", ownerReferences=refs))
        client.delete(f"{JOBS}/one")
        client.server.collect_garbage()
        left = client.get(f"{MAPS}/own").body["metadata"]["ownerReferences"]
    assert [reference["name"] for reference in left] == ["two"]


def test_who_names_an_owner_that_never_was_goes() -> None:
    with cluster() as client:
        made = client.post(JOBS, job()).body
        client.post(MAPS, config_map("lost", ownerReferences=[{**owner(made), "uid": "other"}]))
        client.server.collect_garbage()
        assert names(client) == []


@pytest.mark.parametrize("where", ["body", "query"])
def test_in_the_foreground_an_owner_waits_for_who_blocks_it(where: str) -> None:
    options: Any = {"propagationPolicy": "Foreground"} if where == "body" else None
    query = "?propagationPolicy=Foreground" if where == "query" else ""
    with cluster() as client:
        made = client.post(JOBS, job()).body
        held = config_map("held", ownerReferences=[owner(made, blocks=True)], finalizers=["x/a"])
        client.post(MAPS, held)
        deleted = client.delete(f"{JOBS}/sum{query}", options).body
        client.server.collect_garbage()
        waits = client.get(f"{JOBS}/sum").code, "deletionTimestamp" in client.get(f"{MAPS}/held").body["metadata"]
        client.patch(f"{MAPS}/held", {"metadata": {"finalizers": None}})
        client.server.collect_garbage()
        after = client.get(f"{JOBS}/sum").code
    assert deleted["metadata"]["finalizers"] == ["foregroundDeletion"]
    assert (waits, after) == ((200, True), 404)


def test_orphans_lose_their_owner_and_stay() -> None:
    with cluster() as client:
        made = client.post(JOBS, job()).body
        client.post(MAPS, config_map("own", ownerReferences=[owner(made)]))
        client.delete(f"{JOBS}/sum", {"propagationPolicy": "Orphan"})
        client.server.collect_garbage()
        own, code = client.get(f"{MAPS}/own").body, client.get(f"{JOBS}/sum").code
        unknown = client.delete(f"{MAPS}/own", {"propagationPolicy": "Sideways"})
    assert ("ownerReferences" in own["metadata"], code, unknown.code) == (False, 404, 400)


def test_a_namespace_ends_with_all_that_is_in_it() -> None:
    with cluster() as client:
        client.post("/api/v1/namespaces", namespace("other"))
        client.post(MAPS, config_map(finalizers=["x/a"]))
        client.post(JOBS, job())
        client.post(MAPS.replace("lab", "other"), config_map("kept"))
        client.delete("/api/v1/namespaces/lab")
        client.server.collect_garbage()
        waits = client.get("/api/v1/namespaces/lab").code, client.get(f"{JOBS}/sum").code
        client.patch(f"{MAPS}/cm", {"metadata": {"finalizers": None}})
        client.server.collect_garbage()
        after = client.get("/api/v1/namespaces/lab").code
        assert names(client, "/api/v1/configmaps") == ["kept"]
    assert (waits, after) == ((200, 404), 404)


def test_a_namespace_is_finalized_by_its_subresource_alone() -> None:
    with cluster() as client:
        ending = client.delete("/api/v1/namespaces/lab").body
        emptied = {**ending, "spec": {"finalizers": []}}
        ignored = client.put("/api/v1/namespaces/lab", emptied).body
        client.put("/api/v1/namespaces/lab/finalize", {**emptied, "metadata": {"name": "lab"}})
        after = client.get("/api/v1/namespaces/lab").code
    assert (ignored["spec"]["finalizers"], after) == (["kubernetes"], 404)


def test_a_server_may_collect_by_itself() -> None:
    with cluster(collects_garbage=True) as client:
        made = client.post(JOBS, job()).body
        client.post(MAPS, config_map("own", ownerReferences=[owner(made)]))
        client.delete(f"{JOBS}/sum", {"propagationPolicy": "Background"})
        assert names(client) == []
        client.delete("/api/v1/namespaces/lab")
        assert client.get("/api/v1/namespaces/lab").code == 404


def test_a_pod_on_a_node_is_killed_first() -> None:
    with cluster(waits_for_kubelets=True) as client:
        client.post(PODS, pod("running", nodeName="n1", metadata={"finalizers": ["x/a"]}))
        client.post(PODS, pod("pending"))
        gone = client.delete(f"{PODS}/pending")
        marked = client.delete(f"{PODS}/running").body["metadata"]
        touched = client.patch(f"{PODS}/running", {"metadata": {"finalizers": None}})
        stays = client.get(f"{PODS}/running").code
        client.delete(f"{PODS}/running", {"gracePeriodSeconds": 0})
        after = client.get(f"{PODS}/running").code, client.get(f"{PODS}/pending").code
    assert (gone.code, marked["deletionGracePeriodSeconds"], touched.code) == (200, 30, 200)
    assert (stays, after) == (200, (404, 404))
