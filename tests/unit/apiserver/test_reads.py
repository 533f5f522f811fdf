"""Gets, lists, pages, selectors and tables."""

from __future__ import annotations

import pytest

from kueuecore_apiserver.plain_crds import plain_crd
from kueuecore_apiserver.tables import values_at
from tests.unit.apiserver.wire import (
    CRDS,
    JOBS,
    MAPS,
    PODS,
    START,
    TABLE,
    Client,
    cluster,
    config_map,
    job,
    namespace,
    pod,
)

MINUTE = 60 * 10**9


def names(body: dict[str, object]) -> list[str]:
    items = body["items"]
    assert isinstance(items, list)
    return [item["metadata"]["name"] for item in items]


def test_a_missing_object_is_not_found_in_the_words_of_the_server() -> None:
    with cluster() as client:
        reply = client.get(f"{JOBS}/sum")
    assert (reply.code, reply.body["reason"], reply.message) == (404, "NotFound", 'jobs.batch "sum" not found')
    assert reply.body["details"] == {"name": "sum", "group": "batch", "kind": "jobs"}


def test_lists_are_of_a_namespace_or_of_all() -> None:
    with cluster() as client:
        client.post("/api/v1/namespaces", namespace("other"))
        client.post(MAPS, config_map("b"))
        client.post(MAPS, config_map("a"))
        client.post(MAPS.replace("lab", "other"), config_map("c"))
        assert names(client.get(MAPS).body) == ["a", "b"]
        whole = client.get("/api/v1/configmaps").body
    assert names(whole) == ["a", "b", "c"]
    assert (whole["kind"], whole["apiVersion"]) == ("ConfigMapList", "v1")
    # Built-in objects do not say what they are in a list.
    assert "kind" not in whole["items"][0]


def test_custom_objects_say_what_they_are_in_a_list() -> None:
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        things = "/apis/example.com/v1/namespaces/lab/things"
        client.post(things, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}})
        (item,) = client.get(things).body["items"]
    assert (item["kind"], item["apiVersion"]) == ("Thing", "example.com/v1")


def test_pages_show_the_list_as_it_was_at_first() -> None:
    with cluster() as client:
        for index in range(5):
            client.post(MAPS, config_map(f"m{index}"))
        first = client.get(f"{MAPS}?limit=2").body
        client.delete(f"{MAPS}/m3")
        client.post(MAPS, config_map("m2a"))
        second = client.get(f"{MAPS}?limit=2&continue={first['metadata']['continue']}").body
        third = client.get(f"{MAPS}?limit=2&continue={second['metadata']['continue']}").body
    assert [names(entry) for entry in (first, second, third)] == [["m0", "m1"], ["m2", "m3"], ["m4"]]
    assert first["metadata"]["remainingItemCount"] == 3
    assert "continue" not in third["metadata"]
    assert len({entry["metadata"]["resourceVersion"] for entry in (first, second, third)}) == 1


def test_a_page_is_gone_once_changes_are_compacted() -> None:
    with cluster() as client:
        for index in range(3):
            client.post(MAPS, config_map(f"m{index}"))
        first = client.get(f"{MAPS}?limit=2").body
        client.post(MAPS, config_map("later"))
        client.server.compact()
        reply = client.get(f"{MAPS}?limit=2&continue={first['metadata']['continue']}")
        nonsense = client.get(f"{MAPS}?continue=%21")
    assert (reply.code, reply.body["reason"], nonsense.code) == (410, "Expired", 400)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("team=a", ["m1"]),
        ("team==a", ["m1"]),
        ("team!=a", ["m2", "m3"]),
        ("team", ["m1", "m2"]),
        ("!team", ["m3"]),
        ("team in (a, b)", ["m1", "m2"]),
        ("team notin (a)", ["m2", "m3"]),
        ("team in (a,b),size>3", ["m2"]),
        ("size<4", ["m1"]),
        ("", ["m1", "m2", "m3"]),
    ],
)
def test_labels_select(selector: str, found: list[str]) -> None:
    with cluster() as client:
        client.post(MAPS, config_map("m1", labels={"team": "a", "size": "3"}))
        client.post(MAPS, config_map("m2", labels={"team": "b", "size": "4"}))
        client.post(MAPS, config_map("m3"))
        quoted = selector.replace(" ", "%20").replace(">", "%3E").replace("<", "%3C")
        assert names(client.get(f"{MAPS}?labelSelector={quoted}").body) == found


def test_fields_select() -> None:
    with cluster() as client:
        client.post(PODS, pod("a", nodeName="n1"))
        client.post(PODS, pod("b"))
        assert names(client.get(f"{PODS}?fieldSelector=metadata.name%3Db").body) == ["b"]
        assert names(client.get("/api/v1/pods?fieldSelector=spec.nodeName=n1,metadata.namespace!=x").body) == ["a"]
        reply = client.get(f"{PODS}?fieldSelector=spec.containers=x")
        broken = client.get(f"{PODS}?labelSelector=a=b=c")
    assert (reply.code, reply.message) == (400, "field label not supported: spec.containers")
    assert broken.code == 400


def test_a_version_that_is_not_there_yet_times_out() -> None:
    with cluster() as client:
        late = client.get(f"{MAPS}?resourceVersion=999")
        wrong = client.get(f"{MAPS}?resourceVersion=x")
    assert (late.code, late.body["reason"]) == (504, "Timeout")
    assert late.message == "Timeout: Too large resource version: 999, current: 1"
    assert wrong.code == 400


def test_a_table_has_the_name_and_the_age() -> None:
    with cluster() as client:
        client.post(JOBS, job())
        client.server.api.now = START + 5 * MINUTE
        table = client.get(JOBS, TABLE).body
        one = client.get(f"{JOBS}/sum", TABLE).body
    assert (table["kind"], [definition["name"] for definition in table["columnDefinitions"]]) == (
        "Table",
        ["Name", "Age"],
    )
    assert [row["cells"] for row in table["rows"]] == [["sum", "5m"]] == [row["cells"] for row in one["rows"]]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"


def printing(client: Client) -> None:
    crd = plain_crd("example.com/v1", "Thing")
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = [
        {"name": "Queue", "type": "string", "jsonPath": ".spec.queueName"},
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Ready')].status"},
        {"name": "Pods", "type": "integer", "jsonPath": ".spec.counts[0]", "priority": 1},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    client.post(CRDS, crd)


def test_a_table_has_the_columns_of_the_definition() -> None:
    things = "/apis/example.com/v1/namespaces/lab/things"
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    with cluster() as client:
        printing(client)
        client.post(things, {**thing, "spec": {"queueName": "q", "counts": [7]}})
        status = {"status": {"conditions": [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "True"}]}}
        client.patch(f"{things}/t/status", status)
        table = client.get(things, TABLE).body
    assert [row["cells"] for row in table["rows"]] == [["t", "q", "True", 7, "0s"]]
    assert [definition["priority"] for definition in table["columnDefinitions"]] == [0, 0, 0, 1, 0]


def test_metadata_alone_is_given_to_who_wants_no_more() -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
    with cluster() as client:
        client.post(MAPS, config_map())
        listed = client.get(MAPS, accept).body
    assert listed["kind"] == "PartialObjectMetadataList"
    assert [item.keys() for item in listed["items"]] == [{"metadata", "kind", "apiVersion"}]


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.b", [1]),
        (".items[*].name", ["x", "y"]),
        (".items[1].name", ["y"]),
        (".items[-1].name", ["y"]),
        (".items[5].name", []),
        (".metadata.annotations.example\\.com/x", ["z"]),
        (".metadata.annotations['example.com/x']", ["z"]),
        ('.items[?(@.name=="y")].v', [2]),
        (".nothing.at.all", []),
    ],
)
def test_paths_of_columns(path: str, found: list[object]) -> None:
    value = {
        "a": {"b": 1},
        "items": [{"name": "x", "v": 1}, {"name": "y", "v": 2}],
        "metadata": {"annotations": {"example.com/x": "z"}},
    }
    assert values_at(value, path) == found
