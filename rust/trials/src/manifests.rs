//! JSON manifests at both doors: applied as a whole, or rejected with useful errors and nothing changed.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use kueuecore::base::gates::Gates;
use kueuecore::engine::Engine;
use kueuecore::objects::{Object, Time};
use kueuecore_wire::decode::{self, Decoded, Door};
use kueuecore_wire::encode;
use kueuecore_wire::field_error::{Rejection, object_ref};
use kueuecore_wire::intake::intake;

use crate::audit::{audit, audit_rebuilt};
use crate::observe::observe;

const START: Time = Time(1_767_225_600_000_000_000);

/// The cluster that receives the manifests, so that Workloads find a queue.
const WORLD: &[u8] = br#"
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ns"}}
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "default"}}
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "cq"}, "spec": {
    "namespaceSelector": {}, "cohortName": "cohort", "resourceGroups": [{"coveredResources": ["cpu", "memory"],
    "flavors": [{"name": "default", "resources": [{"name": "cpu", "nominalQuota": 9},
    {"name": "memory", "nominalQuota": "36Gi"}]}]}]}}
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "ns"},
    "spec": {"clusterQueue": "cq"}}
{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": {"name": "lq", "namespace": "default"},
    "spec": {"clusterQueue": "cq"}}
"#;

/// The cluster, and its debug text for comparison.
static CLUSTER: LazyLock<(Engine, String)> = LazyLock::new(|| {
    let mut engine = Engine::default();
    let world = intake(&engine, WORLD, Door::People, START).expect("the world is valid");
    engine.apply(objects(&world), START);
    let text = format!("{engine:?}");
    (engine, text)
});

/// Panics if a manifest is half applied, or rejected without a reason.
pub fn manifests(data: &[u8]) {
    for door in [Door::People, Door::Trusted] {
        let mut engine = CLUSTER.0.clone();
        match intake(&engine, data, door, START) {
            Ok(decoded) => {
                decoded.objects.iter().for_each(|(object, _)| check_written_again(object));
                play(&mut engine, &decoded, data, door);
            }
            Err(rejections) => {
                assert_eq!(format!("{engine:?}"), CLUSTER.1, "the engine after a refusal");
                assert!(!rejections.is_empty(), "a refusal without a reason");
                rejections.iter().for_each(|rejection| check_rejection(rejection, data));
                assert_eq!(intake(&engine, data, door, START), Err(rejections), "a refusal, asked for again");
            }
        }
    }
}

fn objects(decoded: &Decoded) -> Vec<Object> {
    decoded.objects.iter().map(|(object, _)| object.clone()).collect()
}

/// Decisions on the applied objects keep the invariants, and the objects may be applied again.
fn play(engine: &mut Engine, decoded: &Decoded, data: &[u8], door: Door) {
    engine.apply(objects(decoded), START);
    audit(engine);
    for second in 1..4 {
        let now = Time(START.0 + second * 1_000_000_000);
        engine.reconcile(now);
        audit(engine);
        engine.cycle(now);
        audit(engine);
    }
    audit_rebuilt(engine);
    let _ = observe(engine);
    let keys: BTreeSet<_> = decoded.objects.iter().map(|(object, _)| format!("{:?}", object_ref(object))).collect();
    if keys.len() == decoded.objects.len() {
        intake(engine, data, door, START).expect("what was taken is taken again");
    }
}

/// An object that is encoded decodes to the same object.
fn check_written_again(object: &Object) {
    let Object::Workload(workload) = object else { return };
    let written = encode::workload_status(&workload.status, &Gates::default());
    let again = decode::workload_status(&written).unwrap_or_else(|error| panic!("{written} was written: {error}"));
    assert_eq!(again, *workload.status, "{written}");
    for pod_set in workload.pod_sets.iter() {
        for container in pod_set.template.spec.containers.iter().chain(&pod_set.template.spec.init_containers) {
            let written = encode::resource_list(&container.resources.requests);
            let again = decode::resource_list(&written).unwrap_or_else(|error| panic!("{written}: {error}"));
            assert_eq!(again, container.resources.requests, "{written}");
        }
    }
}

/// An error names object and field in terms of the manifest.
fn check_rejection(rejection: &Rejection, data: &[u8]) {
    // Words of the manifest itself may be repeated, and an escape may hide them.
    let is_said = |word: &str| data.contains(&b'\\') || data.windows(word.len()).any(|part| part == word.as_bytes());
    assert!(!rejection.errors.is_empty(), "refused without an error: {rejection}");
    for error in &rejection.errors {
        let text = error.to_string();
        assert!(!error.detail.is_empty() || error.value.is_some() || !error.path.is_empty(), "an empty error: {text}");
        for ours in ["Wire ", "Wire,", "expected struct", "RawValue", "newtype"] {
            assert!(!error.detail.contains(ours) || is_said(ours), "an error names what is ours: {text}");
        }
    }
}
