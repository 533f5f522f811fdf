"""`kueuecore serve --preflight` finds what stands in the way, and the commands that it prints mend it."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueuecore.cli import main
from kueuecore.kubernetes.preflight.leftovers import _is_about
from kueuecore_apiserver import AccessRules, HttpApiServer
from kueuecore_apiserver.crds import crds
from tests.unit.kubernetes.clusters import KUEUE, served
from tests.unit.kubernetes.deployed import KUBECONFIG, USER, allowed, deployed, rights
from tests.unit.kubernetes.preflight_clusters import (
    configuration,
    converted_crds,
    deployment,
    endpoints,
    jobs_webhook,
    lease,
    visibility,
)

Json = dict[str, Any]
VALIDATING = "ValidatingWebhookConfiguration"


def asked(server: HttpApiServer, capsys: pytest.CaptureFixture[str], *more: str) -> tuple[int, Json]:
    capsys.readouterr()
    code = main(["serve", "--preflight", "--server", server.url, "--leader-elect=true", "-o", "json", *more])
    return code, json.loads(capsys.readouterr().out)


def found(server: HttpApiServer, capsys: pytest.CaptureFixture[str], check: str, *more: str) -> list[tuple[Any, ...]]:
    """Level, object and mends of what a check has found."""
    code, document = asked(server, capsys, *more)
    assert (code == 0) is document["clear"] is not any(row["level"] == "error" for row in document["obstacles"])
    rows = [row for row in document["obstacles"] if row["check"] == check]
    return [(row["level"], row["object"], *row["mends"]) for row in rows]


def test_a_cluster_in_which_nothing_is_in_the_way_is_0_and_nothing_is_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with served() as server:
        server.load([jobs_webhook(), endpoints("kueue-webhook-service")])
        before = server.call(lambda api: api.version)
        code, document = asked(server, capsys)
        assert (code, document["clear"], document["serverVersion"]) == (0, True, "v1.36.0")
        assert [(row["level"], row["check"]) for row in document["obstacles"]] == [("note", "kinds")]
        assert server.call(lambda api: api.version) == before
        verbs = {(request.verb, request.resource) for request in server.requests if request.verb not in ("get", "list")}
        assert verbs == {("create", "selfsubjectaccessreviews")}


@pytest.mark.parametrize("kind", [VALIDATING, "MutatingWebhookConfiguration"])
@pytest.mark.parametrize("ready", [False, "nobody"])
def test_webhooks_that_nobody_answers_are_deleted(
    kind: str, ready: bool | str, capsys: pytest.CaptureFixture[str]
) -> None:
    with served() as server:
        server.load([configuration(kind, "kueue")])
        if ready is False:
            server.load([endpoints("kueue-webhook-service", ready=False)])
        mend = f"kubectl delete {kind.lower()} kueue"
        assert found(server, capsys, "webhooks") == [("error", f"{kind} kueue", mend)]
        server.call(lambda api: api.delete(kind, "kueue"))
        assert found(server, capsys, "webhooks") == []


def test_webhooks_that_somebody_answers_stay(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as server:
        # A slice that does not say whether it is ready is.
        server.load([configuration(VALIDATING, "kueue"), endpoints("kueue-webhook-service", ready=None)])
        assert found(server, capsys, "webhooks") == []


def test_other_webhooks_matter_if_they_are_about_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    rules = [{"apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"], "operations": ["*"]}]
    maps = [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}]
    with served() as server:
        server.load([configuration(VALIDATING, "policy", "policy", rules=rules)])
        server.load([configuration(VALIDATING, "ignored", "policy", rules=rules, failurePolicy="Ignore")])
        server.load([configuration(VALIDATING, "maps", "policy", rules=maps)])
        mend = "kubectl -n kueue-system get endpointslices -l kubernetes.io/service-name=policy"
        expected = [("error", f"{VALIDATING} policy", mend), ("warning", f"{VALIDATING} ignored", mend)]
        assert found(server, capsys, "webhooks") == expected


@pytest.mark.parametrize("key", ["apiGroups", "resources"])
def test_rules_of_webhooks_that_are_nonsense_are_about_nothing(key: str) -> None:
    rule: dict[str, Any] = {"apiGroups": ["batch"], "resources": ["jobs"]}
    assert _is_about({"rules": [rule]}, [("batch", "jobs")])
    assert not _is_about({"rules": [{**rule, key: [[], {}, None]}, None]}, [("batch", "jobs")])


def test_its_own_webhooks_only_wait_for_its_pods(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as server:
        server.load([configuration(VALIDATING, "ours", "kueuecore-webhooks"), visibility(service="kueuecore")])
        mend = "kubectl -n kueue-system rollout status deployment/kueuecore"
        assert found(server, capsys, "webhooks") == [("warning", f"{VALIDATING} ours", mend)]
        name = "APIService v1beta2.visibility.kueue.x-k8s.io"
        assert found(server, capsys, "visibility") == [("warning", name, mend)]


def test_the_visibility_api_that_nobody_serves_is_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as server:
        server.load([visibility("v1beta1"), visibility("v1beta2", "alive"), endpoints("alive")])
        name = "v1beta1.visibility.kueue.x-k8s.io"
        mend = f"kubectl delete apiservice {name}"
        assert found(server, capsys, "visibility") == [("error", f"APIService {name}", mend)]


def patched(server: HttpApiServer, command: str) -> list[str]:
    """Carry out `for crd in NAMES; do kubectl patch crd $crd --type=json -p PATCH; done`; gives the names."""
    names = command.partition("for crd in ")[2].partition(";")[0].split()
    patch = command.partition("-p '")[2].partition("'")[0].encode()
    headers = {"Content-Type": "application/json-patch+json"}
    for name in names:
        url = f"{server.url}/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"
        request = urllib.request.Request(url, patch, headers, method="PATCH")
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 200
    return names


def test_conversions_that_nobody_answers_end_with_the_older_version(capsys: pytest.CaptureFixture[str]) -> None:
    with HttpApiServer() as server:
        server.load(converted_crds())
        ((level, _, mend),) = found(server, capsys, "conversion")
        assert level == "error"
        assert patched(server, mend) == [crd["metadata"]["name"] for crd in converted_crds()]
        assert found(server, capsys, "conversion") == []
        assert {entry.version for entry in server.kinds if entry.group == "kueue.x-k8s.io"} == {"v1beta2"}


def test_older_versions_without_a_conversion_are_no_longer_served(capsys: pytest.CaptureFixture[str]) -> None:
    with HttpApiServer() as server:
        server.load(crds(release="0.19.2"))
        ((level, _, mend),) = found(server, capsys, "conversion")
        assert level == "warning"
        assert len(patched(server, mend)) == len(crds())
        assert found(server, capsys, "conversion") == []


@pytest.mark.parametrize("alive", [False, True])
def test_objects_that_may_be_stored_in_an_older_version_are_rewritten_first(
    alive: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    with HttpApiServer() as server:
        server.load([*converted_crds(stored=("v1beta1", "v1beta2"))])
        server.load([{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-system"}}])
        if alive:
            server.load([endpoints("kueue-webhook-service")])
        name = "CustomResourceDefinition clusterqueues.kueue.x-k8s.io"
        ((level, *mends),) = (row[:1] + row[2:] for row in found(server, capsys, "conversion") if row[1] == name)
        assert level == ("warning" if alive else "error")
        scale = ["kubectl -n kueue-system scale deployment kueue-controller-manager --replicas=1"]
        assert mends == [
            *([] if alive else scale),
            "kubectl get clusterqueues.v1beta2.kueue.x-k8s.io --all-namespaces -o json | kubectl replace -f -",
            "kubectl patch crd clusterqueues.kueue.x-k8s.io --subresource=status --type=merge "
            """-p '{"status":{"storedVersions":["v1beta2"]}}'""",
        ]


def test_without_kueues_definitions_it_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    with HttpApiServer() as server:
        code, document = asked(server, capsys, "--kueue", "0.19.2")
        (row,) = (row for row in document["obstacles"] if row["level"] == "error")
    assert (code, row["check"], row["object"]) == (1, "kinds", KUEUE)
    assert "ClusterQueue, LocalQueue, Workload" in row["message"]
    assert row["mends"] == [
        "kubectl apply --server-side -k 'github.com/kubernetes-sigs/kueue/config/components/crd?ref=v0.19.2'"
    ]


def test_definitions_of_an_older_kueue_are_named_with_their_version(capsys: pytest.CaptureFixture[str]) -> None:
    older = crds(release="0.19.2")
    for crd in older:
        crd["spec"]["versions"] = [{**crd["spec"]["versions"][0], "storage": True}]
    with HttpApiServer() as server:
        server.load(older)
        _, document = asked(server, capsys)
        (row,) = (row for row in document["obstacles"] if row["level"] == "error")
    assert (row["check"], row["object"]) == ("kinds", KUEUE)
    assert "are missing (the cluster serves v1beta1 of them)" in row["message"]


def test_it_names_the_finalizers_that_keep_what_is_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    finalizers = ["example.com/mine", "kueue.x-k8s.io/resource-in-use"]
    with served() as server:
        spec = {"provisioningClassName": "c"}
        kinds: dict[str, Json] = {"WorkloadPriorityClass": {"value": 1}, "ProvisioningRequestConfig": {"spec": spec}}
        for kind, more in kinds.items():
            metadata = {"name": "old", "finalizers": finalizers}
            server.load([{"apiVersion": KUEUE, "kind": kind, "metadata": metadata, **more}])
            server.call(lambda api, kind=kind: api.delete(kind, "old"))  # type: ignore[misc]
        server.call(lambda api: api.patch("ClusterQueue", "a", {"metadata": {"finalizers": finalizers}}))
        server.call(lambda api: api.delete("ClusterQueue", "a"))
        mend = 'kubectl patch {} old --type=merge -p \'{{"metadata":{{"finalizers":["example.com/mine"]}}}}\''
        assert sorted(found(server, capsys, "finalizers")) == [
            ("error", "ProvisioningRequestConfig old", mend.format("provisioningrequestconfigs.kueue.x-k8s.io")),
            ("error", "WorkloadPriorityClass old", mend.format("workloadpriorityclasses.kueue.x-k8s.io")),
            ("note", "ClusterQueue a"),
        ]


def test_two_releases_are_shown_and_who_holds_the_lease(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as server:
        server.load([deployment("v0.19.2", ready=1), lease("kueue-1_abc")])
        name = "Deployment kueue-system/kueue-controller-manager"
        expected = [("warning", name, "kueuecore serve --kueue 0.19.2")]
        assert found(server, capsys, "release", "--kueue", "0.20.0") == expected
        assert found(server, capsys, "release", "--kueue", "0.19.2") == [("note", name)]
        _, document = asked(server, capsys)
        (row,) = (row for row in document["obstacles"] if row["check"] == "lease")
        assert row["object"] == "Lease kueue-system/c1f6bfd2.kueue.x-k8s.io"
        assert row["message"].startswith(
            "kueue-1_abc renewed it at 2026-01-01T00:00:00.000000Z, for 15 s: serve follows"
        )
        # Without a Lease here, both would decide.
        expected = [("error", "Lease", "kueuecore serve --leader-elect=true")]
        assert found(server, capsys, "lease", "--leader-elect=false") == expected


def limited(folder: Path, server: HttpApiServer) -> list[str]:
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG.format(url=server.url))
    (folder / "kueue.yaml").write_text(deployed()[1])
    return ["serve", "--preflight", "--kubeconfig", str(kubeconfig), "--config", str(folder / "kueue.yaml")]


def test_rights_that_are_missing_are_named_with_the_rule_that_grants_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    roles, _ = deployed()
    for role in roles:
        if role["kind"] == "ClusterRole":
            role["rules"] = [rule for rule in role["rules"] if rule["resources"] != ["jobs"]]
        if role["kind"] == "Role":
            role["rules"][0]["verbs"] = ["get", "create"]
    access = AccessRules(users={"secret": USER, "admin": "root"}, manifests=roles, admins=["root"])
    with served(access=access) as server:
        assert main([*limited(tmp_path, server), "-o", "json"]) == 1
        document = json.loads(capsys.readouterr().out)
        rows = {row["object"]: row for row in document["obstacles"] if row["check"] == "rights"}
        assert rows.keys() == {"jobs.batch", "leases.coordination.k8s.io"}
        assert rows["jobs.batch"]["message"] == "these credentials may not delete, list, patch, watch them"
        rule = '{"apiGroups":["batch"],"resources":["jobs"],"verbs":["delete","list","patch","watch"]}'
        mend = """kubectl patch clusterrole kueuecore --type=json -p '[{"op":"add","path":"/rules/-","value":%s}]'"""
        assert rows["jobs.batch"]["mends"] == [mend % rule]
        assert rows["leases.coordination.k8s.io"]["message"].endswith("may not update them in namespace kueue-system")
        # What may not be read is not taken for harmless.
        unread = [row["object"] for row in document["obstacles"] if row["check"] == "reading"]
        assert unread == [
            "apiservices.apiregistration.k8s.io",
            "mutatingadmissionpolicies.admissionregistration.k8s.io",
            "mutatingwebhookconfigurations.admissionregistration.k8s.io",
            "validatingwebhookconfigurations.admissionregistration.k8s.io",
        ]
        # Somebody else may ask about the account.
        arguments = limited(tmp_path, server)
        Path(arguments[3]).write_text(KUBECONFIG.format(url=server.url).replace("secret", "admin"))
        assert main([*arguments, "-o", "json", "--as", USER]) == 1
        again = json.loads(capsys.readouterr().out)["obstacles"]
        errors = [(row["check"], row["object"]) for row in again if row["level"] == "error"]
        assert errors == [("rights", "jobs.batch"), ("rights", "leases.coordination.k8s.io")]


def test_the_account_of_serve_may_look_at_everything_with_one_more_role(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = list(yaml.safe_load_all(Path("deploy/preflight.yaml").read_text("utf-8")))
    access = AccessRules(users={"secret": USER}, manifests=[*deployed()[0], *more])
    with served(access=access) as server:
        server.load([configuration(VALIDATING, "kueue"), visibility(), lease("kueue-1_abc")])
        assert main([*limited(tmp_path, server), "-o", "json"]) == 1
        rows = json.loads(capsys.readouterr().out)["obstacles"]
        assert [row["check"] for row in rows if row["level"] == "error"] == ["webhooks", "visibility"]
        assert sorted(allowed(more) - rights(server.requests)) == [], "allowed, and never asked for"


def test_the_table_has_the_commands_that_mend(capsys: pytest.CaptureFixture[str]) -> None:
    with served() as server:
        server.load([configuration(VALIDATING, "kueue"), visibility()])
        assert main(["serve", "--preflight", "--server", server.url]) == 1
        out = capsys.readouterr().out.replace(server.url, "URL")
    assert out.startswith("LEVEL    CHECK       OBJECT ")
    table, mends, end = out.split("\n\n")
    assert "error    visibility  APIService v1beta2.visibility.kueue.x-k8s.io" in table
    assert mends.splitlines() == [
        "To mend it:",
        "  kubectl delete validatingwebhookconfiguration kueue",
        "  kubectl delete apiservice v1beta2.visibility.kueue.x-k8s.io",
        "  kubectl apply -f deploy/admission-policies.yaml",
    ]
    assert end.startswith("2 errors stand in the way of kueuecore serve (URL, Kubernetes v1.36.0, ")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--as", "ann"], 2, "--as is for --preflight: add that, or leave it out"),
        (["-o", "json"], 2, "--output is for --preflight: add that, or leave it out"),
        (
            ["--preflight", "--dry-run"],
            2,
            "--preflight looks at what running in Kueue's place needs: leave out",
        ),
        (["--preflight"], 69, "http://127.0.0.1:1: GET /version: "),
    ],
)
def test_wrong_usage_is_2_and_a_server_that_is_away_is_69(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["serve", "--server", "http://127.0.0.1:1", *arguments]) == code
    assert message in capsys.readouterr().err
