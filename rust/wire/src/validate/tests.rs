//! One row per rejection: the smallest manifest that causes it, and the exact text.

mod changes_of_0_20;
mod others;
mod quotas;
mod shapes;
mod update;
mod workload;

use super::*;
use crate::decode::{Decoded, Door, decode_value, decode_with};
use kueuecore::base::gates::Gates;
use kueuecore::base::releases::Release;
use serde_json::json;

pub(super) fn people(object: &Value, gates: &Gates) -> Result<Decoded, String> {
    people_of(object, &Config { gates: *gates, ..Config::default() })
}

fn people_of(object: &Value, config: &Config) -> Result<Decoded, String> {
    decode_with(object.to_string().as_bytes(), Door::People, config).map_err(|rejections| {
        let errors: Vec<String> = rejections.iter().flat_map(|r| &r.errors).map(ToString::to_string).collect();
        errors.join("\n")
    })
}

pub(super) fn refused(object: &Value, gates: &Gates) -> String {
    people(object, gates).err().unwrap_or_else(|| "accepted".to_owned())
}

/// The settings of the newest release of a line.
pub(super) fn of_release(line: &str) -> Config {
    Config::of(Release::from_name(line).expect("a line of releases"))
}

/// The same object in several releases, with the errors of each.
pub(super) fn check_releases(object: &Value, expected: &[(&str, &str)]) {
    for (line, errors) in expected {
        let found = people_of(object, &of_release(line)).err().unwrap_or_else(|| "accepted".to_owned());
        assert_eq!(found, *errors, "{line}: {object}");
    }
}

/// A kind of v1beta2 with this spec.
pub(super) fn kueue(kind: &str, spec: Value) -> Value {
    json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

/// Adds the same other fields to every row and compares the errors.
pub(super) fn check(rows: &[(Value, &str)], gates: &Gates) {
    for (object, expected) in rows {
        assert_eq!(refused(object, gates), *expected, "{object}");
    }
}

/// One group with one flavor and these quotas of cpu.
pub(super) fn quotas(resource: &Value) -> Value {
    let mut cpu = json!({"name": "cpu", "nominalQuota": 1});
    for (name, value) in resource.as_object().into_iter().flatten() {
        cpu[name] = value.clone();
    }
    json!([{"coveredResources": ["cpu"], "flavors": [{"name": "f", "resources": [cpu]}]}])
}

pub(super) const QUOTA: &str = "spec.resourceGroups[0].flavors[0].resources[0]";

/// A Workload of v1beta2 with one pod set, and other fields.
pub(super) fn workload(spec: &Value, pod_set: &Value, status: &Value) -> Value {
    let mut one = json!({"name": "main", "count": 3, "template": {"spec": {"containers": [{"name": "c"}]}}});
    for (name, value) in pod_set.as_object().into_iter().flatten() {
        one[name] = value.clone();
    }
    let mut object = kueue("Workload", json!({"podSets": [one]}));
    for (name, value) in spec.as_object().into_iter().flatten() {
        object["spec"][name] = value.clone();
    }
    if !status.is_null() {
        object["status"] = status.clone();
    }
    object
}

pub(super) fn condition(kind: &str) -> Value {
    json!({"type": kind, "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

pub(super) fn reserved(more: Value) -> Value {
    let mut status = json!({"conditions": [condition("QuotaReserved")]});
    for (name, value) in more.as_object().into_iter().flatten() {
        status[name] = value.clone();
    }
    status
}

pub(super) fn admitted(assignment: Value) -> Value {
    reserved(json!({"admission": {"clusterQueue": "q", "podSetAssignments": [assignment]}}))
}

#[test]
fn unknown_fields_are_warned_about() {
    let object = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "x", "lables": {}}, "spce": {},
        "spec": {"cohort": "c", "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [
            {"name": "f", "resources": [{"name": "cpu", "nominalQuota": 1, "borowingLimit": 1}]}]}], "xyz": 1},
    });
    let decoded = people(&object, &Gates::default()).expect("well formed");
    let found: Vec<(&str, &str)> = decoded.warnings.iter().map(|w| (w.field.as_str(), w.message.as_str())).collect();
    let quota = "spec.resourceGroups[0].flavors[0].resources[0].borowingLimit";
    assert_eq!(
        found,
        [
            ("spce", "unknown field \"spce\", did you mean \"spec\"?"),
            ("metadata.lables", "unknown field \"metadata.lables\", did you mean \"labels\"?"),
            ("spec.cohort", "unknown field \"spec.cohort\", did you mean \"cohortName\"?"),
            ("spec.xyz", "unknown field \"spec.xyz\""),
            (quota, &format!("unknown field \"{quota}\", did you mean \"borrowingLimit\"?")),
        ]
    );
    assert_eq!(
        (decoded.warnings[0].object.kind.as_str(), decoded.warnings[0].object.name.as_str()),
        ("ClusterQueue", "x")
    );
}

#[test]
fn metadata_is_checked() {
    let with =
        |metadata: Value| json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": metadata});
    let blocked = "\n<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
    let rows = [
        (with(json!({"generateName": "x-"})), "accepted".to_owned()),
        (with(json!({})), format!("metadata.name: Required value: name or generateName is required{blocked}")),
    ];
    for (object, expected) in rows {
        assert_eq!(refused(&object, &Gates::default()), expected);
    }
    let found = refused(&with(json!({"name": "A_b", "labels": {"a": "b c"}})), &Gates::default());
    assert!(found.starts_with("metadata.name: Invalid value: \"A_b\": a lowercase RFC 1123 subdomain"), "{found}");
    assert!(found.contains("\nmetadata.labels: Invalid value: \"b c\": a valid label"), "{found}");
}

#[test]
fn a_namespace_that_means_nothing_is_dropped_with_a_warning() {
    let mut object = kueue("Cohort", json!({}));
    object["metadata"]["namespace"] = json!("ns");
    let decoded = people(&object, &Gates::default()).expect("well formed");
    let (Object::Cohort(cohort), _) = &decoded.objects[0] else { panic!("a Cohort") };
    assert_eq!(cohort.meta.namespace, "");
    assert_eq!(decoded.warnings[0].field, "metadata.namespace");
    assert_eq!(decoded.warnings[0].message, "namespace \"ns\" is ignored: a Cohort has none");
}
