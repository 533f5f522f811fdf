//! What an API server with Kueue's webhooks rejects (rules/01 §1-6).
//!
//! [`manifest`] is the first half: the schema of the kind, on the JSON. [`create`] and [`update`] are the second half:
//! rules of the webhooks, on objects, so that objects that were never JSON can be checked too. As in an API server, the
//! second half runs only if the first finds nothing.

mod labels;
mod metadata;
mod quotas;
mod resource_flavor;
mod update;
mod workload;

use kueuecore::objects::Object;
use kueuecore::objects::config::Config;
use serde_json::Value;

use crate::field_error::{FieldError, WHOLE};
use crate::kinds::Kind;
use crate::names::dns1123_subdomain_errors;
use crate::schema::{self, Served};

pub use update::update;
pub(crate) use update::{update_schema, update_webhook};

/// Errors of a prepared manifest by the schema of its kind: metadata, shapes, bounds, then rules across fields, unless
/// an earlier error prevents their evaluation.
pub(crate) fn manifest(kind: Kind, served: Served, object: &Value) -> Vec<FieldError> {
    let schema = schema::of(kind, served);
    let mut errors = metadata::errors(kind, object.get("metadata").unwrap_or(&Value::Null));
    errors.extend(schema.check(object));
    // Without rules, skipping them needs no note.
    if !errors.is_empty() && !schema.has_rules() {
        return errors;
    }
    if schema::blocks_rules(&errors) {
        errors.push(FieldError::invalid(
            WHOLE,
            "null",
            "some validation rules were not checked because the object was invalid; correct the existing errors to \
             complete validation",
        ));
        return errors;
    }
    errors.extend(schema.check_rules(object).into_iter().map(|mut error| {
        if error.path.is_empty() {
            error.path = WHOLE.to_owned();
        }
        error
    }));
    errors
}

/// Errors in the `metadata` of an object of any kind whose names follow Kueue's rules.
#[must_use]
pub fn metadata(is_namespaced: bool, metadata: &Value) -> Vec<FieldError> {
    let shapes = schema::metadata_errors(metadata);
    if shapes.is_empty() { metadata::errors_of(dns1123_subdomain_errors, is_namespaced, metadata) } else { shapes }
}

/// Errors of Kueue's webhooks for a new object; empty if they accept it.
#[must_use]
pub fn create(object: &Object, config: &Config) -> Vec<FieldError> {
    let errors = match object {
        Object::ClusterQueue(queue) => quotas::cluster_queue(queue, config),
        Object::Cohort(cohort) => quotas::cohort(cohort),
        Object::ResourceFlavor(flavor) => resource_flavor::errors(flavor),
        Object::Workload(workload) => workload::errors(workload, None, config),
        _ => Vec::new(),
    };
    without_repetition(errors)
}

/// The errors without those whose text repeats an earlier one.
fn without_repetition(errors: Vec<FieldError>) -> Vec<FieldError> {
    let mut kept: Vec<FieldError> = Vec::with_capacity(errors.len());
    for error in errors {
        if !kept.contains(&error) {
            kept.push(error);
        }
    }
    kept
}

const NEGATIVE: &str = "must be greater than or equal to 0";
const IMMUTABLE: &str = "field is immutable";

#[cfg(test)]
mod tests;
