"""Kueue's Configuration in what people have: ConfigMaps, Helm values, OpenShift's Kueue, arguments of a Deployment."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueuecore import Configuration
from kueuecore._json import JsonObject
from kueuecore.errors import ConfigurationError

CONFIGURATION = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
manageJobsWithoutQueueName: true
"""
DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: NAME, namespace: kueue-system}
spec:
  selector: {}
  template:
    spec:
      containers:
      - {name: manager, image: "IMAGE", args: [--config=/config.yaml, ARGS]}
"""
KUEUE = "\n---\napiVersion: kueue.openshift.io/v1\nkind: Kueue\nmetadata: {name: cluster}\nspec:\n  config:\n"


def indented(text: str, n: int) -> str:
    return "".join(f"{' ' * n}{line}\n" for line in text.strip().splitlines())


CONFIG_MAP = f"""
apiVersion: v1
kind: ConfigMap
metadata: {{name: kueue-manager-config}}
data:
  controller_manager_config.yaml: |
{indented(CONFIGURATION, 4)}"""
VALUES = f"""
kueue:
  controllerManager:
    featureGates: [{{name: PartialAdmission, enabled: false}}]
  managerConfig:
    controllerManagerConfigYaml: |-
{indented(CONFIGURATION, 6)}"""
OWN_VALUES = f"""
managerConfig:
  controllerManagerConfigYaml: |
{indented(CONFIGURATION, 4)}"""
RELEASE = f"""
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: kueue}}
spec:
  values:
    managerConfig:
      controllerManagerConfigYaml: |-
{indented(CONFIGURATION, 8)}"""


APPLICATION = f"""
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: kueue}}
spec:
  source:
    helm:
      values: |
{indented(OWN_VALUES, 8)}"""


def deployment(*arguments: str, name: str = "kueue-controller-manager", image: str = "example.com/manager:1") -> str:
    text = DEPLOYMENT.replace("NAME", name).replace("IMAGE", image)
    return text.replace("ARGS", ", ".join(f'"{argument}"' for argument in arguments))


def problem_of(text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        Configuration.parse(text, file="a.yaml")
    (problem,) = caught.value.problems
    return str(problem)


def of_openshift(config: str) -> JsonObject:
    return Configuration.parse(KUEUE + indented(config, 4)).to_dict()


@pytest.mark.parametrize("text", [CONFIGURATION, CONFIG_MAP, VALUES, OWN_VALUES, RELEASE, APPLICATION])
def test_a_configuration_is_found_wherever_kueues_installations_have_it(text: str) -> None:
    assert Configuration.parse(text).to_dict()["manageJobsWithoutQueueName"] is True


@pytest.mark.parametrize("text", [CONFIGURATION, CONFIG_MAP, RELEASE])
def test_a_configuration_may_stand_among_other_objects(text: str) -> None:
    namespace = "{apiVersion: v1, kind: Namespace, metadata: {name: kueue-system}}"
    assert Configuration.parse(f"{namespace}\n---{text}").to_dict()["manageJobsWithoutQueueName"] is True


def test_gates_of_helm_values_are_on_the_command_line() -> None:
    assert not Configuration.parse(VALUES).is_enabled("PartialAdmission")
    assert Configuration.parse(VALUES, feature_gates={"PartialAdmission": True}).is_enabled("PartialAdmission")


@pytest.mark.parametrize(
    "text",
    [
        deployment("--feature-gates=PartialAdmission=false,ShortWorkloadNames=true"),
        deployment("--feature-gates", "ShortWorkloadNames=T,PartialAdmission=0"),
        deployment("--feature-gates=PartialAdmission=false", "--feature-gates=ShortWorkloadNames=true"),
        deployment(
            "-feature-gates=PartialAdmission=False,ShortWorkloadNames=1", name="manager", image="a.io/kueue/kueue:v0.14"
        ),
    ],
)
def test_gates_stand_in_the_arguments_of_a_deployment(text: str) -> None:
    found = Configuration.parse(f"{CONFIG_MAP}---{text}")
    assert (found.is_enabled("PartialAdmission"), found.is_enabled("ShortWorkloadNames")) == (False, True)


def test_gates_of_other_deployments_are_theirs() -> None:
    other = deployment("--feature-gates=PartialAdmission=false", name="jobset-controller-manager")
    assert Configuration.parse(f"{CONFIG_MAP}---{other}").is_enabled("PartialAdmission")


def test_a_gate_in_arguments_that_is_none_is_reported() -> None:
    assert problem_of(f"{CONFIGURATION}---{deployment('--feature-gates=PartialAdmission')}") == (
        'a.yaml:14 (document 2): Deployment "kueue-system/kueue-controller-manager": '
        'spec.template.spec.containers[0].args: "PartialAdmission" is not of the form Name=true or Name=false; '
        "correct the argument"
    )


def test_configurations_of_other_programs_are_not_kueues() -> None:
    other = CONFIG_MAP.replace("config.kueue.x-k8s.io/v1beta2", "config.jobset.x-k8s.io/v1alpha1")
    assert Configuration.parse(f"{other}---{CONFIG_MAP}").to_dict()["manageJobsWithoutQueueName"] is True


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "a.yaml: it is empty; give one document of kind Configuration"),
        (f"{CONFIGURATION}---{CONFIGURATION.replace('true', 'false')}", "a.yaml: it holds 2 Configurations; give one"),
        ("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}", "a.yaml: it holds no Configuration, but ConfigMap;"),
        ("{apiVersion: v1, kind: Node, metadata: {name: a}}", "a.yaml: its kind is Node, not Configuration; give one"),
        (
            "{kind: Configuration}",
            "a.yaml:1 (document 1): Configuration: apiVersion: Required value; write config.kueue",
        ),
        (CONFIG_MAP.replace("true", "maybe"), "a.yaml, data[controller_manager_config.yaml]:3 (document 1): Configura"),
        (VALUES.replace("true", "1"), "a.yaml, kueue.managerConfig.controllerManagerConfigYaml:3 (document 1): Config"),
        (KUEUE + "    integrations: {frameworks: [Jbo]}", "a.yaml:8: spec.config.integrations.frameworks[0]: Unsu"),
    ],
)
def test_what_is_wrong_is_reported_where_it_is_written(text: str, problem: str) -> None:
    assert problem_of(text).startswith(problem)


def test_the_same_configuration_twice_is_one() -> None:
    assert Configuration.parse(f"{CONFIG_MAP}---{CONFIGURATION}").to_dict()["manageJobsWithoutQueueName"] is True


def test_openshifts_kueue_becomes_what_its_operator_writes() -> None:
    found = of_openshift("""
integrations:
  frameworks: [BatchJob, Pod, SparkApplication]
  externalFrameworks: [{group: acme.io, version: v1, resource: runs}]
  labelKeysToCopy: [{key: team}]
workloadManagement: {labelPolicy: None}
gangScheduling:
  policy: ByWorkload
  byWorkload:
    admission: Sequential
    timeoutSeconds: 60
    recoveryTimeoutSeconds: 30
    requeuingStrategy: {timeReference: Creation, retryLimit: 3, backoffBaseSeconds: 10, backoffMaxSeconds: 90}
preemption: {preemptionPolicy: FairSharing}
admissionFairSharing:
  configuration: Custom
  custom:
    usageHalfLifeTimeSeconds: 600
    usageSamplingIntervalSeconds: 60
    resourceWeights: [{name: cpu, weight: "0.5"}]
""")
    expected = Configuration.parse("""
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
integrations:
  frameworks: [batch/job, pod, sparkoperator.k8s.io/sparkapplication]
  externalFrameworks: [runs.v1.acme.io]
  labelKeysToCopy: [team]
manageJobsWithoutQueueName: true
managedJobsNamespaceSelector: {matchLabels: {kueue.openshift.io/managed: "true"}}
waitForPodsReady:
  blockAdmission: true
  timeout: 60s
  recoveryTimeout: 30s
  requeuingStrategy: {timestamp: Creation, backoffLimitCount: 3, backoffBaseSeconds: 10, backoffMaxSeconds: 90}
fairSharing: {preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]}
admissionFairSharing: {usageHalfLifeTime: 600s, usageSamplingInterval: 60s, resourceWeights: {cpu: 0.5}}
featureGates: {SparkApplicationIntegration: true, ShortWorkloadNames: true}
""")
    assert found == expected.to_dict()


def test_openshifts_kueue_leaves_the_rest_to_kueue() -> None:
    found = of_openshift("integrations: {frameworks: [BatchJob]}\npreemption: {preemptionPolicy: Classical}")
    assert "fairSharing" not in found
    never = of_openshift("integrations: {frameworks: [BatchJob]}\ngangScheduling: {policy: None}")["waitForPodsReady"]
    assert isinstance(never, dict)
    assert (never["timeout"], never["blockAdmission"]) == ("8760h0m0s", False)


def test_a_file_of_a_whole_installation_is_read(tmp_path: Path) -> None:
    path = tmp_path / "manifests.yaml"
    path.write_text(f"{CONFIG_MAP}---{deployment('--feature-gates=PartialAdmission=false')}", encoding="utf-8")
    found = Configuration.read(path)
    assert (found.to_dict()["manageJobsWithoutQueueName"], found.is_enabled("PartialAdmission")) == (True, False)


def test_fair_sharing_of_the_newest_version_needs_strategies() -> None:
    found = problem_of("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\nfairSharing: {}\n")
    assert "fairSharing.preemptionStrategies: Required value" in found
    assert "; write [LessThanOrEqualToFinalShare, LessThanInitialShare]" in found
