"""The Helm chart: with its default values the objects of deploy/, and with others only what they say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from kueuecore import Configuration
from kueuecore.api_server import ApiServer
from kueuecore_apiserver import HttpApiServer
from kueuecore_apiserver.plain_crds import kueue_crds, plain_crd
from tests.unit.deploy.charts import (
    CHART,
    KUEUES,
    RENDERERS,
    ChartError,
    by_key,
    in_namespace,
    key,
    printed,
    rendered,
    used_values,
)
from tests.unit.kubernetes.deployed import manifests_of, model_of, unknown

Json = dict[str, Any]
SCHEMA: Json = json.loads((CHART / "values.schema.json").read_text("utf-8"))
VALUES: Json = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
READER = ("ClusterRole", "", "kueuecore-metrics-reader")
ON, OFF = {"enabled": True}, {"enabled": False}
# Kinds that the API server for tests does not have.
BEYOND_IT = {"APIService", "NetworkPolicy", "PersistentVolumeClaim", "PodDisruptionBudget"}
FAIR = {"preemptionStrategies": ["LessThanOrEqualToFinalShare"]}
SWITCHES = {
    "webhooks": "webhooks.yaml",
    "admissionPolicies": "admission-policies.yaml",
    "visibility": "visibility.yaml",
    "multikueue": "multikueue.yaml",
    "rolesForPeople": "roles-for-people.yaml",
}
SETS: dict[str, Json] = {
    "default": {},
    "dry-run": {"mode": "dryRun"},
    "everything": {
        **dict.fromkeys((*SWITCHES, "serviceMonitor", "dashboards"), ON),
        "forecast": "annotate",
        "kueue": "0.19",
        "configuration": {"metrics": {"enableClusterQueueResources": True}, "fairSharing": FAIR},
        "extraRules": [{"apiGroups": ["kubeflow.org"], "resources": ["pytorchjobs"], "verbs": ["list", "watch"]}],
        "extraArgs": ["--forecast-every=30"],
        "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "2Gi"}},
        "nodeSelector": {"pool": "system"},
        "tolerations": [{"key": "system", "operator": "Exists"}],
        "image": {"digest": f"sha256:{'0' * 64}", "pullPolicy": "Always"},
        "imagePullSecrets": [{"name": "registry"}],
    },
    "dry-run-with-everything": {
        "mode": "dryRun",
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": ON,
        "journal": {"size": "5Gi", "storageClassName": "fast"},
        "kueue": "0.19",
        "extraArgs": ["--summary-at=06:00"],
    },
    "alone": {"replicas": 1, "networkPolicy": OFF, "preflight": OFF},
}


@pytest.fixture(params=RENDERERS)
def renderer(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def with_image(entries: list[Json]) -> list[Json]:
    """With the image that kustomization.yaml names."""
    (kustomization,) = manifests_of("kustomization.yaml")
    (image,) = kustomization["images"]
    for entry in entries:
        if entry["kind"] == "Deployment":
            (container,) = entry["spec"]["template"]["spec"]["containers"]
            assert container["image"] == image["name"]
            container["image"] = f"{image['newName']}:{image['newTag']}"
    return entries


def applied() -> list[Json]:
    """What `kubectl apply -k deploy/` applies."""
    (kustomization,) = manifests_of("kustomization.yaml")
    return with_image([entry for name in kustomization["resources"] for entry in manifests_of(name)])


def merged(values: Json, more: Json) -> Json:
    """Values with others over them, as Helm merges them."""
    maps = [name for name in more if isinstance(values.get(name), dict) and isinstance(more[name], dict)]
    return {**values, **more, **{name: merged(values[name], more[name]) for name in maps}}


def is_kueues(entry: Json) -> bool:
    """Whether an object belongs to Kueue: its namespace, and the roles for people."""
    name: str = entry["metadata"]["name"]
    return entry["kind"] == "Namespace" or name.startswith("kueue-")


def container_of(entries: list[Json], name: str = "kueuecore") -> Json:
    pod = by_key(entries)["Deployment", KUEUES, name]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    found: Json = container
    return found


def test_by_default_it_has_the_objects_that_kustomize_applies(renderer: str) -> None:
    assert by_key(rendered(renderer)) == by_key([entry for entry in applied() if not is_kueues(entry)])


def test_with_the_roles_for_people_it_has_them_all(renderer: str) -> None:
    everything = [entry for entry in applied() if entry["kind"] != "Namespace"]
    assert by_key(rendered(renderer, {"rolesForPeople": ON})) == by_key(everything)


def test_a_dry_run_has_the_objects_of_its_file(renderer: str) -> None:
    assert by_key(rendered(renderer, {"mode": "dryRun"})) == by_key(with_image(manifests_of("dry-run.yaml")))


@pytest.mark.parametrize("namespace", ["batch", "123"])
@pytest.mark.parametrize("mode", ["serve", "dryRun"])
def test_in_another_namespace_it_has_the_same_objects_there(renderer: str, mode: str, namespace: str) -> None:
    values = {"mode": mode, **({} if mode == "dryRun" else dict.fromkeys(SWITCHES, ON))}
    expected = by_key(in_namespace(rendered(renderer, values), namespace))
    found = by_key(rendered(renderer, values, namespace))
    settings = ("ConfigMap", namespace, "kueuecore")
    if mode == "serve":
        given = Configuration.parse(found.pop(settings)["data"]["configuration.yaml"])
        assert expected.pop(settings)
        # Else its own pods would be jobs.
        assert given.to_dict()["namespace"] == namespace
    assert found == expected
    assert KUEUES not in json.dumps([*found.values()])


@pytest.mark.parametrize("switch", SWITCHES)
def test_a_switch_adds_the_objects_of_its_file(renderer: str, switch: str) -> None:
    before, after = (by_key(rendered(renderer, values)) for values in ({}, {switch: ON}))
    added = by_key(manifests_of(SWITCHES[switch]))
    added.pop(READER, None)
    assert {name: entry for name, entry in after.items() if name not in before} == added
    changed = {name for name in before if before[name] != after[name]}
    assert changed == ({("Deployment", KUEUES, "kueuecore")} if switch == "webhooks" else set())
    assert ("--webhooks" in container_of([*after.values()])["args"]) is (switch == "webhooks")


@pytest.mark.parametrize(("switch", "kind"), [("preflight", "ClusterRole"), ("networkPolicy", "NetworkPolicy")])
def test_a_switch_takes_the_objects_of_its_file_away(renderer: str, switch: str, kind: str) -> None:
    names = {key(entry) for entry in rendered(renderer)}
    left = {key(entry) for entry in rendered(renderer, {switch: OFF})}
    file = "preflight.yaml" if switch == "preflight" else "network-policy.yaml"
    assert names - left == {key(entry) for entry in manifests_of(file)}
    assert kind in {kind for kind, *_ in names - left}


@pytest.mark.parametrize("replicas", [0, 1, 2, 3])
def test_a_budget_never_keeps_the_only_replica(renderer: str, replicas: int) -> None:
    found = by_key(rendered(renderer, {"replicas": replicas}))
    assert found["Deployment", KUEUES, "kueuecore"]["spec"]["replicas"] == replicas
    assert (("PodDisruptionBudget", KUEUES, "kueuecore") in found) is (replicas > 1)


def test_values_change_the_pod_and_the_configuration(renderer: str) -> None:
    found = by_key(rendered(renderer, SETS["everything"]))
    container = container_of([*found.values()])
    more = ["--webhooks", "--forecast=annotate", "--kueue=0.19", "--forecast-every=30"]
    assert container["args"] == ["--config", "/etc/kueuecore/configuration.yaml", *more]
    assert container["image"] == f"registry.example/kueuecore@sha256:{'0' * 64}"
    assert container["imagePullPolicy"] == "Always"
    assert container["resources"] == {"requests": {"cpu": "1", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}
    pod = found["Deployment", KUEUES, "kueuecore"]["spec"]["template"]
    spec = {name: SETS["everything"][name] for name in ("nodeSelector", "tolerations", "imagePullSecrets")}
    assert pod["spec"].items() >= spec.items()
    text = found["ConfigMap", KUEUES, "kueuecore"]["data"]["configuration.yaml"]
    before = rendered(renderer)
    known = yaml.safe_load(by_key(before)["ConfigMap", KUEUES, "kueuecore"]["data"]["configuration.yaml"])
    metrics = {**known["metrics"], "enableClusterQueueResources": True}
    assert yaml.safe_load(text) == {**known, "metrics": metrics, "fairSharing": FAIR}
    Configuration.parse(text)
    # A change starts new pods, which read it.
    assert re.fullmatch("[0-9a-f]{64}", pod["metadata"]["annotations"]["checksum/configuration"])
    rules = found["ClusterRole", "", "kueuecore"]["rules"]
    assert rules == by_key(before)["ClusterRole", "", "kueuecore"]["rules"] + SETS["everything"]["extraRules"]


def test_values_change_the_dry_run_and_its_volume(renderer: str) -> None:
    found = by_key(rendered(renderer, SETS["dry-run-with-everything"]))
    name = "kueuecore-dry-run"
    assert container_of([*found.values()], name)["args"][-2:] == ["--kueue=0.19", "--summary-at=06:00"]
    claim = found["PersistentVolumeClaim", KUEUES, name]["spec"]
    assert (claim["resources"]["requests"], claim["storageClassName"]) == ({"storage": "5Gi"}, "fast")
    monitor = found["ServiceMonitor", KUEUES, name]
    assert monitor["metadata"]["labels"] == {"app.kubernetes.io/name": name, "release": "prometheus"}
    (selected,) = monitor["spec"]["selector"]["matchExpressions"]
    assert selected["values"] == [name]
    assert found["ClusterRole", "", f"{name}-metrics-reader"]["rules"]


def test_both_modes_fit_into_one_cluster(renderer: str) -> None:
    modes = [SETS["everything"], SETS["dry-run-with-everything"]]
    first, second = ({key(entry) for entry in rendered(renderer, values)} for values in modes)
    assert not first & second


def test_dashboards_are_those_of_their_folder(renderer: str) -> None:
    maps = [entry for entry in rendered(renderer, {"dashboards": ON}) if "-dashboard-" in entry["metadata"]["name"]]
    files = {path.name: path.read_text("utf-8") for path in Path("deploy/dashboards").glob("*.json")}
    assert {name: text for entry in maps for name, text in entry["data"].items()} == files
    assert all(entry["metadata"]["labels"] == {"grafana_dashboard": "1"} for entry in maps)


@pytest.mark.parametrize("name", SETS)
def test_the_api_server_takes_every_object(renderer: str, name: str) -> None:
    jsonschema.validate(merged(VALUES, SETS[name]), SCHEMA)
    found = rendered(renderer, SETS[name])
    for entry in found:
        if entry["kind"] != "ServiceMonitor":
            assert [*unknown(model_of(entry), entry, entry["kind"])] == []
            assert model_of(entry).from_dict(entry) is not None
    server = HttpApiServer(ApiServer(now=1_767_225_600 * 10**9), seed=1)
    names = (KUEUES, "kube-system")
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names]
    with server:
        server.load([*namespaces, *kueue_crds(), plain_crd("monitoring.coreos.com/v1", "ServiceMonitor")])
        server.load(entry for entry in found if entry["kind"] not in BEYOND_IT)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *(({"mode": "dryRun", name: ON}, f"values: {name}.enabled: a dry run has none") for name in SWITCHES),
        ({"mode": "dryRun", "forecast": "metrics"}, "values: forecast: a dry run has none"),
        ({"mode": "dryRun", "configuration": {"a": 1}}, "values: configuration: a dry run has none"),
    ],
)
def test_what_a_dry_run_would_ignore_is_refused(renderer: str, values: Json, message: str) -> None:
    jsonschema.validate(merged(VALUES, values), SCHEMA)
    with pytest.raises(ChartError, match=re.escape(message)):
        rendered(renderer, values)


@pytest.mark.parametrize(
    ("values", "path"),
    [
        ({"mode": "dry-run"}, "mode"),
        ({"replicas": "2"}, "replicas"),
        ({"replica": 2}, ""),
        ({"webhooks": True}, "webhooks"),
        ({"webhooks": {"enable": True}}, "webhooks"),
        ({"image": {"repository": ""}}, "image.repository"),
        ({"image": {"repository": "a", "digest": "sha256:0"}}, "image.digest"),
        ({"kueue": "newest"}, "kueue"),
        ({"kueue": 0.19}, "kueue"),
        ({"extraArgs": "--webhooks"}, "extraArgs"),
        ({"resources": {"cpu": "1"}}, "resources"),
    ],
)
def test_the_schema_refuses_what_is_wrong(values: Json, path: str) -> None:
    with pytest.raises(jsonschema.ValidationError) as caught:
        jsonschema.validate(merged(VALUES, values), SCHEMA)
    assert ".".join(str(part) for part in caught.value.absolute_path) == path
    if shutil.which("helm") is not None:
        with pytest.raises(ChartError, match="don't meet the specifications of the schema"):
            printed("helm", values)


def test_the_schema_has_the_values_and_each_is_explained_and_used() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    jsonschema.validate(VALUES, SCHEMA)
    assert {*VALUES} | {"global"} == {*SCHEMA["properties"]}
    assert {*VALUES} == used_values()
    for name, part in SCHEMA["properties"].items():
        if "properties" in part and isinstance(VALUES.get(name), dict) and VALUES[name]:
            assert {*VALUES[name]} == {*part["properties"]}
    lines = (CHART / "values.yaml").read_text("utf-8").splitlines()
    about = [re.sub(r"\W", "", above) for above, line in zip(["", *lines], lines, strict=False) if above[:1] == "#"]
    assert len(about) > 20


def test_manifests_of_the_chart_are_links_to_those_of_deploy() -> None:
    for path in (CHART / "manifests").iterdir():
        assert path.resolve() == (CHART.parent / path.name).resolve()
        assert path.is_symlink()
    names = {path.name for path in (CHART / "manifests").iterdir()}
    # It brings no namespace, and has no role on a worker.
    assert {path.name for path in CHART.parent.glob("*.yaml")} - names == {
        "kustomization.yaml",
        "multikueue-worker.yaml",
    }
    assert (CHART / "dashboards").resolve() == (CHART.parent / "dashboards").resolve()


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({}, "Nothing of this release creates jobs suspended"),
        ({"webhooks": ON}, "serve --preflight --config /etc/kueuecore/configuration.yaml"),
        ({"mode": "dryRun"}, "judges the decisions of the Kueue in namespace kueue-system"),
    ],
)
def test_notes_say_what_is_next(values: Json, says: str) -> None:
    _, notes = printed("go", values)
    assert says in notes
    assert ("suspended" in notes) is (values == {})


@pytest.mark.skipif(shutil.which("helm") is None, reason="helm is not installed")
def test_helm_finds_no_fault_and_packs_what_links_lead_to(tmp_path: Path) -> None:
    subprocess.run(["helm", "lint", "--strict", str(CHART)], check=True, capture_output=True)
    subprocess.run(["helm", "package", str(CHART), "--destination", str(tmp_path)], check=True, capture_output=True)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as packed:
        files = {member.name: member.size for member in packed.getmembers() if member.isfile()}
    for folder in ("manifests", "dashboards"):
        for path in (CHART / folder).iterdir():
            assert files[f"kueuecore/{folder}/{path.name}"] == path.stat().st_size
