//! `metadata` of a manifest: the API server's rules for the metadata of any object (rules/01 §10 8).

use std::cell::LazyCell;

use kueuecore::objects::StringMap;
use serde_json::Value;

use super::{NEGATIVE, labels};
use crate::field_error::{FieldError, is_printable, quoted, rendered, shortened};
use crate::kinds::Kind;
use crate::names::{dns1123_label_errors, dns1123_subdomain_errors, label_key_errors};

pub(super) fn errors(kind: Kind, metadata: &Value) -> Vec<FieldError> {
    // Namespace names are DNS labels, all others DNS subdomains.
    let names = if kind == Kind::Namespace { dns1123_label_errors } else { dns1123_subdomain_errors };
    errors_of(names, kind.is_namespaced(), metadata)
}

/// The same for an object of any kind; `name_errors` checks the name.
pub(super) fn errors_of(
    name_errors: fn(&str) -> Vec<String>,
    is_namespaced: bool,
    metadata: &Value,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let prefix = text(metadata, "generateName");
    if !prefix.is_empty() {
        // The suffix that the server appends makes a trailing hyphen valid.
        let trimmed = prefix.strip_suffix('-').map_or_else(|| prefix.to_owned(), |rest| format!("{rest}a"));
        let complaints = name_errors(&trimmed);
        errors.extend(
            complaints.into_iter().map(|detail| FieldError::invalid("metadata.generateName", quoted(prefix), detail)),
        );
    }
    let name = text(metadata, "name");
    if name.is_empty() && prefix.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else if !name.is_empty() {
        let complaints = name_errors(name);
        errors.extend(complaints.into_iter().map(|detail| FieldError::invalid("metadata.name", quoted(name), detail)));
    }
    errors.extend(namespace(is_namespaced, text(metadata, "namespace")));
    errors.extend(labels::labels(&entries(metadata, "labels"), "metadata.labels"));
    errors.extend(labels::annotations(&entries(metadata, "annotations"), "metadata.annotations"));
    if let Some(generation) = metadata.get("generation").filter(|value| value.as_i64().is_some_and(|n| n < 0)) {
        errors.push(FieldError::invalid("metadata.generation", rendered(generation), NEGATIVE));
    }
    errors.extend(owners(items(metadata, "ownerReferences")));
    errors.extend(finalizers(items(metadata, "finalizers")));
    errors.extend(managers(items(metadata, "managedFields")));
    errors
}

fn owners(owners: &[Value]) -> Vec<FieldError> {
    let path = "metadata.ownerReferences";
    let mut errors = Vec::new();
    let mut controller: Option<String> = None;
    // Each error shows all of them, which can be many times many.
    let all = LazyCell::new(|| shortened(&rendered(&Value::from(owners.to_vec()))).into_owned());
    for owner in owners.iter().filter(|owner| owner.is_object()) {
        let version = text(owner, "apiVersion");
        let has_version = version.matches('/').count() <= 1 && !version.rsplit('/').next().unwrap_or("").is_empty();
        if !has_version {
            errors.push(FieldError::invalid(
                format!("{path}.apiVersion"),
                quoted(version),
                "version must not be empty",
            ));
        }
        for name in ["kind", "name", "uid"] {
            if text(owner, name).is_empty() {
                errors.push(FieldError::invalid(format!("{path}.{name}"), quoted(""), "must not be empty"));
            }
        }
        if (version, text(owner, "kind")) == ("v1", "Event") {
            errors.push(FieldError::invalid(
                path,
                rendered(owner),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let this = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
            match &controller {
                None => controller = Some(this),
                Some(first) => errors.push(FieldError::invalid(
                    path,
                    all.clone(),
                    format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and \
                         {this}"
                    ),
                )),
            }
        }
    }
    errors
}

fn finalizers(finalizers: &[Value]) -> Vec<FieldError> {
    let path = "metadata.finalizers";
    let named = || finalizers.iter().filter_map(Value::as_str);
    let complaints = named().flat_map(|name| label_key_errors(name).into_iter().map(move |detail| (name, detail)));
    let mut errors: Vec<FieldError> =
        complaints.map(|(name, detail)| FieldError::invalid(path, quoted(name), detail)).collect();
    let (orphan, foreground) = ("orphan", "foregroundDeletion");
    if named().any(|name| name == orphan) && named().any(|name| name == foreground) {
        let detail = format!("finalizer {orphan} and {foreground} cannot be both set");
        errors.push(FieldError::invalid(path, rendered(&Value::from(finalizers.to_vec())), detail));
    }
    errors
}

/// `managedFields`: dumps have them, but nobody writes them by hand.
fn managers(entries: &[Value]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.is_object()) {
        let path = |name: &str| format!("metadata.managedFields[{i}].{name}");
        let operation = text(entry, "operation");
        if !matches!(operation, "Apply" | "Update") {
            errors.push(FieldError::invalid(path("operation"), quoted(operation), "must be `Apply` or `Update`"));
        }
        let fields_type = text(entry, "fieldsType");
        if !matches!(fields_type, "" | "FieldsV1") {
            errors.push(FieldError::invalid(path("fieldsType"), quoted(fields_type), "must be `FieldsV1`"));
        }
        for (name, max) in [("manager", 128), ("subresource", 256)] {
            if text(entry, name).len() > max {
                errors.push(FieldError::too_long(path(name), max));
            }
        }
        let manager = text(entry, "manager");
        for (at, c) in manager.char_indices().filter(|&(_, c)| !is_printable(c)) {
            let detail = format!("invalid character U+{:04X} (at position {at})", c as u32);
            errors.push(FieldError::invalid(path("manager"), quoted(manager), detail));
        }
    }
    errors
}

/// Objects of other kinds have lost their namespace before.
fn namespace(is_namespaced: bool, namespace: &str) -> Vec<FieldError> {
    let path = "metadata.namespace";
    if !is_namespaced {
        return Vec::new();
    }
    if namespace.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let complaints = dns1123_label_errors(namespace).into_iter();
    complaints.map(|detail| FieldError::invalid(path, quoted(namespace), detail)).collect()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or("")
}

fn items<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a map; the schema checks that they are texts.
fn entries(metadata: &Value, name: &str) -> StringMap {
    let entries = metadata.get(name).and_then(Value::as_object).into_iter().flatten();
    entries.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
