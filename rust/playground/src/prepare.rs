//! What an API server adds to manifests before Kueue sees them: Namespaces, their label, and UIDs.
//!
//! `kueuecore.world` does the same for the command, and makes Workloads of jobs besides.

use std::collections::BTreeSet;

use kueuecore::objects::Time;
use kueuecore::objects::time::parse_time;
use kueuecore_wire::kinds::{KUEUE_GROUP, Kind, group_of};
use serde_json::{Value, json};

use crate::json::text_at;

const DEFAULT_NAMESPACE: &str = "default";
const NAME_LABEL: &str = "kubernetes.io/metadata.name";
const CONFIGURATION_GROUP: &str = "config.kueue.x-k8s.io";

/// Objects as an API server stores them.
pub struct Prepared {
    /// The added Namespaces, then the given objects.
    pub objects: Vec<Value>,
    /// Kueue's Configuration, if one was among them.
    pub configuration: Option<Value>,
    /// The names of the added Namespaces.
    pub added: Vec<String>,
}

/// Adds what an API server adds.
pub fn prepare(given: Vec<Value>) -> Prepared {
    let (mut configurations, mut given): (Vec<Value>, Vec<Value>) = given.into_iter().partition(is_configuration);
    let added = missing_namespaces(&given);
    for object in &mut given {
        if text_at(object, &["kind"]) == "Namespace" && text_at(object, &["apiVersion"]) == "v1" {
            let name = object["metadata"]["name"].clone();
            if object["metadata"].is_object() && !object["metadata"]["labels"].is_array() {
                object["metadata"]["labels"][NAME_LABEL] = name;
            }
        }
    }
    give_uids(&mut given);
    let mut objects: Vec<Value> = added.iter().map(|name| namespace(name)).collect();
    objects.append(&mut given);
    Prepared { objects, configuration: configurations.pop(), added }
}

/// The newest creation time or time in a status; future times, such as the end of a backoff, do not count.
pub fn newest_time(objects: &[Value]) -> Option<Time> {
    let newest = |object: &Value| {
        let status = object["status"].as_object().into_iter().flatten();
        let past = status.filter(|(field, _)| *field != "requeueState").map(|(_, value)| value);
        past.chain([&object["metadata"]["creationTimestamp"]]).filter_map(newest_in).max()
    };
    objects.iter().filter_map(newest).max()
}

/// Is it Kueue's own Workload?
pub fn is_workload(object: &Value) -> bool {
    text_at(object, &["kind"]) == "Workload" && group_of(text_at(object, &["apiVersion"])) == KUEUE_GROUP
}

/// Namespace and name, with the default namespace filled in.
pub fn key_of(object: &Value) -> (&str, &str) {
    (namespace_of(object), text_at(object, &["metadata", "name"]))
}

fn is_configuration(object: &Value) -> bool {
    text_at(object, &["kind"]) == "Configuration" && group_of(text_at(object, &["apiVersion"])) == CONFIGURATION_GROUP
}

fn namespace_of(object: &Value) -> &str {
    match text_at(object, &["metadata", "namespace"]) {
        "" => DEFAULT_NAMESPACE,
        namespace => namespace,
    }
}

fn missing_namespaces(given: &[Value]) -> Vec<String> {
    let (mut used, mut there) = (BTreeSet::new(), BTreeSet::new());
    for object in given {
        let (kind, group) = (text_at(object, &["kind"]), group_of(text_at(object, &["apiVersion"])));
        if kind == "Namespace" {
            there.insert(text_at(object, &["metadata", "name"]));
        } else if kind != "Pod" && Kind::find(group, kind).is_some_and(|kind| kind.is_namespaced()) {
            used.insert(namespace_of(object));
        }
    }
    // An invalid Namespace name is reported for the object in it.
    used.difference(&there).filter(|name| is_label(name)).map(ToString::to_string).collect()
}

fn is_label(name: &str) -> bool {
    let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 63
        && name.starts_with(is_inside)
        && name.ends_with(is_inside)
        && name.chars().all(|c| is_inside(c) || c == '-')
}

fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {NAME_LABEL: name}}})
}

/// UIDs break ties between Workloads of the same time: they count up, so that the first in the files goes first.
fn give_uids(objects: &mut [Value]) {
    let taken: BTreeSet<String> = objects.iter().map(|it| text_at(it, &["metadata", "uid"]).to_owned()).collect();
    let numbered = (1_u64..).map(|n| format!("00000000-0000-0000-0000-{n:012}"));
    let mut free = numbered.filter(|uid| !taken.contains(uid));
    for object in objects.iter_mut().filter(|object| is_workload(object)) {
        if object["metadata"].is_object() && text_at(object, &["metadata", "uid"]).is_empty() {
            object["metadata"]["uid"] = free.next().map_or(Value::Null, Value::String);
        }
    }
}

fn newest_in(value: &Value) -> Option<Time> {
    match value {
        Value::String(text) => parse_time(text),
        Value::Array(items) => items.iter().filter_map(newest_in).max(),
        Value::Object(fields) => fields.values().filter_map(newest_in).max(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn namespaces_and_uids_are_added() {
        let workload = json!({"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "metadata": {"name": "w"}});
        let prepared = prepare(vec![workload.clone(), json!({"apiVersion": "batch/v1", "kind": "Job"})]);
        assert_eq!(prepared.added, ["default"]);
        assert_eq!(text_at(&prepared.objects[1], &["metadata", "uid"]), "00000000-0000-0000-0000-000000000001");
        assert_eq!(prepared.objects.len(), 3);
    }

    #[test]
    fn the_end_of_a_backoff_is_no_present_time() {
        let object = json!({
            "metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {
                "conditions": [{"lastTransitionTime": "2026-01-02T00:00:00Z"}],
                "requeueState": {"requeueAt": "2027-01-01T00:00:00Z"},
            },
        });
        assert_eq!(newest_time(&[object]), parse_time("2026-01-02T00:00:00Z"));
    }
}
