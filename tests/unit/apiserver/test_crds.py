"""Kinds that CustomResourceDefinitions add and take away, and what checks their objects."""

from __future__ import annotations

from collections.abc import Iterable

from kueuecore._json import JsonObject
from kueuecore.api_server import RefusedError
from kueuecore.webhooks import admit
from kueuecore_apiserver.plain_crds import framework_crds, kueue_crds, plain_crd
from tests.unit.apiserver.wire import CRDS, JOBS, Object, cluster, job

THINGS = "/apis/example.com/v1/namespaces/lab/things"
THING: Object = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}}
KUEUE = "kueue.x-k8s.io/v1beta2"


def test_a_kind_comes_and_goes_with_its_definition() -> None:
    with cluster() as client:
        before = client.get(THINGS).code
        made = client.post(CRDS, plain_crd("example.com/v1", "Thing")).body
        created = client.post(THINGS, THING).code
        discovered = client.get("/apis/example.com/v1").body["resources"]
        client.delete(f"{CRDS}/things.example.com")
        after = client.get(THINGS).code
        assert client.server.api.list("Thing")[0] == []
    assert (before, created, after) == (404, 201, 404)
    assert {condition["type"]: condition["status"] for condition in made["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }
    assert made["status"]["storedVersions"] == ["v1"]
    assert [resource["name"] for resource in discovered] == ["things", "things/status"]


def test_a_definition_waits_for_objects_that_wait() -> None:
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        client.post(THINGS, {**THING, "metadata": {"name": "t", "finalizers": ["x/a"]}})
        deleted = client.delete(f"{CRDS}/things.example.com").body
        waits = client.get(f"{THINGS}/t").code
        client.patch(f"{THINGS}/t", {"metadata": {"finalizers": None}})
        client.server.collect_garbage()
        after = client.get(THINGS).code, client.get(f"{CRDS}/things.example.com").code
    assert deleted["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert (waits, after) == (200, (404, 404))


def test_custom_objects_say_what_they_are() -> None:
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        nameless = client.post(THINGS, {"metadata": {"name": "t"}})
        versionless = client.post(THINGS, {"kind": "Thing", "metadata": {"name": "t"}})
    assert (nameless.code, versionless.code) == (400, 400)
    assert nameless.message == "Object 'Kind' is missing in the body of the request"


def test_a_definition_that_contradicts_itself_is_refused() -> None:
    crd = plain_crd("example.com/v1", "Thing")
    wrong = {**crd, "metadata": {"name": "x"}, "spec": {**crd["spec"], "scope": "World", "versions": []}}
    with cluster() as client:
        fields = [place for place, _ in client.post(CRDS, wrong).causes]
    assert fields == ["metadata.name", "spec.scope", "spec.versions"]


def test_kinds_of_one_name_in_two_groups_are_kept_apart() -> None:
    other: Object = {"apiVersion": "example.com/v1", "kind": "Job", "metadata": {"name": "sum"}}
    path = JOBS.replace("batch", "example.com")
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Job"))
        assert client.post(JOBS, job()).code == client.post(path, other).code == 201
        with client.watch(path, "resourceVersion=3") as watch:
            client.patch(f"{JOBS}/sum", {"metadata": {"labels": {"a": "b"}}})
            client.patch(f"{path}/sum", {"spec": {"x": 1}})
            (_, event) = watch.take(2)
        client.delete(f"{path}/sum")
        assert client.get(f"{JOBS}/sum").code == 200
    assert event["object"]["spec"] == {"x": 1}


def test_a_kind_keeps_its_objects_when_another_of_its_name_goes() -> None:
    theirs = THINGS.replace("example.com", "their.io")
    other = plain_crd("their.io/v1", "Thing")
    with cluster() as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        client.post(CRDS, other)
        client.post(theirs, {**THING, "apiVersion": "their.io/v1"})
        client.delete(f"{CRDS}/things.example.com")
        client.patch(f"{CRDS}/things.their.io", {"spec": {"names": {"shortNames": ["th"]}}})
        assert client.get(f"{theirs}/t").code == 200


def two_versions(strategy: str) -> Object:
    crd = plain_crd("example.com/v1", "Thing")
    (served,) = crd["spec"]["versions"]
    crd["spec"] |= {
        "versions": [served, {**served, "name": "v1alpha1", "storage": False}],
        "conversion": {"strategy": strategy},
    }
    return crd


def test_versions_that_differ_by_name_alone_are_converted() -> None:
    alpha = THINGS.replace("/v1/", "/v1alpha1/")
    with cluster() as client:
        client.post(CRDS, two_versions("None"))
        made = client.post(alpha, {**THING, "apiVersion": "example.com/v1alpha1", "spec": {"x": 1}}).body
        stored = client.get(f"{THINGS}/t").body
        with client.watch(alpha) as watch:
            (event,) = watch.take(1)
    assert (made["apiVersion"], stored["apiVersion"]) == ("example.com/v1alpha1", "example.com/v1")
    assert event["object"] == made


def test_versions_that_a_webhook_converts_are_refused_plainly() -> None:
    with cluster() as client:
        client.post(CRDS, two_versions("Webhook"))
        reply = client.get(THINGS.replace("/v1/", "/v1alpha1/"))
        assert client.get(THINGS).code == 200
    assert reply.code == 500
    assert reply.message == (
        "conversion webhook for example.com/v1, Kind=Thing failed: this server converts nothing; use example.com/v1"
    )


def test_kueues_older_version_is_never_mistaken_for_the_newer_one() -> None:
    crd = next(kueue_crd for kueue_crd in kueue_crds() if kueue_crd["spec"]["names"]["kind"] == "LocalQueue")
    (served,) = crd["spec"]["versions"]
    crd["spec"]["versions"] = [served, {**served, "name": "v1beta1", "storage": False}]
    with cluster() as client:
        client.post(CRDS, crd)
        reply = client.get("/apis/kueue.x-k8s.io/v1beta1/localqueues")
    assert (reply.code, reply.message.endswith("use kueue.x-k8s.io/v1beta2")) == (500, True)


class SmallNumbers:
    """A schema: `spec.n` is a small number, 1 by default."""

    def __init__(self, crd: JsonObject, version: str) -> None:
        self.asked = crd, version

    def stored(self, new: JsonObject, old: JsonObject | None = None, *, subresource: str = "") -> JsonObject:
        spec = new.get("spec")
        number = spec.get("n", 1) if isinstance(spec, dict) else 1
        if not isinstance(number, int) or number > 9:
            raise RefusedError(422, f"spec.n: Invalid value: {number}")
        return {**new, "spec": {"n": number}}


def test_schemas_prune_default_and_refuse() -> None:
    with cluster(schemas=SmallNumbers) as client:
        client.post(CRDS, plain_crd("example.com/v1", "Thing"))
        made = client.post(THINGS, {**THING, "spec": {"other": 1}}).body
        large = client.patch(f"{THINGS}/t", {"spec": {"n": 10}})
        applied = client.apply(f"{THINGS}/t", {**THING, "spec": {"n": 5}}, force=True).body
        built_in = client.post(JOBS, job()).code
    assert (made["spec"], large.code, applied["spec"], built_in) == ({"n": 1}, 422, {"n": 5}, 201)


def test_kueues_webhooks_are_asked() -> None:
    queue: Object = {
        "apiVersion": KUEUE,
        "kind": "LocalQueue",
        "metadata": {"name": "q"},
        "spec": {"clusterQueue": "c"},
    }
    queues = f"/apis/{KUEUE}/namespaces/lab/localqueues"
    labelled = job(suspend=False)
    labelled["metadata"]["labels"] = {"kueue.x-k8s.io/queue-name": "q"}
    with cluster(webhooks=admit) as client:
        client.server.load([*kueue_crds(), *framework_crds()])
        made = client.post(queues, queue).body
        suspended = client.post(JOBS, labelled).body
        wrong = client.post(queues, {**queue, "metadata": {"name": "r"}, "spec": {"clusterQueue": "C_"}})
        moved = client.patch(f"{JOBS}/sum", {"spec": {"suspend": False}, "metadata": {"labels": {"x": "y"}}})
    assert made["spec"]["stopPolicy"] == "None"
    assert suspended["spec"]["suspend"] is True
    assert (wrong.code, moved.code) == (422, 200)


class Warns:
    """A webhook that warns of everything."""

    def __init__(self, new: JsonObject, *, old: JsonObject | None, around: Iterable[JsonObject]) -> None:
        self.object, self.warnings = new, ('mind the "gap"', "again")


def test_warnings_of_webhooks_are_in_the_head_of_the_answer() -> None:
    with cluster(webhooks=Warns) as client:
        made = client.post(JOBS, job())
        read = client.get(f"{JOBS}/sum")
    assert made.headers["Warning"] == '299 - "mind the \\"gap\\"", 299 - "again"'
    assert "Warning" not in read.headers


def test_kinds_may_be_away_for_a_moment() -> None:
    with cluster() as client:
        client.server.kinds.hide("batch", "jobs")
        away = client.get(JOBS)
        names = [resource["name"] for resource in client.get("/apis/apps/v1").body["resources"]]
        client.server.kinds.show("batch", "jobs")
        assert (away.code, client.get(JOBS).code, "deployments" in names) == (404, 200, True)
