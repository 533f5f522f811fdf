"""Creates and updates: what is stored, what is refused, and in which words."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kueuecore_apiserver.plain_crds import plain_crd
from tests.unit.apiserver.wire import (
    CRDS,
    JOBS,
    MAPS,
    Object,
    cluster,
    config_map,
    job,
    namespace,
)

UID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_a_new_object_gets_what_the_server_alone_writes() -> None:
    sent = config_map()
    sent["metadata"] |= {"uid": "mine", "creationTimestamp": "2000-01-01T00:00:00Z", "generation": 7, "selfLink": "/x"}
    with cluster() as client:
        reply = client.post(MAPS, sent)
    metadata = reply.body["metadata"]
    assert reply.code == 201
    assert UID.fullmatch(metadata["uid"])
    assert (metadata["namespace"], metadata["resourceVersion"]) == ("lab", "2")
    assert metadata["creationTimestamp"] == "2026-01-01T00:00:00Z"
    assert "selfLink" not in metadata


def test_a_seed_draws_the_same_uids_and_names_again() -> None:
    def drawn() -> list[str]:
        with cluster() as client:
            made = [client.post(MAPS, {**config_map(), "metadata": {"generateName": "m-"}}).body for _ in range(3)]
        return [body["metadata"][key] for body in made for key in ("name", "uid")]

    names = drawn()
    assert names == drawn()
    assert all(re.fullmatch("m-[bcdfghjklmnpqrstvwxz2456789]{5}", name) for name in names[::2])
    assert len(set(names)) == 6


def test_a_name_is_taken_once() -> None:
    with cluster() as client:
        client.post(JOBS, job())
        reply = client.post(JOBS, job())
    assert (reply.code, reply.body["reason"]) == (409, "AlreadyExists")
    assert reply.message == 'jobs.batch "sum" already exists'
    assert reply.body["details"] == {"name": "sum", "group": "batch", "kind": "jobs"}


@pytest.mark.parametrize(
    ("path", "body", "code", "message"),
    [
        (MAPS, config_map("A_b"), 422, 'ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase'),
        (MAPS, config_map(""), 422, "metadata.name: Required value: name or generateName is required"),
        (MAPS, config_map(labels={"a b": "c"}), 422, 'metadata.labels: Invalid value: "a b": name part must'),
        (MAPS, config_map(labels={"a": "c d"}), 422, 'metadata.labels: Invalid value: "c d": a valid label must'),
        (MAPS, config_map(labels={"a": 1}), 400, "unmarshal the value of metadata.labels into a Go value of type map["),
        (MAPS, config_map(finalizers="x"), 400, "unmarshal the value of metadata.finalizers into"),
        (JOBS, {**job(), "spec": []}, 400, "unmarshal the value of spec into a Go value of type struct"),
        (MAPS, config_map(namespace="other"), 400, "the namespace of the provided object does not match"),
        (MAPS, config_map(resourceVersion="1"), 500, "resourceVersion should not be set on objects to be created"),
        (MAPS, config_map(ownerReferences=[{"kind": "Job"}]), 422, 'ownerReferences.uid: Invalid value: "": must not'),
        (MAPS, {**config_map(), "kind": "Secret"}, 400, 'Secret in version "v1" cannot be handled as a ConfigMap'),
        (MAPS, {**config_map(), "apiVersion": "v2"}, 400, "the API version in the data (v2) does not match"),
        (MAPS, {"metadata": {}}, 422, "metadata.name: Required value"),
        (MAPS, [], 400, "the body of the request must be an object"),
        (MAPS, "{", 400, "error decoding the body of the request"),
        (MAPS.replace("lab", "gone"), config_map(), 404, 'namespaces "gone" not found'),
        ("/api/v1/configmaps", config_map(), 405, "the server does not allow this method"),
        (f"{MAPS}/cm", config_map(), 405, "the server does not allow this method"),
        ("/api/v1/namespaces/lab/namespaces", namespace("x"), 404, "could not find the requested resource"),
    ],
)
def test_what_is_wrong_is_refused_in_the_words_of_the_server(path: str, body: Any, code: int, message: str) -> None:
    with cluster() as client:
        reply = client.post(path, body)
        assert (reply.code, reply.body["kind"], reply.body["status"]) == (code, "Status", "Failure")
        assert message in reply.message
        assert client.server.api.list("ConfigMap")[0] == []


def test_bodies_of_other_types_are_refused() -> None:
    with cluster() as client:
        reply = client.ask("POST", MAPS, "x", "application/vnd.kubernetes.protobuf")
        patch = client.patch(f"{MAPS}/cm", {}, "application/json")
        assert client.post(MAPS, config_map()).code == 201
        patch = client.patch(f"{MAPS}/cm", {}, "application/json")
        large = client.post(MAPS, config_map("large", {"a": "x" * (3 * 2**20)}))
    assert (reply.code, reply.body["reason"], patch.code) == (415, "UnsupportedMediaType", 415)
    assert (large.code, large.body["reason"]) == (413, "RequestEntityTooLarge")


def test_yaml_is_read_where_it_is_said() -> None:
    with cluster() as client:
        text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\ndata: {a: b}\n"
        assert client.ask("POST", MAPS, text, "application/yaml").body["data"] == {"a": "b"}


def test_a_namespace_that_ends_takes_nothing_new() -> None:
    with cluster() as client:
        client.post(MAPS, config_map())
        ending = client.delete("/api/v1/namespaces/lab").body
        reply = client.post(JOBS, job())
        changed = client.patch(f"{MAPS}/cm", {"data": {"a": "2"}})
    assert (ending["kind"], ending["status"]["phase"]) == ("Namespace", "Terminating")
    assert (reply.code, reply.body["reason"]) == (403, "Forbidden")
    assert reply.message == (
        'jobs.batch "sum" is forbidden: unable to create new content in namespace lab because it is being terminated'
    )
    assert reply.body["details"]["causes"][0]["reason"] == "NamespaceTerminating"
    assert changed.code == 200


def test_a_stale_update_is_a_conflict() -> None:
    with cluster() as client:
        old = client.post(JOBS, job()).body
        client.patch(f"{JOBS}/sum", {"metadata": {"labels": {"a": "b"}}})
        reply = client.put(f"{JOBS}/sum", old)
        patch = client.patch(f"{JOBS}/sum", {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}})
        other = client.patch(f"{JOBS}/sum", {"metadata": {"uid": "x"}})
    assert (reply.code, reply.body["reason"], patch.code) == (409, "Conflict", 409)
    assert reply.message == (
        'Operation cannot be fulfilled on jobs.batch "sum": the object has been modified; please apply your changes to '
        "the latest version and try again"
    )
    assert reply.body["details"] == {"name": "sum", "group": "batch", "kind": "jobs"}
    assert (other.code, other.message.rpartition("invalid: ")[2]) == (
        422,
        'metadata.uid: Invalid value: "x": field is immutable',
    )


def test_an_update_replaces_and_a_missing_field_goes() -> None:
    with cluster() as client:
        old = client.post(MAPS, config_map(labels={"a": "b"})).body
        del old["metadata"]["labels"]
        new = client.put(f"{MAPS}/cm", {**old, "data": {"b": "2"}}).body
        again = client.put(f"{MAPS}/cm", new).body
        misplaced = client.put(f"{MAPS}/cm", config_map("other"))
        missing = client.put(f"{MAPS}/none", config_map("none"))
    assert (new["data"], "labels" in new["metadata"]) == ({"b": "2"}, False)
    # What changes nothing is no new version.
    assert again["metadata"]["resourceVersion"] == new["metadata"]["resourceVersion"] == "3"
    assert (misplaced.code, missing.code) == (400, 404)
    assert misplaced.message == "the name of the object (other) does not match the name on the URL (cm)"


def test_custom_objects_are_updated_from_a_version_only() -> None:
    things = "/apis/example.com/v1/namespaces/lab/things"
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        client.post(things, thing)
        reply = client.put(f"{things}/t", thing)
    assert (reply.code, reply.causes[0][0]) == (422, "metadata.resourceVersion")


def test_the_status_is_written_through_its_subresource_alone() -> None:
    with cluster() as client:
        made = client.post(JOBS, {**job(), "status": {"active": 1}}).body
        main = client.patch(f"{JOBS}/sum", {"status": {"active": 2}, "metadata": {"labels": {"a": "b"}}}).body
        status = client.patch(f"{JOBS}/sum/status", {"status": {"active": 3}, "spec": {"suspend": False}}).body
        put = client.put(f"{JOBS}/sum/status", {**status, "status": {"active": 1, "ready": 1}, "spec": {}}).body
        nodes = client.get("/api/v1/namespaces/lab/configmaps/x/status").code
    assert (made["status"], main["status"]) == ({}, {})
    assert (status["status"], status["spec"]["suspend"]) == ({"active": 3}, True)
    assert (put["status"], put["spec"]) == ({"active": 1, "ready": 1}, status["spec"])
    assert nodes == 404


def test_metadata_is_written_with_the_status_of_built_in_kinds_alone() -> None:
    things = "/apis/example.com/v1/namespaces/lab/things"
    both = {"metadata": {"labels": {"a": "b"}}, "status": {"x": 1}}
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        client.post(things, {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}})
        client.post(JOBS, job())
        custom, built_in = client.patch(f"{things}/t/status", both).body, client.patch(f"{JOBS}/sum/status", both).body
    assert ("labels" in custom["metadata"], built_in["metadata"]["labels"]) == (False, {"a": "b"})


def test_generations_count_changes_of_the_spec() -> None:
    with cluster() as client:
        client.post(JOBS, job())
        seen = [
            client.patch(path, patch).body["metadata"]["generation"]
            for path, patch in (
                (f"{JOBS}/sum", {"metadata": {"labels": {"a": "b"}}}),
                (f"{JOBS}/sum", {"spec": {"parallelism": 3}}),
                (f"{JOBS}/sum/status", {"status": {"active": 1}}),
                (f"{JOBS}/sum", {"metadata": {"generation": 9}}),
            )
        ]
    assert seen == [1, 2, 2, 2]


def test_a_dry_run_answers_and_stores_nothing() -> None:
    with cluster() as client:
        made = client.post(f"{MAPS}?dryRun=All", config_map())
        version = client.server.api.version
        client.post(MAPS, config_map())
        changed = client.patch(f"{MAPS}/cm?dryRun=All", {"data": {"a": "2"}})
        gone = client.delete(f"{MAPS}/cm?dryRun=All")
        taken = client.post(f"{MAPS}?dryRun=All", config_map())
        there = client.get(f"{MAPS}/cm").body
    assert (made.code, version, changed.body["data"], gone.code, taken.code) == (201, 1, {"a": "2"}, 200, 409)
    assert there["data"] == {"a": "1"}


EVENT: Object = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"generateName": "sum."},
    "involvedObject": {"kind": "Job", "namespace": "lab", "name": "sum"},
    "reason": "Started",
}
EVENTS = "/api/v1/namespaces/lab/events"


def test_an_event_stands_in_the_namespace_of_its_object() -> None:
    with cluster() as client:
        client.post("/api/v1/namespaces", namespace("default"))
        elsewhere = client.post(EVENTS, {**EVENT, "involvedObject": {"namespace": "other"}})
        nowhere = client.post(EVENTS, {**EVENT, "involvedObject": {"kind": "Node"}})
        default = client.post(EVENTS.replace("lab", "default"), {**EVENT, "involvedObject": {"kind": "Node"}})
    assert elsewhere.causes == [("involvedObject.namespace", 'Invalid value: "other": does not match event.namespace')]
    assert (nowhere.code, default.code) == (422, 201)


def test_some_times_have_microseconds() -> None:
    leases = "/apis/coordination.k8s.io/v1/namespaces/lab/leases"
    lease: Object = {"kind": "Lease", "metadata": {"name": "l"}}
    with cluster() as client:
        seconds = client.post(leases, {**lease, "spec": {"renewTime": "2026-01-01T00:00:00Z"}})
        event = client.post(EVENTS, {**EVENT, "eventTime": "2026-01-01T00:00:00.123Z"})
        never = client.post(leases, {**lease, "spec": {"leaseDurationSeconds": 0}})
    assert (seconds.code, event.code, never.causes[0][0]) == (400, 400, "spec.leaseDurationSeconds")
    assert 'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00"' in seconds.message


def test_events_and_leases_are_plain_objects() -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}}
    leases = "/apis/coordination.k8s.io/v1/namespaces/lab/leases"
    spec = {"holderIdentity": "me", "renewTime": "2026-01-01T00:00:00.000000Z"}
    with cluster() as client:
        made = [client.post(EVENTS, EVENT).body["metadata"]["name"] for _ in range(2)]
        held = client.post(leases, {**lease, "spec": spec}).body
        taken = client.put(f"{leases}/l", {**held, "spec": {**spec, "holderIdentity": "you"}}).body
        late = client.put(f"{leases}/l", {**held, "spec": {**spec, "holderIdentity": "they"}})
    assert made[0] != made[1]
    assert (taken["spec"]["holderIdentity"], late.code) == ("you", 409)
