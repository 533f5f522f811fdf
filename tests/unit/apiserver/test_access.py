"""Who may do what, and what is recorded of it."""

from __future__ import annotations

import pytest

from kueuecore_apiserver import AccessRules
from tests.unit.apiserver.wire import JOBS, MAPS, Client, Object, cluster, config_map, job

RBAC = "rbac.authorization.k8s.io/v1"
ROBOT = "system:serviceaccount:kueue-system:kueuecore"


def role(name: str, *rules: Object, namespace: str = "") -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    kind = "Role" if namespace else "ClusterRole"
    return {"apiVersion": RBAC, "kind": kind, "metadata": metadata, "rules": list(rules)}


def binding(of: Object, subject: Object, namespace: str = "") -> Object:
    metadata = {"name": of["metadata"]["name"], **({"namespace": namespace} if namespace else {})}
    kind = "RoleBinding" if namespace else "ClusterRoleBinding"
    ref = {"kind": of["kind"], "name": of["metadata"]["name"]}
    return {"apiVersion": RBAC, "kind": kind, "metadata": metadata, "roleRef": ref, "subjects": [subject]}


def rule(groups: str, resources: str, verbs: str, **more: object) -> Object:
    return {"apiGroups": groups.split(","), "resources": resources.split(","), "verbs": verbs.split(","), **more}


ACCOUNT: Object = {"kind": "ServiceAccount", "namespace": "kueue-system", "name": "kueuecore"}
JOB_ROLE = role("jobs", rule("batch", "jobs", "get,create,patch"), rule("batch", "jobs/status", "*"))
MAP_ROLE = role("maps", rule("", "configmaps", "get,list,watch", resourceNames=["cm"]), namespace="lab")
PATH_ROLE = role("paths", {"nonResourceURLs": ["/metrics*"], "verbs": ["get"]})


def rules() -> AccessRules:
    manifests = [JOB_ROLE, MAP_ROLE, PATH_ROLE, binding(JOB_ROLE, ACCOUNT), binding(MAP_ROLE, ACCOUNT, "lab")]
    return AccessRules(
        users={"robot": ROBOT, "ann": "ann", "root": "root"},
        manifests=[*manifests, binding(PATH_ROLE, {"kind": "Group", "name": "system:authenticated"})],
        admins=["root"],
    )


def test_what_no_role_allows_is_forbidden_in_the_words_of_the_server() -> None:
    with cluster(access=rules()) as client:
        client.token = "robot"
        everywhere = client.get("/apis/batch/v1/jobs")
        named = client.delete(f"{JOBS}/sum")
        below = client.put("/api/v1/namespaces/lab/finalize", {})
    assert (everywhere.code, everywhere.body["reason"]) == (403, "Forbidden")
    assert everywhere.message == (
        f'jobs.batch is forbidden: User "{ROBOT}" cannot list resource "jobs" in API group "batch" at the cluster scope'
    )
    assert named.message == (
        f'jobs.batch "sum" is forbidden: User "{ROBOT}" cannot delete resource "jobs" in API group "batch" in the '
        'namespace "lab"'
    )
    assert 'cannot update resource "namespaces/finalize"' in below.message


def test_what_a_role_allows_is_done() -> None:
    with cluster(access=rules()) as client:
        root, robot = Client(client.server, token="root"), Client(client.server, token="robot")
        root.post(MAPS, config_map())
        codes = {
            "create": robot.post(JOBS, job()).code,
            "get": robot.get(f"{JOBS}/sum").code,
            "status": robot.patch(f"{JOBS}/sum/status", {"status": {"active": 1}}).code,
            "named": robot.get(f"{MAPS}/cm").code,
            "selected": robot.get(f"{MAPS}?fieldSelector=metadata.name%3Dcm").code,
            "listed": robot.get(MAPS).code,
            "watched": robot.get(f"{MAPS}?watch=true&timeoutSeconds=0").code,
            "elsewhere": robot.get("/api/v1/namespaces/other/configmaps/cm").code,
            "path": robot.get("/metrics").code,
            "discovery": robot.get("/apis/batch/v1").code,
        }
        for entry in (root, robot):
            entry.connection.close()
    assert codes == {
        "create": 201,
        "get": 200,
        "status": 200,
        "named": 200,
        "selected": 200,
        "listed": 403,
        "watched": 403,
        "elsewhere": 403,
        "path": 404,
        "discovery": 200,
    }


def test_strangers_are_unauthorized_and_nobody_is_anonymous() -> None:
    with cluster(access=rules()) as client:
        nobody = client.get(f"{JOBS}/sum")
        client.token = "guessed"
        stranger = client.get(f"{JOBS}/sum")
        client.token = "ann"
        ann = client.get(f"{JOBS}/sum")
    assert (nobody.code, 'User "system:anonymous" cannot get' in nobody.message) == (403, True)
    assert (stranger.code, stranger.body["reason"], ann.code) == (401, "Unauthorized", 403)


def test_a_binding_to_a_missing_role_is_refused() -> None:
    with pytest.raises(ValueError, match="roleRef names ClusterRole jobs, which is not in manifests: add it"):
        AccessRules(users={}, manifests=[binding(JOB_ROLE, ACCOUNT)])
    with pytest.raises(ValueError, match="not Job"):
        AccessRules(users={}, manifests=[{"kind": "Job"}])


def test_requests_are_recorded() -> None:
    with cluster() as client:
        client.post(JOBS, job())
        client.patch(f"{JOBS}/sum/status", {"status": {"active": 1}})
        client.get("/apis/batch/v1/jobs?watch=true&timeoutSeconds=0")
        client.delete(f"{JOBS}/none")
        recorded = [
            (
                request.verb,
                request.group,
                request.resource,
                request.subresource,
                request.namespace,
                request.name,
                request.code,
                request.user_agent,
            )
            for request in client.server.requests
        ]
    assert recorded == [
        ("create", "batch", "jobs", "", "lab", "", 201, "tiny/1.0"),
        ("patch", "batch", "jobs", "status", "lab", "sum", 200, "tiny/1.0"),
        ("watch", "batch", "jobs", "", "", "", 200, "tiny/1.0"),
        ("delete", "batch", "jobs", "", "lab", "none", 404, "tiny/1.0"),
    ]
