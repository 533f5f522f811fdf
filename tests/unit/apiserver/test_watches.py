"""Watches: what they send, when, and how they end."""

from __future__ import annotations

import time

from kueuecore_apiserver import Fault, Request
from tests.unit.apiserver.wire import MAPS, TABLE, Client, cluster, config_map, events, namespace


def newest(client: Client, path: str = MAPS) -> str:
    return str(client.get(path).body["metadata"]["resourceVersion"])


def test_a_watch_sends_what_happens_after_its_version() -> None:
    with cluster() as client:
        client.post(MAPS, config_map("old"))
        version = newest(client)
        client.post(MAPS, config_map("between"))
        with client.watch(MAPS, f"resourceVersion={version}") as watch:
            client.patch(f"{MAPS}/old", {"data": {"a": "2"}})
            client.delete(f"{MAPS}/between")
            seen = watch.take(3)
    assert events(seen) == [("ADDED", "between"), ("MODIFIED", "old"), ("DELETED", "between")]
    versions = [int(raw["object"]["metadata"]["resourceVersion"]) for raw in seen]
    assert versions == sorted(set(versions))
    assert seen[0]["object"]["kind"] == "ConfigMap"


def test_a_watch_without_a_version_begins_with_what_there_is() -> None:
    with cluster() as client:
        client.post(MAPS, config_map("b"))
        client.post(MAPS, config_map("a"))
        with client.watch("/api/v1/configmaps", "timeoutSeconds=0") as watch:
            assert events(watch.rest()) == [("ADDED", "a"), ("ADDED", "b")]


def test_events_come_within_milliseconds() -> None:
    with cluster() as client, client.watch(MAPS, "timeoutSeconds=5") as watch:
        delays = []
        for index in range(20):
            began = time.monotonic()
            client.post(MAPS, config_map(f"m{index}"))
            assert watch.next() is not None
            delays.append(time.monotonic() - began)
    assert sorted(delays)[10] < 0.2


def test_what_others_do_in_the_process_is_watched_too() -> None:
    with cluster() as client, client.watch(MAPS, "timeoutSeconds=5") as watch:
        client.server.api.create({**config_map("direct"), "metadata": {"name": "direct", "namespace": "lab"}})
        event = watch.next()
    assert event is not None
    assert events([event]) == [("ADDED", "direct")]


def test_a_watch_is_of_one_namespace_and_of_one_name() -> None:
    with cluster() as client:
        client.post("/api/v1/namespaces", namespace("other"))
        query = "fieldSelector=metadata.name%3Da"
        with client.watch(MAPS) as here, client.watch("/api/v1/configmaps", query) as named:
            client.post(MAPS.replace("lab", "other"), config_map("a"))
            client.post(MAPS, config_map("a"))
            client.post(MAPS, config_map("b"))
            assert events(here.take(2)) == [("ADDED", "a"), ("ADDED", "b")]
            assert events(named.take(2)) == [("ADDED", "a"), ("ADDED", "a")]


def test_an_object_comes_into_a_selection_and_leaves_it() -> None:
    with cluster() as client:
        client.post(MAPS, config_map("m"))
        query = f"labelSelector=team%3Da&resourceVersion={newest(client)}"
        with client.watch(MAPS, query) as watch:
            for data, team in (("2", "a"), ("3", "a"), ("4", "b"), ("5", "b")):
                client.patch(f"{MAPS}/m", {"data": {"a": data}, "metadata": {"labels": {"team": team}}})
            seen = watch.take(3)
    assert [(raw["type"], raw["object"]["data"]["a"]) for raw in seen] == [
        ("ADDED", "2"),
        ("MODIFIED", "3"),
        ("DELETED", "3"),
    ]
    # What has left is as it was, with the version of the event.
    assert int(seen[2]["object"]["metadata"]["resourceVersion"]) == 5


def test_a_watch_ends_in_time_with_a_bookmark() -> None:
    query = "allowWatchBookmarks=true&resourceVersion=1&timeoutSeconds=1"
    with cluster() as client, client.watch(MAPS, query) as watch:
        client.post("/api/v1/namespaces", namespace("other"))
        seen = watch.rest()
    assert [object_["type"] for object_ in seen] == ["BOOKMARK"]
    assert seen[0]["object"]["metadata"]["resourceVersion"] == "2"
    assert not watch.is_broken


def test_bookmarks_come_again_and_again() -> None:
    with cluster(bookmark_seconds=0.02) as client:
        with client.watch(MAPS, "allowWatchBookmarks=true&timeoutSeconds=5") as watch:
            assert [watch.next()["type"] for _ in range(3)] == ["BOOKMARK"] * 3  # type: ignore[index]
        with client.watch(MAPS, "timeoutSeconds=5") as watch:
            assert watch.is_silent(0.1)


def test_a_watch_from_a_forgotten_version_gets_an_error_event() -> None:
    with cluster() as client:
        client.post(MAPS, config_map("m"))
        client.server.compact()
        with client.watch(MAPS, "resourceVersion=1") as watch:
            (event,) = watch.rest()
        with client.watch(MAPS, "resourceVersion=2&timeoutSeconds=0") as fresh:
            assert (fresh.code, fresh.rest()) == (200, [])
    assert (watch.code, event["type"]) == (200, "ERROR")
    assert (event["object"]["code"], event["object"]["reason"]) == (410, "Expired")
    assert event["object"]["message"] == "too old resource version: 1 (2)"
    assert client.server.requests[-2].code == 410


def test_open_watches_outlive_a_compaction() -> None:
    with cluster() as client, client.watch(MAPS, "timeoutSeconds=5") as watch:
        client.server.compact()
        client.post(MAPS, config_map("m"))
        event = watch.next()
        assert event is not None
        assert event["type"] == "ADDED"


def test_old_changes_are_forgotten_and_new_ones_kept() -> None:
    with cluster(keep_changes=5) as client:
        client.post(MAPS, config_map("m"))
        for index in range(20):
            client.patch(f"{MAPS}/m", {"data": {"a": str(index)}})
        version = int(newest(client))
        with client.watch(MAPS, "resourceVersion=2&timeoutSeconds=0") as old:
            assert [object_["type"] for object_ in old.rest()] == ["ERROR"]
        with client.watch(MAPS, f"resourceVersion={version - 5}&timeoutSeconds=0") as new:
            assert len(new.rest()) == 5
        assert len(client.server.api.history) <= 11


def test_a_table_is_watched_as_a_table() -> None:
    with cluster() as client:
        client.post(MAPS, config_map("m"))
        reply = client.ask("GET", f"{MAPS}?watch=true&timeoutSeconds=0", accept=TABLE)
    assert reply.body["object"]["rows"][0]["cells"][0] == "m"


def test_watches_end_on_request() -> None:
    faults = {
        "few": Fault(watch_ends_after=2),
        "broken": Fault(watch_ends_after=1, watch_breaks=True),
        "idle": Fault(watch_ends_when_idle=True),
        "gone": Fault(watch_is_gone=True),
    }

    def plan(request: Request) -> Fault | None:
        return faults.get(request.query.get("pretty", ""))

    with cluster(faults=plan) as client:
        for name in "abc":
            client.post(MAPS, config_map(name))
        seen = {}
        for name in faults:
            with client.watch(MAPS, f"pretty={name}&resourceVersion=1") as watch:
                seen[name] = ([object_["type"] for object_ in watch.rest()], watch.is_broken)
    assert seen == {
        "few": (["ADDED"] * 2, False),
        "broken": (["ADDED"], True),
        "idle": (["ADDED"] * 3, False),
        "gone": (["ERROR"], False),
    }


def test_a_watch_can_not_list_first() -> None:
    with cluster() as client:
        reply = client.get(f"{MAPS}?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    assert (reply.code, reply.causes[0][0]) == (422, "sendInitialEvents")


def test_a_server_goes_on_where_it_stopped() -> None:
    with cluster() as client:
        client.post(MAPS, config_map("before"))
        version = newest(client)
        client.connection.close()
        client.server.stop()
        client.server.start()
        client.post(MAPS, config_map("after"))
        with client.watch(MAPS, f"resourceVersion={version}") as watch:
            assert events(watch.take(1)) == [("ADDED", "after")]


def test_a_server_that_stops_ends_its_watches() -> None:
    with cluster() as client, client.watch(MAPS, "timeoutSeconds=60") as watch:
        began = time.monotonic()
        client.server.stop()
        assert watch.rest() == []
        assert time.monotonic() - began < 2
