//! `metadata` of a manifest: name, namespace, labels, annotations.

use kueuecore::objects::StringMap;
use serde_json::Value;

use super::labels;
use crate::field_error::{FieldError, quoted};
use crate::kinds::Kind;
use crate::names::{dns1123_label_errors, dns1123_subdomain_errors};

pub(super) fn errors(kind: Kind, metadata: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let text = |name| metadata.get(name).and_then(Value::as_str).unwrap_or("");
    let prefix = text("generateName");
    if !prefix.is_empty() {
        // What is appended makes a trailing hyphen fine.
        let trimmed = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |rest| format!("{rest}a"));
        let complaints = name_errors(kind, &trimmed);
        errors.extend(
            complaints.into_iter().map(|detail| FieldError::invalid("metadata.generateName", quoted(prefix), detail)),
        );
    }
    let name = text("name");
    if name.is_empty() && prefix.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if !name.is_empty() {
        let complaints = name_errors(kind, name);
        errors.extend(complaints.into_iter().map(|detail| FieldError::invalid("metadata.name", quoted(name), detail)));
    }
    errors.extend(namespace(kind, text("namespace")));
    errors.extend(labels::labels(&entries(metadata, "labels"), "metadata.labels"));
    errors.extend(labels::annotations(&entries(metadata, "annotations"), "metadata.annotations"));
    errors
}

/// Namespaces are named by labels, everything else by subdomains.
fn name_errors(kind: Kind, name: &str) -> Vec<String> {
    if kind == Kind::Namespace { dns1123_label_errors(name) } else { dns1123_subdomain_errors(name) }
}

/// Objects of other kinds have lost theirs before.
fn namespace(kind: Kind, namespace: &str) -> Vec<FieldError> {
    let path = "metadata.namespace";
    if !kind.is_namespaced() {
        return Vec::new();
    }
    if namespace.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let complaints = dns1123_label_errors(namespace).into_iter();
    complaints.map(|detail| FieldError::invalid(path, quoted(namespace), detail)).collect()
}

/// The texts of a map; what is no text is the schema's business.
fn entries(metadata: &Value, name: &str) -> StringMap {
    let entries = metadata.get(name).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
