use super::*;
use crate::base::quantity::Quantity;
use crate::objects::config::{self, Transformation};
use crate::objects::{Admission, Container, PodSet, ReclaimablePod, Workload};

fn list(text: &str) -> ResourceList {
    let entry = |pair: &str| {
        let (name, quantity) = pair.split_once('=').expect("name=quantity");
        (name.to_owned(), Quantity::parse(quantity).expect("a quantity"))
    };
    text.split_whitespace().map(entry).collect()
}

fn integers(values: &[(&str, i64)]) -> BTreeMap<String, i64> {
    values.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

fn pod_set(name: &str, count: i32, requests: &str) -> PodSet {
    let mut container = Container::default();
    container.resources.requests = list(requests);
    let mut pod_set = PodSet { name: name.to_owned(), count, ..Default::default() };
    pod_set.template.spec.containers = vec![container];
    pod_set
}

fn pending(pod_sets: Vec<PodSet>) -> Workload {
    Workload { pod_sets: pod_sets.into(), ..Default::default() }
}

fn reclaimable(name: &str, count: i32) -> ReclaimablePod {
    ReclaimablePod { name: name.to_owned(), count }
}

fn rule(input: &str, replace: bool, multiply_by: &str, outputs: &str) -> (String, Transformation) {
    (input.to_owned(), Transformation { replace, multiply_by: multiply_by.to_owned(), outputs: list(outputs) })
}

fn requests(workload: &Workload, resources: &config::Resources) -> BTreeMap<String, i64> {
    let config = Config { resources: resources.clone(), ..Config::default() };
    totals(&workload.pod_sets, &workload.status, &config, true, None).remove(0).requests
}

fn transformed(input: &str, rules: Vec<(String, Transformation)>) -> BTreeMap<String, i64> {
    let config = config::Resources { transformations: rules.into_iter().collect(), ..Default::default() };
    requests(&pending(vec![pod_set("main", 1, input)]), &config)
}

#[test]
fn reclaimable_pods_are_not_counted_while_the_gate_is_on() {
    let mut workload = pending(vec![pod_set("a", 3, "cpu=2200m"), pod_set("b", 2, "memory=1Ki example.com/gpu=0")]);
    workload.status.rare.reclaimable_pods = vec![reclaimable("a", 1), reclaimable("b", 5)];
    let off = Config::default();
    let counted = |gate| -> Vec<_> {
        totals(&workload.pod_sets, &workload.status, &off, gate, None)
            .into_iter()
            .map(|total| (total.count, total.requests))
            .collect()
    };
    assert_eq!(
        counted(true),
        [(2, integers(&[("cpu", 4400)])), (0, integers(&[("example.com/gpu", 0), ("memory", 0)]))]
    );
    assert_eq!(counted(false)[0], (3, integers(&[("cpu", 6600)])));
}

#[test]
fn values_round_per_pod_and_stop_at_the_ends() {
    let workload = pending(vec![pod_set("main", 3, "cpu=100u memory=-1 example.com/gpu=5E")]);
    assert_eq!(
        requests(&workload, &config::Resources::default()),
        integers(&[("cpu", 3), ("memory", 0), ("example.com/gpu", i64::MAX)])
    );
}

#[test]
fn excluded_prefixes_do_not_reach_the_outputs_of_transformations() {
    let config = config::Resources {
        exclude_resource_prefixes: vec!["example.com/".to_owned()],
        transformations: [rule("gpu", true, "", "example.com/credits=2")].into(),
        ..Default::default()
    };
    let workload = pending(vec![pod_set("main", 1, "gpu=3 example.com/licence=1 cpu=1")]);
    assert_eq!(requests(&workload, &config), integers(&[("cpu", 1000), ("example.com/credits", 6)]));
}

#[test]
fn transformations_keep_or_replace_their_input() {
    let mig = |replace| transformed("mig=2", vec![rule("mig", replace, "", "credits=10 gpu-mem=5Gi")]);
    assert_eq!(mig(true), integers(&[("credits", 20), ("gpu-mem", 10 << 30)]));
    assert_eq!(mig(false), integers(&[("mig", 2), ("credits", 20), ("gpu-mem", 10 << 30)]));
}

#[test]
fn a_multiplier_scales_the_outputs_only_and_only_where_it_is_requested() {
    let rules = || vec![rule("gpumem", false, "cpu", "total=1")];
    assert_eq!(
        transformed("gpumem=1000 cpu=500m", rules()),
        integers(&[("gpumem", 1000), ("cpu", 500), ("total", 500)])
    );
    assert_eq!(transformed("gpumem=1000", rules()), integers(&[("gpumem", 1000), ("total", 1000)]));
}

#[test]
fn outputs_are_summed_stopped_at_zero_and_then_added() {
    let rules = || vec![rule("credit", true, "", "gpu=-1"), rule("slice", true, "", "gpu=0.5")];
    assert_eq!(transformed("credit=3 slice=10 gpu=8", rules()), integers(&[("gpu", 10)]));
    assert_eq!(transformed("credit=9 slice=10 gpu=8", rules()), integers(&[("gpu", 8)]));
    assert_eq!(transformed("gpu=8", rules()), integers(&[("gpu", 8)]));
}

#[test]
fn device_claims_take_the_place_of_extended_resources() {
    let workload = pending(vec![pod_set("a", 2, "example.com/gpu=1 gpu=1"), pod_set("b", 1, "example.com/gpu=1")]);
    let devices = DeviceRequests {
        added: [("a".to_owned(), list("gpu=3 mem=1Ki"))].into(),
        replaced: [("a".to_owned(), BTreeSet::from(["example.com/gpu".to_owned()]))].into(),
    };
    let result = totals(&workload.pod_sets, &workload.status, &Config::default(), true, Some(&devices));
    assert_eq!(result[0].requests, integers(&[("gpu", 8), ("mem", 2048)]));
    assert_eq!(result[1].requests, integers(&[("example.com/gpu", 1)]));
}

fn reserved(assigned: Option<i32>, usage: &str, n_reclaimable: i32) -> PodSetTotals {
    let mut workload = pending(vec![pod_set("main", 5, "cpu=1")]);
    workload.status.rare.reclaimable_pods = vec![reclaimable("main", n_reclaimable)];
    let assignment = PodSetAssignment {
        name: "main".to_owned(),
        flavors: [("cpu".to_owned(), "spot".to_owned())].into(),
        resource_usage: list(usage),
        count: assigned,
        ..Default::default()
    };
    workload.status.admission =
        Some(Admission { cluster_queue: "cq".into(), pod_set_assignments: vec![assignment].into() }.into());
    totals(&workload.pod_sets, &workload.status, &Config::default(), true, None).remove(0)
}

#[test]
fn reserved_totals_come_from_the_admission() {
    let table = [
        (None, "cpu=10", 0, 5, 10_000),
        (Some(3), "cpu=6", 0, 3, 6000),
        (Some(3), "cpu=6", 2, 3, 6000),
        (Some(3), "cpu=6", 3, 2, 4000),
        (None, "cpu=7m", 2, 3, 3),
        (None, "cpu=7", 9, 0, 0),
    ];
    for (assigned, usage, n_reclaimable, count, cpu) in table {
        let total = reserved(assigned, usage, n_reclaimable);
        assert_eq!((total.count, total.requests["cpu"]), (count, cpu), "{assigned:?} {usage} {n_reclaimable}");
    }
}

#[test]
fn an_assignment_without_its_pod_set_counts_no_pods() {
    let mut workload = pending(vec![]);
    let assignment = PodSetAssignment {
        name: "gone".to_owned(),
        resource_usage: list("cpu=4"),
        count: Some(2),
        ..Default::default()
    };
    workload.status.admission =
        Some(Admission { pod_set_assignments: vec![assignment].into(), ..Default::default() }.into());
    let total = totals(&workload.pod_sets, &workload.status, &Config::default(), true, None).remove(0);
    assert_eq!((total.count, total.requests["cpu"]), (0, 0));
}

#[test]
fn scaling_divides_before_it_multiplies() {
    let total = |count| PodSetTotals { count, requests: integers(&[("cpu", 1001)]), ..Default::default() };
    let table = [(10, 5, 500, 5), (10, 20, 2000, 20), (10, 10, 1001, 10), (0, 5, 1001, 0), (10, 0, 0, 0)];
    for (old, new, cpu, count) in table {
        let mut scaled = total(old);
        scaled.scale(new);
        assert_eq!((scaled.requests["cpu"], scaled.count), (cpu, count), "{old} to {new}");
    }
    assert_eq!(total(0).per_pod(), integers(&[("cpu", 0)]));
}

#[test]
fn resources_without_a_flavor_are_not_charged() {
    let first = PodSetTotals {
        requests: integers(&[("cpu", 1000), ("licence", 1)]),
        flavors: Some([("cpu".to_owned(), "spot".to_owned()), ("licence".to_owned(), String::new())].into()),
        ..Default::default()
    };
    let second = PodSetTotals { requests: integers(&[("cpu", 500), ("licence", 2)]), ..first.clone() };
    let third = PodSetTotals { flavors: None, ..second.clone() };
    let charged = usage(&[first, second, third]);
    assert_eq!(charged.assigned, [(("spot".to_owned(), "cpu".to_owned()), Amount::new(1500))].into());
    assert_eq!(charged.unassigned, integers(&[("cpu", 500), ("licence", 5)]));
}

#[test]
fn excluded_resources_are_inputs_and_multipliers() {
    let counted = |excluded: &str, input: &str, rule: (String, Transformation), is_on: bool| {
        let resources = config::Resources {
            exclude_resource_prefixes: vec![excluded.to_owned()],
            transformations: [rule].into(),
            ..Default::default()
        };
        let changes = Config::default().changes.with(Change::ExcludedResourcesAreInputs, is_on);
        let config = Config { resources, changes, ..Config::default() };
        totals(&[pod_set("main", 1, input)], &WorkloadStatus::default(), &config, true, None).remove(0).requests
    };
    let scaled = rule("x.io/cores-per-vgpu", true, "x.io/vgpu-count", "x.io/cores=1");
    let vgpu = |is_on| counted("x.io/vgpu-count", "x.io/vgpu-count=2 x.io/cores-per-vgpu=20", scaled.clone(), is_on);
    assert_eq!(vgpu(true), integers(&[("x.io/cores", 40)]));
    assert_eq!(vgpu(false), integers(&[("x.io/cores", 20)]));
    for replace in [true, false] {
        let mig = |is_on| counted("x.io/mig", "x.io/mig-1g=2", rule("x.io/mig-1g", replace, "", "mem=5Gi"), is_on);
        assert_eq!(mig(true), integers(&[("mem", 10 << 30)]), "{replace}");
        assert_eq!(mig(false), integers(&[]), "{replace}");
    }
}

#[test]
fn devices_replace_what_containers_request() {
    let mut pod = pod_set("main", 1, "cpu=1 x.io/gpu=2");
    pod.template.spec.overhead = Some(list("x.io/gpu=1"));
    let devices = DeviceRequests {
        added: [("main".to_owned(), list("gpus=2"))].into(),
        replaced: [("main".to_owned(), ["x.io/gpu".to_owned()].into())].into(),
    };
    let counted = |rules: Vec<(String, Transformation)>, is_on: bool| {
        let resources = config::Resources { transformations: rules.into_iter().collect(), ..Default::default() };
        let changes = Config::default().changes.with(Change::DevicesReplaceContainerRequests, is_on);
        let config = Config { resources, changes, ..Config::default() };
        totals(std::slice::from_ref(&pod), &WorkloadStatus::default(), &config, true, Some(&devices)).remove(0).requests
    };
    assert_eq!(counted(vec![], true), integers(&[("cpu", 1000), ("gpus", 2), ("x.io/gpu", 1)]));
    assert_eq!(counted(vec![], false), integers(&[("cpu", 1000), ("gpus", 2)]));
    let onto_it = || vec![rule("x.io/gpu", true, "", "x.io/gpu=10")];
    assert_eq!(counted(onto_it(), true), integers(&[("cpu", 1000), ("gpus", 2), ("x.io/gpu", 30)]));
    assert_eq!(counted(onto_it(), false), integers(&[("cpu", 1000), ("gpus", 2)]));
}
