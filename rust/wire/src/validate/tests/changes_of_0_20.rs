//! What Kueue 0.20 accepts and refuses otherwise than before.

use kueuecore::base::gates::Gate;

use super::*;

const BEFORE: &str = "0.20.0-devel";
const NOW: &str = "0.20.0";

#[test]
fn the_fewest_pods_may_be_none() {
    let object = workload(&Value::Null, &json!({"minCount": 0}), &Value::Null);
    let below = "spec.podSets[0].minCount: Invalid value: 0: spec.podSets[0].minCount in body should be greater than or \
                 equal to 1";
    check_releases(&object, &[(NOW, "accepted"), (BEFORE, below)]);
    let most = workload(&Value::Null, &json!({"minCount": 4}), &Value::Null);
    let above = "spec.podSets[0]: Invalid value: minCount should be positive and less or equal to count";
    let found = people_of(&most, &of_release(NOW)).err().unwrap_or_default();
    assert!(found.contains("minCount should be positive and less or equal to count"), "{found} {above}");
}

#[test]
fn concurrent_admission_has_up_to_32_flavors() {
    let queue = |n: usize| {
        let of = |at: usize| json!({"name": format!("f{at}"), "resources": [{"name": "cpu", "nominalQuota": 1}]});
        let flavors: Vec<Value> = (0..n).map(of).collect();
        let groups = json!([{"coveredResources": ["cpu"], "flavors": flavors}]);
        let policy = json!({"migration": {"mode": "TryPreferredFlavors"}});
        kueue("ClusterQueue", json!({"resourceGroups": groups, "concurrentAdmissionPolicy": policy}))
    };
    let refused = |n: usize, release: &str| {
        let config = of_release(release);
        let config = Config { gates: config.gates.with(Gate::ConcurrentAdmission, true), ..config };
        people_of(&queue(n), &config).err().unwrap_or_default()
    };
    assert_eq!(refused(32, NOW), "");
    assert!(refused(33, NOW).contains("cannot have more than 32 resource flavors"));
    assert_eq!(refused(16, BEFORE), "");
    assert!(refused(17, BEFORE).contains("cannot have more than 16 resource flavors"));
}

#[test]
fn effective_quotas_are_a_known_field_and_count_with_their_gate() {
    let mut queue = kueue("ClusterQueue", json!({"resourceGroups": quotas(&json!({"nominalQuota": 10}))}));
    queue["status"] = json!({"effectiveQuotas": {"resourceGroups": []}});
    for (release, is_on, n_groups, n_warnings) in [(NOW, true, 0, 0), (NOW, false, 1, 0), (BEFORE, false, 1, 1)] {
        let config = of_release(release);
        let config = Config { gates: config.gates.with(Gate::DynamicQuotaOrchestration, is_on), ..config };
        let decoded = people_of(&queue, &config).expect("it is valid");
        let Object::ClusterQueue(read) = &decoded.objects[0].0 else { panic!("a ClusterQueue") };
        assert_eq!((read.resource_groups.len(), decoded.warnings.len()), (n_groups, n_warnings), "{release} {is_on}");
        let trusted = decode_with(queue.to_string().as_bytes(), Door::Trusted, &config).expect("it is valid");
        let Object::ClusterQueue(read) = &trusted.objects[0].0 else { panic!("a ClusterQueue") };
        assert_eq!(read.resource_groups.len(), n_groups, "{release} {is_on}");
    }
}

#[test]
fn v1beta1_is_not_served_to_people() {
    let object = json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ClusterQueue", "metadata": {"name": "q"},
                        "spec": {"cohort": "all"}});
    let gone = "apiVersion: Invalid value: no matches for kind \"ClusterQueue\" in version \"kueue.x-k8s.io/v1beta1\"";
    check_releases(&object, &[(NOW, gone), (BEFORE, "accepted")]);
    // A server that has been upgraded still has it.
    assert!(decode_with(object.to_string().as_bytes(), Door::Trusted, &of_release(NOW)).is_ok());
}
