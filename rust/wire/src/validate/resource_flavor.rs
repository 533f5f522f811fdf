//! ResourceFlavors (rules/01 §4).

use std::collections::BTreeSet;

use kueuecore::objects::{ResourceFlavor, Taint, Toleration};

use super::labels;
use crate::field_error::{FieldError, quoted};
use crate::names::label_value_errors;

pub(super) fn errors(flavor: &ResourceFlavor) -> Vec<FieldError> {
    let mut errors = labels::labels(&flavor.node_labels, "spec.nodeLabels");
    errors.extend(taints(&flavor.node_taints, "spec.nodeTaints"));
    errors.extend(tolerations(&flavor.tolerations, "spec.tolerations"));
    errors
}

fn taints(taints: &[Taint], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = BTreeSet::new();
    for (i, taint) in taints.iter().enumerate() {
        let path = format!("{path}[{i}]");
        errors.extend(labels::key(&taint.key, &format!("{path}.key")));
        let complaints = label_value_errors(&taint.value);
        if !complaints.is_empty() {
            errors.push(FieldError::invalid(format!("{path}.value"), quoted(&taint.value), complaints.join(";")));
        }
        if !seen.insert((taint.effect.as_str(), taint.key.as_str())) {
            let mut error = FieldError::duplicate(path, shown(taint));
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
    errors
}

/// A taint as JSON, its fields in the order of the API.
fn shown(taint: &Taint) -> String {
    let value = if taint.value.is_empty() { String::new() } else { format!("\"value\":{},", quoted(&taint.value)) };
    format!("{{\"key\":{},{value}\"effect\":{}}}", quoted(&taint.key), quoted(&taint.effect))
}

pub(super) fn tolerations(tolerations: &[Toleration], path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (i, toleration) in tolerations.iter().enumerate() {
        if !toleration.key.is_empty() {
            errors.extend(labels::key(&toleration.key, &format!("{path}[{i}].key")));
        }
    }
    errors
}
