//! The answer to one question: what Kueue would do, why, and what is wrong with the manifests.

use std::collections::{BTreeMap, BTreeSet};

use kueuecore::base::releases::Release;
use kueuecore::engine::Engine;
use kueuecore::objects::Time;
use kueuecore::objects::time::parse_time;
use kueuecore_wire::configuration::Configuration;
use kueuecore_wire::decode::{Decoded, Door, Foreign};
use kueuecore_wire::intake::intake;
use serde::Deserialize;
use serde_json::Value;

use crate::document::{Facts, cycles, document};
use crate::explanation::explanation;
use crate::json::{Json, items, pretty, text_at};
use crate::prepare::{Prepared, is_workload, key_of, newest_time, prepare};
use crate::settle::settle;

/// Kinds that the command reads besides those of the engine, or that play no part in decisions.
const SILENT: [&str; 2] = ["Event", "PodTemplate"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    /// Objects as a manifest has them.
    objects: Vec<Value>,
    /// RFC 3339; absent: the newest time in the objects, or 1970.
    now: Option<String>,
    /// `namespace/name` of the workload to explain.
    explain: Option<String>,
}

/// The answer as JSON: `{"errors": [...]}`, or `notes`, `cycles`, and the documents of `kueuecore run` and `explain` as
/// texts.
pub fn answer(question: &[u8]) -> String {
    let found = serde_json::from_slice(question).map_err(|error| vec![error.to_string()]).and_then(answered);
    let answer = found.unwrap_or_else(|errors| {
        let errors = errors.into_iter().map(Json::from).collect();
        Json::Object(vec![("errors", errors)])
    });
    pretty(&answer)
}

fn answered(question: Question) -> Result<Json, Vec<String>> {
    let prepared = prepare(question.objects);
    let now = match question.now.as_deref().unwrap_or_default() {
        "" => newest_time(&prepared.objects).unwrap_or(Time(0)),
        text => parse_time(text).ok_or_else(|| {
            vec![format!("now: {text:?} is no time: write it like 2026-01-01T00:00:00Z, or leave it empty")]
        })?,
    };
    let mut engine = engine(prepared.configuration.as_ref())?;
    let decoded = taken(&mut engine, &prepared, now)?;
    let settled = settle(&mut engine, now);
    let facts = Facts { settled: &settled, given: &prepared.objects, now };
    let run = document(&mut engine, &facts);
    let explained = match question.explain.as_deref().unwrap_or_default() {
        "" => Json::Plain(Value::Null),
        key => explanation(&mut engine, key, now).map_or(Json::Plain(Value::Null), |it| Json::from(pretty(&it))),
    };
    Ok(Json::Object(vec![
        ("notes", notes(&prepared, &decoded).into_iter().map(Json::from).collect()),
        ("cycles", cycles(&engine, &settled)),
        ("run", Json::from(pretty(&run))),
        ("explain", explained),
    ]))
}

fn engine(configuration: Option<&Value>) -> Result<Engine, Vec<String>> {
    let release = Release::default();
    let read = match configuration {
        None => Configuration::of(release),
        Some(file) => Configuration::read(file.to_string().as_bytes(), &BTreeMap::new(), release)
            .map_err(|errors| errors.iter().map(|error| format!("Configuration: {error}")).collect::<Vec<_>>())?,
    };
    Ok(Engine::new(read.for_simulation()))
}

/// Applies the objects; reports every rejected one.
fn taken(engine: &mut Engine, prepared: &Prepared, now: Time) -> Result<Decoded, Vec<String>> {
    let data = Value::from(prepared.objects.clone()).to_string();
    let mut decoded = intake(engine, data.as_bytes(), Door::People, now)
        .map_err(|rejections| rejections.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    let objects = std::mem::take(&mut decoded.objects);
    engine.apply(objects.into_iter().map(|(object, _)| object).collect(), now);
    Ok(decoded)
}

/// What to know about the decisions: warnings, objects that play no part, and what was added.
fn notes(prepared: &Prepared, decoded: &Decoded) -> Vec<String> {
    let mut notes = Vec::new();
    for warning in &decoded.warnings {
        let object = &warning.object;
        notes.push(format!("warning: {} {}: {}: {}", object.kind, object.name, warning.field, warning.message));
    }
    let owners = owners(&prepared.objects);
    for foreign in &decoded.foreign {
        let key = owner_key(foreign);
        if SILENT.contains(&foreign.kind.as_str()) || owners.contains(&key) {
            continue;
        }
        let (kind, namespace, name) = key;
        notes.push(format!(
            "warning: {kind} {namespace}/{name} is left out: this page reads Workloads, and makes none of jobs; \
             `kueuecore run FILE -o yaml` writes the Workload of each job"
        ));
    }
    // Every cluster has the default namespace.
    let named: Vec<&str> = prepared.added.iter().map(String::as_str).filter(|name| *name != "default").collect();
    if !named.is_empty() {
        notes.push(format!("note: added the Namespaces that the objects are in: {}", named.join(", ")));
    }
    notes
}

/// Kind, namespace and name of the jobs that come with their Workload.
fn owners(objects: &[Value]) -> BTreeSet<(String, String, String)> {
    let mut found = BTreeSet::new();
    for object in objects.iter().filter(|object| is_workload(object)) {
        for owner in items(&object["metadata"]["ownerReferences"]) {
            let (kind, name) = (text_at(owner, &["kind"]), text_at(owner, &["name"]));
            found.insert((kind.to_owned(), key_of(object).0.to_owned(), name.to_owned()));
        }
    }
    found
}

fn owner_key(foreign: &Foreign) -> (String, String, String) {
    let namespace = if foreign.namespace.is_empty() { "default" } else { &foreign.namespace };
    (foreign.kind.clone(), namespace.to_owned(), foreign.name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn ask(question: &Value) -> Value {
        serde_json::from_str(&answer(question.to_string().as_bytes())).expect("JSON")
    }

    fn cluster(nominal: &str) -> Value {
        let kueue = "kueue.x-k8s.io/v1beta2";
        let cpu = json!({"name": "spot", "resources": [{"name": "cpu", "nominalQuota": nominal}]});
        let container = json!({"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}});
        json!([
            {"apiVersion": kueue, "kind": "ResourceFlavor", "metadata": {"name": "spot"}},
            {"apiVersion": kueue, "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {
                "namespaceSelector": {}, "resourceGroups": [{"coveredResources": ["cpu"], "flavors": [cpu]}]}},
            {"apiVersion": kueue, "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "a"},
                "spec": {"clusterQueue": "cq"}},
            {"apiVersion": kueue, "kind": "Workload", "metadata": {"name": "w", "namespace": "a"}, "spec": {
                "queueName": "lq", "podSets": [{"name": "main", "count": 1, "template": {"spec": {
                    "restartPolicy": "Never", "containers": [container]}}}]}},
        ])
    }

    #[test]
    fn a_quota_decides() {
        for (nominal, status, would) in [("2", "Admitted", "Fits"), ("1", "Pending", "Waits")] {
            let answer = ask(&json!({"objects": cluster(nominal), "explain": "a/w"}));
            let read = |field: &str| -> Value {
                serde_json::from_str(answer[field].as_str().expect("a text")).expect("a document")
            };
            assert_eq!(read("run")["workloads"][0]["status"], status, "{nominal}");
            assert_eq!(read("explain")["would"], would, "{nominal}");
            assert_eq!(answer["notes"], json!(["note: added the Namespaces that the objects are in: a"]));
        }
    }

    #[test]
    fn errors_name_object_and_field() {
        let errors = &ask(&json!({"objects": cluster("much")}))["errors"];
        let first = errors[0].as_str().expect("a text");
        assert!(first.starts_with("ClusterQueue \"cq\" is invalid: spec.resourceGroups[0].flavors[0]"), "{first}");
        assert!(ask(&json!({"objects": [], "now": "soon"}))["errors"][0].as_str().expect("a text").contains("no time"));
    }

    #[test]
    fn a_job_without_workload_is_named() {
        let mut objects = cluster("2");
        let job = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "a"}});
        objects.as_array_mut().expect("a list").push(job);
        let notes = ask(&json!({"objects": objects}))["notes"].to_string();
        assert!(notes.contains("Job a/train is left out"), "{notes}");
        objects[3]["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": "u", "controller": true}]);
        let notes = ask(&json!({"objects": objects}))["notes"].to_string();
        assert!(!notes.contains("left out"), "{notes}");
    }
}
