"""The manifests in deploy/ have only fields that exist, and fit together."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.dynamic import DynamicClient

from kueuecore import Configuration
from kueuecore._kinds import KINDS, KUEUE
from kueuecore.cli.commands.serve import add_arguments
from kueuecore.jobs import INTEGRATIONS, JobsConfiguration
from kueuecore.kubernetes import Api, ServeSettings
from kueuecore.kubernetes import settings as serve_settings
from tests.unit.kubernetes.deployed import model_of, unknown
from tests.unit.kubernetes.real_servers import needs_real_server, real_server

Json = dict[str, Any]
FOLDER = Path("deploy")
FILES = sorted(path.name for path in FOLDER.glob("*.yaml"))
# Roles that every cluster has, for who asks it about users.
OF_KUBERNETES = ("system:auth-delegator", "extension-apiserver-authentication-reader")
# For the other clusters of a MultiKueue.
OF_WORKERS = "multikueue-worker.yaml"
# Kinds that are no part of Kubernetes itself.
OTHERS = ("Kustomization", "ServiceMonitor")


def documents(name: str) -> list[Json]:
    return [entry for entry in yaml.safe_load_all((FOLDER / name).read_text("utf-8")) if entry]


BY_FILE = [(name, entry) for name in FILES for entry in documents(name)]
EVERYTHING = [entry for _, entry in BY_FILE]


def of_kind(kind: str) -> list[Json]:
    return [entry for entry in EVERYTHING if entry["kind"] == kind]


def named(kind: str, name: str) -> Json:
    (found,) = (entry for entry in of_kind(kind) if entry["metadata"]["name"] == name)
    return found


def labels_of(deployment: Json) -> dict[str, str]:
    labels: dict[str, str] = deployment["spec"]["template"]["metadata"]["labels"]
    return labels


def ports_of(deployment: Json) -> dict[str, int]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {port["name"]: port["containerPort"] for port in container["ports"]}


DEPLOYMENTS = of_kind("Deployment")
DEPLOYMENT = named("Deployment", "kueuecore")
DRY_RUN = named("Deployment", "kueuecore-dry-run")
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
PORTS = ports_of(DEPLOYMENT)
CONFIGURATION = Configuration.parse(named("ConfigMap", "kueuecore")["data"]["configuration.yaml"])


def test_yaml_names_no_object_twice() -> None:
    names = [
        (entry["kind"], entry["metadata"].get("namespace"), entry["metadata"]["name"])
        for file, entry in BY_FILE
        if entry["kind"] != "Kustomization" and file != OF_WORKERS
    ]
    assert len({*names}) == len(names) > 40


@pytest.mark.parametrize(
    "manifest", EVERYTHING, ids=[f"{file}-{row['kind']}-{row.get('metadata', {}).get('name')}" for file, row in BY_FILE]
)
def test_it_has_only_fields_that_exist(manifest: Json) -> None:
    if manifest["kind"] in OTHERS:
        pytest.skip("its type is not in the client")
    model = model_of(manifest)
    assert list(unknown(model, manifest, manifest["kind"])) == []
    # And of the right types.
    assert model.from_dict(manifest) is not None


def test_a_field_that_does_not_exist_is_found() -> None:
    pod = {"containers": [{"name": "c", "prots": []}], "nodeselector": {}}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"template": {"spec": pod}}}
    path = "Deployment.spec.template.spec"
    expected = [f"{path}.containers[0].prots", f"{path}.nodeselector"]
    assert list(unknown(model_of(manifest), manifest, "Deployment")) == expected


def test_the_kustomization_names_every_file() -> None:
    (joined,) = of_kind("Kustomization")
    assert joined["resources"][0] == "kueuecore.yaml", "it brings the namespace"
    assert {*joined["resources"]} <= {*FILES}
    # Some are for who chooses them.
    named_there = {*re.findall(r"^(?:# )?- (\S+\.yaml)$", (FOLDER / "kustomization.yaml").read_text("utf-8"), re.M)}
    assert {*FILES} - named_there == {"kustomization.yaml", OF_WORKERS}
    assert [image["name"] for image in joined["images"]] == [CONTAINER["image"]]


def selected(labels: Json) -> list[str]:
    """The Deployments whose pods have labels."""
    return [row["metadata"]["name"] for row in DEPLOYMENTS if labels and labels.items() <= labels_of(row).items()]


def test_what_selects_the_pods_selects_them_and_no_others() -> None:
    spreads = [spread["labelSelector"] for spread in POD["topologySpreadConstraints"]]
    policies = [entry["spec"]["podSelector"] for entry in of_kind("NetworkPolicy")]
    budgets = [entry["spec"]["selector"] for entry in of_kind("PodDisruptionBudget")]
    selectors = [DEPLOYMENT["spec"]["selector"], *spreads, *policies, *budgets]
    services = {row["metadata"]["name"]: row["spec"]["selector"] for row in of_kind("Service")}
    of_dry_run = services.pop("kueuecore-dry-run-metrics")
    wanted = [row["matchLabels"] for row in selectors] + [*services.values()]
    assert len(wanted) > 5
    for labels in wanted:
        assert selected(labels) == ["kueuecore"]
    for labels in (DRY_RUN["spec"]["selector"]["matchLabels"], of_dry_run):
        assert selected(labels) == ["kueuecore-dry-run"]


def test_ports_lead_to_ports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for deployment in DEPLOYMENTS:
        services = [
            row for row in of_kind("Service") if row["spec"]["selector"].items() <= labels_of(deployment).items()
        ]
        targets = {port["targetPort"] for service in services for port in service["spec"]["ports"]}
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        probed = {container[name]["httpGet"]["port"] for name in ("livenessProbe", "readinessProbe")}
        assert services
        assert {port for port in targets | probed if isinstance(port, str)} <= ports_of(deployment).keys()
    settings = ServeSettings.of(CONFIGURATION)
    assert settings.metrics is not None
    assert settings.health is not None
    assert (settings.metrics.port, settings.health.port) == (PORTS["metrics"], PORTS["health"])
    # As in a pod.
    file = tmp_path / "namespace"
    file.write_text("kueue-system")
    monkeypatch.setattr(serve_settings, "_NAMESPACE_FILE", file)
    visibility = ServeSettings.of(CONFIGURATION)
    assert visibility.visibility is not None
    assert visibility.visibility.port == PORTS["visibility"]
    names = {entry["metadata"]["name"] for kind in ("Service", "Secret") for entry in of_kind(kind)}
    assert {visibility.certificates.visibility_service, visibility.certificates.visibility_secret} <= names


def test_the_network_policy_lets_in_all_that_is_served() -> None:
    (policy,) = of_kind("NetworkPolicy")
    services = [row for row in of_kind("Service") if row["spec"]["selector"].items() <= labels_of(DEPLOYMENT).items()]
    targets = {port["targetPort"] for service in services for port in service["spec"]["ports"]}
    served = {PORTS.get(port, port) for port in targets} | {*PORTS.values()}
    assert served <= {port["port"] for rule in policy["spec"]["ingress"] for port in rule["ports"]}


def test_prometheus_finds_the_metrics_of_both() -> None:
    (monitor,) = of_kind("ServiceMonitor")
    (wanted,) = monitor["spec"]["selector"]["matchExpressions"]
    assert wanted["operator"] == "In"
    services = [row for row in of_kind("Service") if row["metadata"].get("labels", {}).get(wanted["key"])]
    for name in wanted["values"]:
        (service,) = (row for row in services if row["metadata"]["labels"][wanted["key"]] == name)
        assert selected(service["spec"]["selector"]) == [name]
        ports = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in monitor["spec"]["endpoints"]} <= ports
    assert {*wanted["values"]} == {row["metadata"]["name"] for row in DEPLOYMENTS}


def test_one_replica_may_go_while_the_other_stays() -> None:
    (budget,) = of_kind("PodDisruptionBudget")
    assert 0 < budget["spec"]["minAvailable"] < DEPLOYMENT["spec"]["replicas"]
    # With one replica decided for, the other must not hold the place that a rollout needs.
    assert {spread["whenUnsatisfiable"] for spread in POD["topologySpreadConstraints"]} == {"ScheduleAnyway"}


def test_bindings_bind_roles_and_accounts_that_exist() -> None:
    accounts = {(entry["metadata"]["namespace"], entry["metadata"]["name"]) for entry in of_kind("ServiceAccount")}
    for deployment in DEPLOYMENTS:
        account = deployment["spec"]["template"]["spec"]["serviceAccountName"]
        assert (deployment["metadata"]["namespace"], account) in accounts
    bindings = of_kind("RoleBinding") + of_kind("ClusterRoleBinding")
    assert len(bindings) > 2
    for binding in bindings:
        if binding["roleRef"]["name"] not in OF_KUBERNETES:
            named(binding["roleRef"]["kind"], binding["roleRef"]["name"])
        for subject in binding["subjects"]:
            assert subject["kind"] != "ServiceAccount" or (subject["namespace"], subject["name"]) in accounts


@pytest.mark.parametrize("deployment", DEPLOYMENTS, ids=[row["metadata"]["name"] for row in DEPLOYMENTS])
def test_the_pod_keeps_to_the_restricted_standard_and_says_what_it_needs(deployment: Json) -> None:
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    security = container["securityContext"]
    assert (
        pod["securityContext"].items() >= {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}.items()
    )
    assert security["capabilities"] == {"drop": ["ALL"]}
    assert (security["allowPrivilegeEscalation"], security["readOnlyRootFilesystem"]) == (False, True)
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}
    assert container["resources"]["limits"].keys() == {"memory"}
    mounted = [mount["name"] for mount in container["volumeMounts"]]
    assert sorted(mounted) == sorted(volume["name"] for volume in pod["volumes"])


def test_without_the_pod_no_job_starts_and_without_a_dry_run_all_do() -> None:
    assert POD["priorityClassName"] == "system-cluster-critical"
    assert "priorityClassName" not in DRY_RUN["spec"]["template"]["spec"]


def test_a_dry_run_keeps_its_journal_on_a_volume_of_its_own_that_it_may_write() -> None:
    pod = DRY_RUN["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    add = argparse.ArgumentParser(exit_on_error=False)
    add_arguments(add)
    options = add.parse_args(container["args"])
    ports = {f":{ports_of(DRY_RUN)[name]}" for name in ("metrics", "health")}
    assert (options.dry_run, {options.metrics_address, options.health_address}) == (True, ports)
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    claim = volumes[mounts[str(options.journal)]]["persistentVolumeClaim"]["claimName"]
    assert named("PersistentVolumeClaim", claim)["spec"]["accessModes"] == ["ReadWriteOnce"]
    # Two at once would write one journal.
    assert (DRY_RUN["spec"]["replicas"], DRY_RUN["spec"]["strategy"]) == (1, {"type": "Recreate"})
    # A new volume belongs to root.
    image = (FOLDER / "Containerfile").read_text("utf-8")
    assert f"USER {pod['securityContext']['fsGroup']}:{pod['securityContext']['fsGroup']}" in image
    # Kueue's own Configuration, where Kueue's manifests have it.
    folder, _, file = options.config.rpartition("/")
    kueues = volumes[mounts[folder]]["configMap"]["name"]
    assert (kueues, file) == ("kueue-manager-config", "controller_manager_config.yaml")


def gathered(role: str) -> set[tuple[str, str, str]]:
    """Verb, group and resource of what an aggregated role gathers."""
    selectors = [row["matchLabels"] for row in named("ClusterRole", role)["aggregationRule"]["clusterRoleSelectors"]]
    roles = [
        entry
        for entry in of_kind("ClusterRole")
        if any(row.items() <= entry["metadata"].get("labels", {}).items() for row in selectors)
    ]
    rules = [rule for entry in roles for rule in entry["rules"]]
    return {
        (verb, group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_batch_users_run_jobs_and_batch_admins_also_set_quotas() -> None:
    users, admins = gathered("kueue-batch-user-role"), gathered("kueue-batch-admin-role")
    assert users <= admins
    group = KUEUE.partition("/")[0]
    plurals = {kind.plural for kind in KINDS if kind.api_version == KUEUE and not kind.name.startswith("MultiKueue")}
    writes = ("create", "delete", "patch", "update")
    assert {(verb, resource) for verb, of, resource in admins if of == group and verb in writes} == {
        (verb, plural) for verb in writes for plural in plurals
    }
    of_kueue = {(verb, resource) for verb, of, resource in users if of == group}
    own = {(verb, name) for verb in ("get", "list", "watch") for name in ("localqueues", "workloads")}
    assert of_kueue == own | {("get", "localqueues/status"), ("get", "workloads/status")}
    enabled = {*JobsConfiguration.of(CONFIGURATION).frameworks}
    jobs = {
        (integration.group, f"{integration.kind.lower()}s")
        for integration in INTEGRATIONS.values()
        if integration.framework in enabled and integration.group not in ("", "apps")
    }
    assert {(of, resource) for verb, of, resource in users if verb == "create"} == jobs


@needs_real_server
def test_a_real_server_takes_them_all(tmp_path: Path) -> None:
    with real_server(tmp_path) as kubeconfig:
        client = DynamicClient(Api.connect(kubeconfig=kubeconfig).client)
        restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
        # Others need these to exist; all else is only checked, as its webhooks would lead nowhere.
        stored = ("Namespace", "ServiceAccount")
        ranks = {kind: rank for rank, kind in enumerate(stored)}
        for file, manifest in sorted(BY_FILE, key=lambda row: ranks.get(row[1]["kind"], len(ranks))):
            # The file of workers names the namespace a second time.
            if manifest["kind"] in OTHERS or (file == OF_WORKERS and manifest["kind"] == "Namespace"):
                continue
            if manifest["kind"] == "Namespace":
                manifest = {**manifest, "metadata": {**manifest["metadata"], "labels": restricted}}
            kind = client.resources.get(api_version=manifest["apiVersion"], kind=manifest["kind"])
            more = {} if manifest["kind"] in stored else {"dry_run": "All"}
            namespace = manifest["metadata"].get("namespace")
            kind.create(body=manifest, namespace=namespace, field_validation="Strict", **more)
        pods = client.resources.get(api_version="v1", kind="Pod")
        for name, spec, priority in (("p", POD, 2_000_000_000), ("d", DRY_RUN["spec"]["template"]["spec"], 0)):
            body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
            made = pods.create(body=body, namespace="kueue-system")
            assert made.spec.priority == priority
