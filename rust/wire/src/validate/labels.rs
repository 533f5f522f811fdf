//! Labels, annotations and label selectors.

use kueuecore::objects::{LabelSelector, StringMap};

use crate::field_error::{FieldError, quoted};
use crate::names::{label_key_errors, label_value_errors};

/// Limit on all annotations of an object together, in bytes.
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

pub(super) fn key(key: &str, path: &str) -> Vec<FieldError> {
    label_key_errors(key).into_iter().map(|detail| FieldError::invalid(path, quoted(key), detail)).collect()
}

pub(super) fn value(value: &str, path: &str) -> Vec<FieldError> {
    label_value_errors(value).into_iter().map(|detail| FieldError::invalid(path, quoted(value), detail)).collect()
}

pub(super) fn labels(labels: &StringMap, path: &str) -> Vec<FieldError> {
    labels.iter().flat_map(|(name, text)| [key(name, path), value(text, path)]).flatten().collect()
}

pub(super) fn annotations(annotations: &StringMap, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in annotations.keys() {
        // Annotation keys are case-insensitive.
        let complaints = label_key_errors(&name.to_lowercase());
        errors.extend(complaints.into_iter().map(|detail| FieldError::invalid(path, quoted(name), detail)));
    }
    let n_bytes: usize = annotations.iter().map(|(name, text)| name.len() + text.len()).sum();
    if n_bytes > MAX_ANNOTATION_BYTES {
        errors.push(FieldError::too_long(path, MAX_ANNOTATION_BYTES));
    }
    errors
}

pub(super) fn selector(selector: &LabelSelector, path: &str) -> Vec<FieldError> {
    let mut errors = labels(&selector.match_labels, &format!("{path}.matchLabels"));
    for (i, expression) in selector.match_expressions.iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        match expression.operator.as_str() {
            "In" | "NotIn" if expression.values.is_empty() => errors.push(FieldError::required(
                format!("{path}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !expression.values.is_empty() => errors.push(FieldError::forbidden(
                format!("{path}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            other => errors.push(FieldError::invalid(
                format!("{path}.operator"),
                quoted(other),
                "not a valid selector operator",
            )),
        }
        errors.extend(key(&expression.key, &format!("{path}.key")));
        for (j, text) in expression.values.iter().enumerate() {
            errors.extend(value(text, &format!("{path}.values[{j}]")));
        }
    }
    errors
}
