//! Sections that only Kueue's manager uses: checked too, so that a file is valid here exactly if it is for Kueue.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use super::json;
use crate::configuration::file::{CustomLabel, File};
use crate::field_error::{FieldError, quoted};
use crate::names::{dns1035_label_errors, dns1123_subdomain_errors, label_key_errors};

/// `internalCertManagement`.
pub(super) fn certificates(file: &File, errors: &mut Vec<FieldError>) {
    let Some(certificates) = file.internal_cert_management.as_ref().filter(|it| it.enable == Some(true)) else {
        return;
    };
    if let Some(service) = &certificates.webhook_service_name {
        let problems = dns1035_label_errors(service);
        if !problems.is_empty() {
            let path = "internalCertManagement.webhookServiceName";
            errors.push(FieldError::invalid(path, quoted(service), problems.join(",")));
        }
    }
    if let Some(secret) = &certificates.webhook_secret_name {
        let problems = dns1123_subdomain_errors(secret);
        if !problems.is_empty() {
            let path = "internalCertManagement.webhookSecretName";
            errors.push(FieldError::invalid(path, quoted(secret), problems.join(",")));
        }
    }
}

/// `tls`: the version, and that the cipher suites go with it; their names are not checked.
pub(super) fn tls(file: &File, errors: &mut Vec<FieldError>) {
    let Some(tls) = &file.tls else { return };
    const ADVICE: &str = "Please use VersionTLS12 or VersionTLS13";
    match tls.min_version.as_str() {
        "VersionTLS10" | "VersionTLS11" => {
            errors.push(FieldError::invalid("tls", json(tls), format!("invalid minVersion. {ADVICE}")));
        }
        "VersionTLS13" if !tls.cipher_suites.is_empty() => {
            let detail = "may not be specified when `minVersion` is 'VersionTLS13'";
            errors.push(FieldError::invalid("tls.cipherSuites", json(&tls.cipher_suites), detail));
        }
        "" | "VersionTLS12" | "VersionTLS13" => {}
        other => {
            let detail = format!("invalid minVersion: unknown tls version {}. {ADVICE}", quoted(other));
            errors.push(FieldError::invalid("tls", json(tls), detail));
        }
    }
}

/// `visibilityServer`.
pub(super) fn visibility_server(file: &File, errors: &mut Vec<FieldError>) {
    let Some(server) = &file.visibility_server else { return };
    if let Some(address) = server.bind_address.as_ref().filter(|address| address.parse::<IpAddr>().is_err()) {
        let path = "visibilityServer.bindAddress";
        errors.push(FieldError::invalid(path, quoted(address), "must be a valid IP address"));
    }
    if let Some(port) = server.bind_port.filter(|port| !(1..=65535).contains(port)) {
        let path = "visibilityServer.bindPort";
        errors.push(FieldError::invalid(path, port.to_string(), "must be a valid port number (1-65535)"));
    }
}

const MAX_LABELS: usize = 20;
const MAX_TRACKED_VALUES: usize = 16;
const MAX_TRACKED_VALUES_OF_WORKLOADS: usize = 12;
const DEFAULT_KIND: &str = "ClusterQueue";

/// How many custom labels a kind of object may have; `None` for an unknown kind.
fn max_labels_of(kind: &str) -> Option<usize> {
    match kind {
        "Workload" => Some(2),
        "LocalQueue" | "ClusterQueue" | "Cohort" => Some(6),
        _ => None,
    }
}

/// `metrics.customLabels`.
pub(super) fn custom_labels(labels: &[CustomLabel], errors: &mut Vec<FieldError>) {
    const PATH: &str = "metrics.customLabels";
    if labels.len() > MAX_LABELS {
        errors.push(FieldError::too_many(PATH, labels.len(), MAX_LABELS));
    }
    let mut names = BTreeSet::new();
    let mut count_by_kind: BTreeMap<&str, usize> = BTreeMap::new();
    for (i, label) in labels.iter().enumerate() {
        let path = format!("{PATH}[{i}]");
        if !is_metric_label(&label.name) {
            let detail = "must match ^[a-zA-Z][a-zA-Z0-9_]*$";
            errors.push(FieldError::invalid(format!("{path}.name"), quoted(&label.name), detail));
        }
        if !names.insert(&label.name) {
            errors.push(FieldError::duplicate(format!("{path}.name"), quoted(&label.name)));
        }
        source_key(label, &path, errors);
        let kind = label.source_kind.as_deref().unwrap_or(DEFAULT_KIND);
        *count_by_kind.entry(kind).or_default() += 1;
        tracked_values(label, kind, &format!("{path}.trackedValues"), errors);
    }
    for (kind, count) in count_by_kind {
        let detail = match max_labels_of(kind) {
            None => format!("unknown source kind: {kind}"),
            Some(max) if count > max => {
                format!("too many custom labels for source kind {kind}: found {count}, expected <= {max}")
            }
            Some(_) => continue,
        };
        errors.push(FieldError::invalid(PATH, json(labels), detail));
    }
}

fn is_metric_label(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn source_key(label: &CustomLabel, path: &str, errors: &mut Vec<FieldError>) {
    let (from_label, from_annotation) = (&label.source_label_key, &label.source_annotation_key);
    if !from_label.is_empty() && !from_annotation.is_empty() {
        let detail = "sourceLabelKey and sourceAnnotationKey are mutually exclusive";
        errors.push(FieldError::invalid(path, json(label), detail));
    }
    let (field, key) = match (from_label.is_empty(), from_annotation.is_empty()) {
        (false, _) => ("sourceLabelKey", from_label),
        (true, false) => ("sourceAnnotationKey", from_annotation),
        (true, true) => ("name", &label.name),
    };
    let problems = label_key_errors(key);
    if !problems.is_empty() {
        errors.push(FieldError::invalid(format!("{path}.{field}"), quoted(key), problems.join("; ")));
    }
}

fn tracked_values(label: &CustomLabel, kind: &str, path: &str, errors: &mut Vec<FieldError>) {
    let values = &label.tracked_values;
    // An absent list is shown as null.
    let shown = if values.is_empty() { "null".to_owned() } else { json(values) };
    if kind == "Workload" && values.is_empty() {
        let detail = "must not be empty when sourceKind is 'Workload'";
        errors.push(FieldError::invalid(path, &shown, detail));
    }
    if kind == "Workload" && values.len() > MAX_TRACKED_VALUES_OF_WORKLOADS {
        let detail =
            format!("must not be greater than {MAX_TRACKED_VALUES_OF_WORKLOADS} when sourceKind is 'Workload'");
        errors.push(FieldError::invalid(path, &shown, detail));
    }
    if kind != "Workload" && values.len() > MAX_TRACKED_VALUES {
        errors.push(FieldError::too_many(path, values.len(), MAX_TRACKED_VALUES));
    }
    if values.iter().collect::<BTreeSet<_>>().len() < values.len() {
        errors.push(FieldError::invalid(path, shown, "must not contain duplicates"));
    }
}
