"""Reviews of access: who may do what, as `kubectl auth can-i` asks."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from kueuecore.api_server import ApiServer
from kueuecore_apiserver import AccessRules, HttpApiServer

Json = dict[str, Any]
GROUP = "authorization.k8s.io"
ACCOUNT = "system:serviceaccount:lab:runner"
MANIFESTS: list[Json] = [
    {
        "kind": "Role",
        "metadata": {"name": "runner", "namespace": "lab"},
        "rules": [{"apiGroups": ["batch"], "resources": ["jobs", "jobs/status"], "verbs": ["patch"]}],
    },
    {
        "kind": "RoleBinding",
        "metadata": {"name": "runner", "namespace": "lab"},
        "roleRef": {"kind": "Role", "name": "runner"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "lab", "name": "runner"}],
    },
    {
        "kind": "ClusterRole",
        "metadata": {"name": "all-accounts"},
        "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}],
    },
    {
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "all-accounts"},
        "roleRef": {"kind": "ClusterRole", "name": "all-accounts"},
        "subjects": [{"kind": "Group", "name": "system:serviceaccounts"}],
    },
]


def server() -> HttpApiServer:
    access = AccessRules(users={"runner": ACCOUNT, "root": "root"}, manifests=MANIFESTS, admins=["root"])
    return HttpApiServer(ApiServer(), access=access)


def asked(url: str, token: str, spec: Json, *, kind: str = "SelfSubjectAccessReview") -> Any:
    """The answer to a review: whether it is allowed, or the code and reason of a refusal."""
    body = json.dumps({"apiVersion": f"{GROUP}/v1", "kind": kind, "spec": spec}).encode()
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    request = urllib.request.Request(f"{url}/apis/{GROUP}/v1/{kind.lower()}s", body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            review = json.load(answer)
            assert (answer.status, review["kind"], review["spec"]) == (201, kind, spec)
            return review["status"]["allowed"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["reason"]


def whose(url: str, token: str, *, by: str = "root") -> Any:
    """The status of a TokenReview, or the code and message of a refusal."""
    group = "authentication.k8s.io"
    body = json.dumps({"apiVersion": f"{group}/v1", "kind": "TokenReview", "spec": {"token": token}}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {by}"}
    request = urllib.request.Request(f"{url}/apis/{group}/v1/tokenreviews", body, headers, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)["status"]
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)["message"]


def test_a_token_is_turned_into_its_user_by_who_may_ask() -> None:
    with server().serve() as url:
        found = whose(url, "runner")
        namespace = ACCOUNT.split(":")[2]
        groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
        assert (found["authenticated"], found["user"]) == (True, {"username": ACCOUNT, "groups": groups})
        unknown = whose(url, "nobody's")
        assert (unknown.get("authenticated"), unknown["user"], bool(unknown["error"])) == (None, {}, True)
        assert whose(url, "") == (400, "token is required for TokenReview in authentication")
        assert whose(url, "root", by="runner")[0] == 403


def jobs(verb: str, **more: str) -> Json:
    return {"resourceAttributes": {"verb": verb, "group": "batch", "resource": "jobs", **more}}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (jobs("patch", namespace="lab"), True),
        (jobs("patch", namespace="lab", subresource="status"), True),
        (jobs("patch", namespace="lab", subresource="finalizers"), False),
        (jobs("patch"), False),
        (jobs("delete", namespace="lab"), False),
        ({"resourceAttributes": {"verb": "list", "resource": "nodes"}}, True),
        ({"nonResourceAttributes": {"verb": "get", "path": "/metrics"}}, False),
        ({}, (422, "Invalid")),
    ],
)
def test_an_account_asks_about_itself(spec: Json, expected: Any) -> None:
    with server().serve() as url:
        assert asked(url, "runner", spec) == expected


def test_others_are_asked_about_by_who_may() -> None:
    spec = {"user": ACCOUNT, "groups": ["system:serviceaccounts"], **jobs("patch", namespace="lab")}
    nodes = {"resourceAttributes": {"verb": "list", "resource": "nodes"}}
    with server().serve() as url:
        kind = "SubjectAccessReview"
        assert asked(url, "root", spec, kind=kind) is True
        assert asked(url, "root", {**spec, **jobs("delete", namespace="lab")}, kind=kind) is False
        # Groups are those that the review names, not those that the name implies.
        assert asked(url, "root", {"user": ACCOUNT, "groups": [], **nodes}, kind=kind) is False
        assert asked(url, "root", {"groups": ["system:serviceaccounts"], **nodes}, kind=kind) is True
        assert asked(url, "root", nodes, kind=kind) == (422, "Invalid")
        assert asked(url, "runner", spec, kind=kind) == (403, "Forbidden")
        assert asked(url, "", jobs("get")) == (403, "Forbidden")


def test_without_rules_everybody_may_do_anything_and_nothing_is_stored() -> None:
    api = ApiServer()
    with HttpApiServer(api).serve() as url:
        version = api.version
        assert asked(url, "", jobs("delete")) is True
        assert api.version == version
