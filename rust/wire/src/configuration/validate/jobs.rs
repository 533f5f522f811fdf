//! Integrations, managed namespaces and MultiKueue.

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::releases::Release;
use serde_json::Value;

use super::{NEGATIVE, json};
use crate::configuration::defaults::DISPATCHER_INCREMENTAL;
use crate::configuration::file::{AccessProvider, File, Selector};
use crate::field_error::{FieldError, quoted};
use crate::names::{label_key_errors, label_value_errors};

/// A job integration built into Kueue.
struct Integration {
    name: &'static str,
    /// Group, version and kind as Kueue writes them.
    kind: &'static str,
    /// Does it have a MultiKueue adapter?
    multikueue: bool,
}

const fn integration(name: &'static str, kind: &'static str) -> Integration {
    Integration { name, kind, multikueue: true }
}

const fn local_only(name: &'static str, kind: &'static str) -> Integration {
    Integration { name, kind, multikueue: false }
}

/// By name (rules/10 §1, rules/06 §7).
const INTEGRATIONS: [Integration; 18] = [
    integration("batch/job", "batch/v1, Kind=Job"),
    local_only("deployment", "apps/v1, Kind=Deployment"),
    integration("jobset.x-k8s.io/jobset", "jobset.x-k8s.io/v1alpha2, Kind=JobSet"),
    integration("kubeflow.org/jaxjob", "kubeflow.org/v1, Kind=JAXJob"),
    integration("kubeflow.org/mpijob", "kubeflow.org/v2beta1, Kind=MPIJob"),
    integration("kubeflow.org/paddlejob", "kubeflow.org/v1, Kind=PaddleJob"),
    integration("kubeflow.org/pytorchjob", "kubeflow.org/v1, Kind=PyTorchJob"),
    integration("kubeflow.org/tfjob", "kubeflow.org/v1, Kind=TFJob"),
    integration("kubeflow.org/xgboostjob", "kubeflow.org/v1, Kind=XGBoostJob"),
    integration("leaderworkerset.x-k8s.io/leaderworkerset", "leaderworkerset.x-k8s.io/v1, Kind=LeaderWorkerSet"),
    integration("pod", "/v1, Kind=Pod"),
    integration("ray.io/raycluster", "ray.io/v1, Kind=RayCluster"),
    integration("ray.io/rayjob", "ray.io/v1, Kind=RayJob"),
    integration("ray.io/rayservice", "ray.io/v1, Kind=RayService"),
    local_only("sparkoperator.k8s.io/sparkapplication", "sparkoperator.k8s.io/v1beta2, Kind=SparkApplication"),
    integration("statefulset", "apps/v1, Kind=StatefulSet"),
    integration("trainer.kubeflow.org/trainjob", "trainer.kubeflow.org/v1alpha1, Kind=TrainJob"),
    integration("workload.codeflare.dev/appwrapper", "workload.codeflare.dev/v1beta2, Kind=AppWrapper"),
];

fn find(name: &str) -> Option<&'static Integration> {
    INTEGRATIONS.iter().find(|integration| integration.name == name)
}

/// `Kind.version.group` as Kueue writes kinds; `None` for fewer than two dots.
fn kind_of(argument: &str) -> Option<String> {
    let mut parts = argument.splitn(3, '.');
    let (kind, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{group}/{version}, Kind={kind}"))
}

/// Integrations that 0.16 does not have.
const SINCE_0_17: [&str; 2] = ["ray.io/rayservice", "sparkoperator.k8s.io/sparkapplication"];

/// `integrations`: known, unique, external ones well-formed.
pub(super) fn integrations(file: &File, release: Release, errors: &mut Vec<FieldError>) {
    let is_known = |name: &str| release.version().minor() >= 17 || !SINCE_0_17.contains(&name);
    let Some(integrations) = &file.integrations else { return };
    let mut managed = BTreeSet::new();
    for (i, framework) in integrations.frameworks.iter().enumerate() {
        let path = format!("integrations.frameworks[{i}]");
        match find(framework).filter(|it| is_known(it.name)) {
            None => {
                let known: Vec<&str> = INTEGRATIONS.iter().map(|it| it.name).filter(|name| is_known(name)).collect();
                errors.push(FieldError::unsupported(path, quoted(framework), &known));
            }
            Some(known) if !managed.insert(known.kind.to_owned()) => {
                errors.push(FieldError::duplicate(path, quoted(framework)));
            }
            Some(_) => {}
        }
    }
    for (i, framework) in integrations.external_frameworks.iter().enumerate() {
        let path = format!("integrations.externalFrameworks[{i}]");
        match kind_of(framework) {
            None => {
                let detail = "must be format, 'Kind.version.group.com'";
                errors.push(FieldError::invalid(path, quoted(framework), detail));
            }
            Some(kind) => {
                if !managed.insert(kind) {
                    errors.push(FieldError::duplicate(path, quoted(framework)));
                }
            }
        }
    }
    if integrations.frameworks.iter().any(|framework| framework == "pod") {
        managed_namespaces(file, errors);
    }
}

/// `managedJobsNamespaceSelector`: well-formed, and matches neither kube-system nor Kueue's own namespace.
pub(super) fn managed_namespaces(file: &File, errors: &mut Vec<FieldError>) {
    const PATH: &str = "managedJobsNamespaceSelector";
    let Some(selector) = &file.managed_jobs_namespace_selector else { return };
    let before = errors.len();
    well_formed(selector, PATH, errors);
    if errors.len() > before {
        return;
    }
    let own = file.namespace.as_deref().filter(|namespace| !namespace.is_empty());
    for namespace in ["kube-system"].into_iter().chain(own).filter(|namespace| matches(selector, namespace)) {
        let detail = format!("should not match the {} namespace", quoted(namespace));
        errors.push(FieldError::invalid(PATH, json(selector), detail));
    }
}

/// `metrics.localQueueMetrics.localQueueSelector`: well-formed, unless these metrics are off. Kueue's own words were not
/// seen.
pub(super) fn local_queue_selector(file: &File, errors: &mut Vec<FieldError>) {
    let metrics = file.metrics.local_queue_metrics.as_ref().filter(|it| it.enable);
    if let Some(selector) = metrics.and_then(|it| it.local_queue_selector.as_ref()) {
        well_formed(selector, "metrics.localQueueMetrics.localQueueSelector", errors);
    }
}

fn well_formed(selector: &Selector, path: &str, errors: &mut Vec<FieldError>) {
    for (key, value) in &selector.match_labels {
        let path = format!("{path}.matchLabels");
        errors.extend(label_key_errors(key).into_iter().map(|why| FieldError::invalid(&path, quoted(key), why)));
        errors.extend(label_value_errors(value).into_iter().map(|why| FieldError::invalid(&path, quoted(value), why)));
    }
    for (i, requirement) in selector.match_expressions.iter().enumerate() {
        let path = |field: &str| format!("{path}.matchExpressions[{i}].{field}");
        let has_values = !requirement.values.is_empty();
        match (requirement.operator.as_str(), has_values) {
            ("In" | "NotIn", false) => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(path("values"), detail));
            }
            ("Exists" | "DoesNotExist", true) => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(path("values"), detail));
            }
            ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false) => {}
            (operator, _) => {
                errors.push(FieldError::invalid(path("operator"), quoted(operator), "not a valid selector operator"));
            }
        }
        let key = &requirement.key;
        errors.extend(label_key_errors(key).into_iter().map(|why| FieldError::invalid(path("key"), quoted(key), why)));
        for (j, value) in requirement.values.iter().enumerate() {
            let path = path(&format!("values[{j}]"));
            errors.extend(
                label_value_errors(value).into_iter().map(|why| FieldError::invalid(&path, quoted(value), why)),
            );
        }
    }
}

/// Does a well-formed selector match a namespace whose only label is its name?
fn matches(selector: &Selector, namespace: &str) -> bool {
    let labels = BTreeMap::from([("kubernetes.io/metadata.name", namespace)]);
    let value_of = |key: &str| labels.get(key).copied();
    selector.match_labels.iter().all(|(key, value)| value_of(key) == Some(value))
        && selector.match_expressions.iter().all(|requirement| {
            let value = value_of(&requirement.key);
            let is_listed = value.is_some_and(|value| requirement.values.iter().any(|listed| listed == value));
            match requirement.operator.as_str() {
                "In" => is_listed,
                "NotIn" => !is_listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

/// `multiKueue`.
pub(super) fn multikueue(file: &File, errors: &mut Vec<FieldError>) {
    let Some(multikueue) = &file.multi_kueue else { return };
    for (path, interval) in [
        ("multiKueue.gcInterval", multikueue.gc_interval),
        ("multiKueue.workerLostTimeout", multikueue.worker_lost_timeout),
    ] {
        if let Some(interval) = interval.filter(|interval| interval.ns < 0) {
            // Shown in nanoseconds, unlike the other durations.
            errors.push(FieldError::invalid(path, interval.ns.to_string(), NEGATIVE));
        }
    }
    let origin = multikueue.origin.as_deref().unwrap_or_default();
    let problems = label_value_errors(origin);
    if !problems.is_empty() {
        errors.push(FieldError::invalid("multiKueue.origin", quoted(origin), problems.join(",")));
    }
    external_adapters(file, errors);
    if let Some(profile) = &multikueue.cluster_profile {
        const OLD: &str = "multiKueue.clusterProfile.credentialsProviders";
        if profile.access_providers.is_empty() {
            access_providers(&profile.credentials_providers, OLD, errors);
        } else {
            if !profile.credentials_providers.is_empty() {
                errors.push(FieldError::forbidden(OLD, "must not be specified when accessProviders is specified"));
            }
            access_providers(&profile.access_providers, "multiKueue.clusterProfile.accessProviders", errors);
        }
    }
    let Some(incremental) = &multikueue.incremental_dispatcher_config else { return };
    if multikueue.dispatcher_name.as_deref() != Some(DISPATCHER_INCREMENTAL) {
        let detail =
            "incrementalDispatcherConfig is only valid when dispatcherName is set to the incremental dispatcher";
        errors.push(FieldError::invalid("multiKueue.incrementalDispatcherConfig", json(incremental), detail));
    }
    if let Some(step) = incremental.step_size.filter(|&step| step < 1) {
        let path = "multiKueue.incrementalDispatcherConfig.stepSize";
        errors.push(FieldError::invalid(path, step.to_string(), "must be greater than or equal to 1"));
    }
}

fn external_adapters(file: &File, errors: &mut Vec<FieldError>) {
    let Some(multikueue) = &file.multi_kueue else { return };
    let enabled = file.integrations.iter().flat_map(|integrations| &integrations.frameworks);
    let built_in: BTreeSet<&str> =
        enabled.filter_map(|name| find(name)).filter(|known| known.multikueue).map(|known| known.kind).collect();
    let mut seen = BTreeSet::new();
    for (i, framework) in multikueue.external_frameworks.iter().enumerate() {
        let path = format!("multiKueue.externalFrameworks[{i}].name");
        let name = quoted(&framework.name);
        let Some(kind) = kind_of(&framework.name) else {
            errors.push(FieldError::invalid(path, name, "must be in 'kind.version.group' format"));
            continue;
        };
        let is_built_in = built_in.contains(kind.as_str());
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&path, &name));
        }
        if is_built_in {
            errors.push(FieldError::invalid(path, name, "conflicts with a built-in MultiKueue adapter"));
        }
    }
}

/// Kueue's paths have no list position here.
fn access_providers(providers: &[AccessProvider], path: &str, errors: &mut Vec<FieldError>) {
    for provider in providers {
        let exec = &provider.exec_config;
        let text = |key: &str| exec.get(key).and_then(Value::as_str).unwrap_or_default();
        if provider.name.is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), "must be specified"));
        }
        for key in ["command", "apiVersion"] {
            if text(key).is_empty() {
                errors.push(FieldError::required(format!("{path}.execConfig.{key}"), "must be specified"));
            }
        }
        let environment = exec.get("env").and_then(Value::as_array).into_iter().flatten();
        for _ in environment.filter(|entry| entry.get("name").and_then(Value::as_str).unwrap_or_default().is_empty()) {
            errors.push(FieldError::required(format!("{path}.execConfig.env.name"), "must be specified"));
        }
        // Kubernetes' client library gives the field no JSON name, so both spellings occur.
        let mode = [text("interactiveMode"), text("InteractiveMode")].into_iter().find(|mode| !mode.is_empty());
        let path = format!("{path}.execConfig.interactiveMode");
        match mode {
            None => errors.push(FieldError::required(path, "must be specified")),
            Some(mode) => super::one_of(&path, mode, &["Never", "IfAvailable", "Always"], errors),
        }
    }
}
