mod alternatives;
mod extended;

use crate::base::changes::Change;
use crate::base::gates::{Gate, Gates};
use crate::objects::conditions::{ADMITTED, QUOTA_RESERVED, REQUEUED};
use crate::objects::config::{Config, DeviceClassMapping, DeviceSource, DeviceSourceKind, Resources};
use crate::objects::{
    Container, DeviceClass, DeviceRequest, ExactDeviceRequest, Kind, LimitRange, LimitRangeItem, Object,
    PodResourceClaim, ResourceClaimTemplate, ResourceQuota, StringMap, Workload,
};
use crate::testing::{World, at, cluster_queue, meta, namespaced, quantity, workload};

/// Classes `gpu.example.com` and `big.example.com` are charged as resource `gpu`, with a quota of 10.
fn world_with(gates: Gates) -> World {
    world_of(Config { gates, ..Config::default() })
}

fn world_of(mut config: Config) -> World {
    let classes = ["gpu.example.com", "big.example.com"].map(|class| (class.to_owned(), "gpu".to_owned()));
    config.resources.device_classes.extend(classes);
    let mut world = World::new(config);
    let mut queue = cluster_queue("cq", "10");
    let group = &mut queue.resource_groups[0];
    for name in ["gpu", "example.com/gpu"] {
        group.covered_resources.push(name.to_owned());
        group.flavors[0].resources.push(ResourceQuota {
            name: name.to_owned(),
            nominal_quota: quantity("10"),
            borrowing_limit: None,
            lending_limit: None,
        });
    }
    world.apply([Object::ClusterQueue(queue)]);
    world
}

fn world() -> World {
    world_with(Gates::default())
}

fn exactly(class: &str, count: i64) -> ExactDeviceRequest {
    ExactDeviceRequest {
        device_class_name: class.to_owned(),
        allocation_mode: "ExactCount".to_owned(),
        count,
        ..ExactDeviceRequest::default()
    }
}

fn template<const N: usize>(name: &str, requests: [ExactDeviceRequest; N]) -> Object {
    let request = |exactly| DeviceRequest { exactly: Some(exactly), first_available: vec![] };
    Object::ResourceClaimTemplate(ResourceClaimTemplate {
        meta: namespaced(name),
        requests: requests.map(request).into(),
    })
}

/// Workload `ns/name` of `pods` pods, each with a claim from each of these templates.
fn claimant(name: &str, pods: i32, templates: &[&str]) -> Workload {
    let mut workload = workload(name, "1");
    workload.pod_sets[0].count = pods;
    let claim = |template: &&str| PodResourceClaim { template_name: Some((*template).to_owned()), claim_name: None };
    workload.pod_sets[0].template.spec.resource_claims = templates.iter().map(claim).collect();
    workload
}

/// The totals of a workload as `resource=value`.
fn totals(world: &World, name: &str) -> Vec<String> {
    let state = &world.engine.state;
    let requests = &state.workloads.get(world.id(name)).totals[0].requests;
    let mut texts: Vec<String> =
        requests.iter().map(|(id, value)| format!("{}={value}", state.names.resource_text(*id))).collect();
    texts.sort();
    texts
}

fn is_waiting(world: &World, name: &str) -> bool {
    let queue = world.engine.state.find_queue("cq").expect("it exists");
    let state = &world.engine.state;
    state.queues[queue].pending.is_active(&state.places, world.id(name))
}

/// The message of a workload that is not queued; checks everything else of a refusal.
fn refused(world: &mut World, name: &str) -> String {
    assert!(!is_waiting(world, name), "refused workloads are not queued");
    world.reconcile();
    let message = world.condition(name, QUOTA_RESERVED);
    let message = message.strip_prefix("False DRAResourcesUnresolved: ").expect(&message).to_owned();
    assert_eq!(world.condition(name, REQUEUED), format!("False DRAResourcesUnresolved: {message}"));
    assert_eq!(world.condition(name, ADMITTED), "False NoReservation: The workload has no reservation");
    assert!(world.cycle().undecided.is_empty());
    message
}

#[test]
fn devices_of_all_templates_count_for_each_pod_under_the_mapped_resource() {
    let mut world = world();
    world.apply([
        template("one", [exactly("gpu.example.com", 1)]),
        template("two", [exactly("gpu.example.com", 1), exactly("big.example.com", 1)]),
    ]);
    world.submit(claimant("w", 3, &["one", "two"]));
    assert_eq!(totals(&world, "w"), ["cpu=3000", "gpu=9"]);
    world.submit(claimant("x", 1, &["two"]));
    world.cycle();
    world.cycle();
    let admission = world.get("w").status.admission.clone().expect("it fits");
    assert_eq!(admission.pod_set_assignments[0].resource_usage["gpu"], quantity("9"));
    assert_eq!(world.get("x").status.admission, None, "one is left");
    assert!(world.condition("x", QUOTA_RESERVED).contains("insufficient unused quota for gpu"));
}

#[test]
fn claims_come_after_exclusions_and_transformations() {
    let resources =
        Resources { exclude_resource_prefixes: vec!["gpu".to_owned(), "cpu".to_owned()], ..Resources::default() };
    let mut world = world_of(Config { resources, ..Config::default() });
    world.apply([template("t", [exactly("gpu.example.com", 2)])]);
    world.submit(claimant("w", 1, &["t"]));
    assert_eq!(totals(&world, "w"), ["gpu=2"]);
}

#[test]
fn counts_saturate() {
    let mut world = world();
    world.apply([template("t", [exactly("gpu.example.com", i64::MAX), exactly("gpu.example.com", 5)])]);
    world.submit(claimant("w", 2, &["t"]));
    assert_eq!(totals(&world, "w"), ["cpu=2000".to_owned(), format!("gpu={}", i64::MAX)]);
}

#[test]
fn admin_access_and_requests_without_a_class_are_free() {
    let mut world = world();
    let looked_at = ExactDeviceRequest { admin_access: true, ..exactly("unmapped", 7) };
    world.apply([template("t", [looked_at, exactly("", 3)])]);
    world.submit(claimant("w", 1, &["t"]));
    assert_eq!(totals(&world, "w"), ["cpu=1000"]);
    assert!(is_waiting(&world, "w"));
}

#[test]
fn claims_that_cannot_be_counted_are_refused_with_the_field() {
    let path = "spec.podSets[0].template.spec.resourceClaims[0]";
    let mode = |mode: &str| {
        let request = ExactDeviceRequest { allocation_mode: mode.to_owned(), ..exactly("gpu.example.com", 0) };
        template("t", [exactly("gpu.example.com", 1), request])
    };
    let bare = |has_list: bool| {
        let first_available = if has_list { vec![exactly("gpu.example.com", 1)] } else { vec![] };
        let request = DeviceRequest { first_available, exactly: None };
        Object::ResourceClaimTemplate(ResourceClaimTemplate { meta: namespaced("t"), requests: vec![request] })
    };
    let table = [
        (
            template("t", [exactly("other", 1)]),
            format!(
                "{path}.resourceClaimTemplateName: Not found: \"DeviceClass other is not mapped in DRA configuration for \
                 podset main\""
            ),
        ),
        (
            mode("All"),
            format!(
                "{path}.devices.requests[1].exactly.allocationMode: Invalid value: \"All\": ResourceClaimTemplate t: \
                 AllocationMode 'All' is not supported"
            ),
        ),
        (
            mode("Some"),
            format!(
                "{path}.devices.requests[1].exactly.allocationMode: Invalid value: \"Some\": ResourceClaimTemplate t: \
                 unsupported allocation mode: Some"
            ),
        ),
        (
            bare(true),
            format!(
                "{path}.devices.requests[0]: Invalid value: null: ResourceClaimTemplate t: FirstAvailable device \
                 selection is not supported"
            ),
        ),
        (
            bare(false),
            format!(
                "{path}.devices.requests[0]: Invalid value: null: ResourceClaimTemplate t: Exactly must be set if \
                 FirstAvailable is nil"
            ),
        ),
    ];
    for (template, message) in table {
        let mut world = world();
        world.apply([template]);
        world.submit(claimant("w", 1, &["t"]));
        assert_eq!(refused(&mut world, "w"), message);
    }
}

#[test]
fn a_claim_by_name_is_refused_before_templates_are_read() {
    let mut world = world();
    let mut claimant = claimant("w", 1, &["missing"]);
    let by_name = PodResourceClaim { claim_name: Some("c".to_owned()), template_name: None };
    claimant.pod_sets[0].template.spec.resource_claims.push(by_name);
    world.submit(claimant);
    world.reconcile();
    let message = "KueueDRAIntegration feature does not support use of resource claims";
    assert_eq!(world.condition("w", QUOTA_RESERVED), format!("False DRAResourcesUnresolved: {message}"));
    assert_eq!(world.condition("w", REQUEUED), "False DRAResourcesUnresolved: DRA resource claims not supported");
}

#[test]
fn without_observability_the_reason_is_the_old_one() {
    let mut world = world_with(Gates::default().with(Gate::UnadmittedWorkloadsObservability, false));
    world.submit(claimant("w", 1, &["missing"]));
    world.reconcile();
    assert!(world.condition("w", QUOTA_RESERVED).starts_with("False Inadmissible: spec.podSets[0]"));
}

#[test]
fn a_workload_waits_for_its_template_and_is_queued_when_it_comes() {
    let mut world = world();
    world.submit(claimant("w", 1, &["t"]));
    world.submit(workload("other", "1"));
    let missing = "spec.podSets[0].template.spec.resourceClaims[0]: Internal error: failed to get claim spec for \
                   ResourceClaimTemplate t in podset main: ResourceClaimTemplate.resource.k8s.io \"t\" not found";
    assert_eq!(refused(&mut world, "w"), missing);
    assert!(world.get("other").status.admission.is_some());
    // A template of that name in another namespace does not help.
    let mut elsewhere = ResourceClaimTemplate { meta: namespaced("t"), requests: Vec::new() };
    elsewhere.meta.namespace = "elsewhere".to_owned();
    world.apply([Object::ResourceClaimTemplate(elsewhere)]);
    assert_eq!(refused(&mut world, "w"), missing);

    world.apply([template("t", [exactly("gpu.example.com", 2)])]);
    world.reconcile();
    assert_eq!(
        world.condition("w", REQUEUED),
        "True DRAResourcesResolved: The workload's DRA resources can be charged now"
    );
    assert!(is_waiting(&world, "w"));
    assert_eq!(totals(&world, "w"), ["cpu=1000", "gpu=2"]);
    world.cycle();
    assert!(world.get("w").status.admission.is_some());
}

#[test]
fn a_changed_template_retries_a_parked_workload_and_a_deleted_one_refuses_it() {
    let mut world = world();
    world.apply([template("t", [exactly("gpu.example.com", 11)])]);
    world.submit(claimant("w", 1, &["t"]));
    world.cycle();
    world.reconcile();
    assert!(world.condition("w", QUOTA_RESERVED).contains("maximum capacity"), "the scheduler's word stays");
    assert!(!is_waiting(&world, "w"));
    world.apply([template("t", [exactly("gpu.example.com", 4)])]);
    assert!(is_waiting(&world, "w"));
    world.delete(Kind::ResourceClaimTemplate, "t");
    assert!(refused(&mut world, "w").ends_with("not found"));
}

#[test]
fn an_admitted_workload_keeps_its_quota_without_its_template() {
    let mut world = world();
    world.apply([template("t", [exactly("gpu.example.com", 4)])]);
    world.submit(claimant("w", 1, &["t"]));
    world.cycle();
    world.reconcile();
    world.delete(Kind::ResourceClaimTemplate, "t");
    world.reconcile();
    assert!(world.condition("w", QUOTA_RESERVED).starts_with("True"));
    assert_eq!(totals(&world, "w"), ["cpu=1000", "gpu=4"]);
}

#[test]
fn a_refused_workload_is_not_queued_by_a_queue_that_comes_later() {
    let mut world = world();
    world.delete(Kind::LocalQueue, "lq");
    world.submit(claimant("w", 1, &["missing"]));
    world.change_local_queue(|_| {});
    assert!(refused(&mut world, "w").ends_with("not found"));
}

#[test]
fn expressions_and_published_numbers_leave_a_workload_undecided() {
    let mut world = world();
    let by_expression = ExactDeviceRequest { has_expressions: true, ..exactly("gpu.example.com", 1) };
    world.apply([template("t", [by_expression])]);
    world.submit(claimant("w", 1, &["t"]));
    let undecided = world.cycle().undecided;
    assert_eq!(undecided[0].field, "spec.podSets[0].template.spec.resourceClaims[0]");
    assert_eq!(
        undecided[0].message,
        "claims devices by a CEL expression (ResourceClaimTemplate t, devices.requests[0].exactly.selectors), which are \
         not counted here"
    );
    assert_eq!(world.condition("w", QUOTA_RESERVED), "");
}

#[test]
fn nodes_without_devices_are_unknown_where_they_matter() {
    for (is_on, n_undecided) in [(true, 1), (false, 0)] {
        let mut world = world_with(Gates::default().with(Gate::KueueDRADeviceFeasibility, is_on));
        world.apply([template("t", [exactly("gpu.example.com", 1)])]);
        world.submit(claimant("w", 1, &["t"]));
        assert_eq!(world.cycle().undecided.len(), n_undecided);
    }
}

/// Devices of a class are charged by a counter.
fn by_counter(class: &str) -> DeviceClassMapping {
    let source = DeviceSource {
        kind: DeviceSourceKind::Counter,
        name: "memory".to_owned(),
        driver: "d".to_owned(),
        device_selector: "true".to_owned(),
    };
    DeviceClassMapping { name: "gpu".to_owned(), device_class_names: vec![class.to_owned()], sources: vec![source] }
}

/// `shared.example.com` is charged by a counter.
fn with_counter() -> World {
    let device_classes = StringMap::from([("shared.example.com".to_owned(), "gpu".to_owned())]);
    let resources = Resources {
        device_classes,
        device_class_mappings: vec![by_counter("shared.example.com")],
        ..Resources::default()
    };
    world_of(Config { resources, ..Config::default() })
}

#[test]
fn devices_that_cannot_be_charged_are_the_reason_since_0_20() {
    let unresolved = "False DRAResourcesUnresolved: ";
    let inadmissible = "False Inadmissible: ";
    let rows = [
        (true, true, unresolved, unresolved),
        (true, false, inadmissible, inadmissible),
        (false, true, "False Misconfigured: ", inadmissible),
    ];
    for (named, observes, reserved, requeued) in rows {
        let config = Config::default();
        let changes = config.changes.with(Change::UnresolvedDevicesAreNamed, named);
        let gates = config.gates.with(Gate::UnadmittedWorkloadsObservability, observes);
        let mut world = world_of(Config { changes, gates, ..config });
        world.submit(claimant("w", 1, &["missing"]));
        world.reconcile();
        for (condition, expected) in [(QUOTA_RESERVED, reserved), (REQUEUED, requeued)] {
            let text = world.condition("w", condition);
            assert!(text.starts_with(expected), "{text}");
        }
        world.apply([template("missing", [exactly("gpu.example.com", 1)])]);
        world.reconcile();
        assert_eq!(world.cycle().admissions.len(), 1);
    }
}

#[test]
fn devices_that_can_be_charged_again_requeue_their_workload_by_name_since_0_20() {
    for (is_on, expected) in
        [(true, "True DRAResourcesResolved: The workload's DRA resources can be charged now"), (false, "")]
    {
        let config = Config::default();
        let changes = config.changes.with(Change::ResolvedDevicesAreNamed, is_on);
        let mut world = world_of(Config { changes, ..config });
        world.submit(claimant("w", 1, &["missing"]));
        world.reconcile();
        assert!(world.condition("w", REQUEUED).starts_with("False "));
        world.apply([template("missing", [exactly("gpu.example.com", 1)])]);
        world.reconcile();
        assert_eq!(world.condition("w", REQUEUED), expected);
        assert_eq!(world.condition("w", QUOTA_RESERVED), "");
        assert_eq!(world.cycle().admissions.len(), 1);
    }
}

#[test]
fn a_class_with_a_counter_leaves_a_workload_undecided_unless_it_is_refused_anyway() {
    let mut world = with_counter();
    world.apply([
        template("t", [exactly("shared.example.com", 1)]),
        template("bad", [exactly("other", 1)]),
        extended_class("shared.example.com", "example.com/shared", 0),
    ]);
    world.submit(claimant("w", 1, &["t"]));
    let message = &world.cycle().undecided[0].message;
    assert!(message.contains("DeviceClass shared.example.com") && message.contains("counters"), "{message}");
    world.submit(claimant("bad", 1, &["t", "bad"]));
    assert!(refused_at(&mut world, "bad").contains("DeviceClass other is not mapped"));
    world.submit(asking("asking", &[("example.com/shared", "1")]));
    assert_eq!(
        refused_at(&mut world, "asking"),
        "spec.podSets[0].template.spec.containers[0]: Invalid value: \"example.com/shared\": extended resource \
         example.com/shared resolves to DeviceClass shared.example.com with counters configured; use \
         ResourceClaimTemplates with CEL selectors for counter-based quota"
    );
}

/// As [`refused`], with others waiting.
fn refused_at(world: &mut World, name: &str) -> String {
    assert!(!is_waiting(world, name));
    world.reconcile();
    let message = world.condition(name, QUOTA_RESERVED);
    message.strip_prefix("False DRAResourcesUnresolved: ").expect(&message).to_owned()
}

#[test]
fn without_the_gates_claims_are_refused_or_charge_nothing() {
    let off = Gates::default().with(Gate::KueueDRAIntegration, false);
    let mut world = world_with(off);
    world.submit(claimant("w", 1, &["missing"]));
    assert_eq!(
        refused(&mut world, "w"),
        "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
    );
    let mut world = world_with(off.with(Gate::KueueDRARejectWorkloadsWhenDRADisabled, false));
    world.submit(claimant("w", 1, &["missing"]));
    assert!(world.cycle().undecided.is_empty());
    assert!(world.get("w").status.admission.is_some());
}

/// A class for an extended resource, created `age` seconds before others.
fn extended_class(name: &str, resource: &str, created: i64) -> Object {
    let mut class = DeviceClass { meta: meta(name), extended_resource_name: resource.to_owned() };
    class.meta.created = at(created);
    Object::DeviceClass(class)
}

/// A workload whose containers request one resource each.
fn asking(name: &str, requests: &[(&str, &str)]) -> Workload {
    let mut workload = workload(name, "1");
    let containers = &mut workload.pod_sets[0].template.spec.containers;
    containers.clear();
    for (resource, value) in requests {
        let mut container = Container::default();
        container.resources.requests.insert((*resource).to_owned(), quantity(value));
        containers.push(container);
    }
    workload
}
