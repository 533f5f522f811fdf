use super::*;
use crate::base::changes::{Change, Changes};
use crate::base::quantity::Quantity;
use crate::objects::{Container, LimitRange, LimitRangeItem, PodSet, PodSpec, ResourceList, Resources, Workload};

fn list(text: &str) -> ResourceList {
    let entry = |pair: &str| {
        let (name, quantity) = pair.split_once('=').expect("name=quantity");
        (name.to_owned(), Quantity::parse(quantity).expect("a quantity"))
    };
    text.split_whitespace().map(entry).collect()
}

fn text(list: &ResourceList) -> String {
    list.iter().map(|(name, quantity)| format!("{name}={quantity}")).collect::<Vec<_>>().join(" ")
}

fn resources(requests: &str, limits: &str) -> Resources {
    Resources { requests: list(requests), limits: list(limits) }
}

fn container(requests: &str) -> Container {
    Container { resources: resources(requests, ""), ..Default::default() }
}

fn sidecar(requests: &str) -> Container {
    Container { sidecar: true, ..container(requests) }
}

fn workload(pod: PodSpec) -> Workload {
    let mut pod_set = PodSet { count: 1, ..Default::default() };
    pod_set.template.spec = pod;
    Workload { pod_sets: vec![pod_set].into(), ..Default::default() }
}

fn limit_range(items: Vec<LimitRangeItem>) -> LimitRange {
    LimitRange { limits: items, ..Default::default() }
}

fn item(kind: &str) -> LimitRangeItem {
    LimitRangeItem { kind: kind.to_owned(), ..Default::default() }
}

fn no_overhead(_: &str) -> Option<&'static ResourceList> {
    None
}

#[test]
fn sidecars_run_beside_containers_and_beside_later_init_containers() {
    let pod = PodSpec {
        init_containers: vec![sidecar("cpu=200m"), container("cpu=2")],
        containers: vec![container("cpu=1"), container("cpu=500m")],
        ..Default::default()
    };
    assert_eq!(text(&pod_requests(&pod, Changes::default())), "cpu=2200m");
}

#[test]
fn an_init_container_does_not_wait_for_sidecars_behind_it() {
    let pod = PodSpec {
        init_containers: vec![container("cpu=2"), sidecar("cpu=200m memory=1Gi")],
        containers: vec![container("cpu=1 example.com/gpu=0")],
        ..Default::default()
    };
    assert_eq!(text(&pod_requests(&pod, Changes::default())), "cpu=2 example.com/gpu=0 memory=1Gi");
}

#[test]
fn pod_level_requests_replace_the_sum_of_containers_and_overhead_comes_on_top() {
    let pod = PodSpec {
        containers: vec![container("cpu=1 example.com/gpu=1")],
        resources: Some(resources("cpu=3 hugepages-2Mi=4Mi example.com/gpu=9", "")),
        overhead: Some(list("cpu=250m pods=1")),
        ..Default::default()
    };
    assert_eq!(text(&pod_requests(&pod, Changes::default())), "cpu=3250m example.com/gpu=1 hugepages-2Mi=4Mi pods=1");
}

#[test]
fn limit_ranges_merge_to_first_defaults_and_the_tightest_bounds() {
    let first = LimitRangeItem {
        max: list("cpu=2"),
        min: list("cpu=500m memory=1Gi"),
        default: list("cpu=2"),
        default_request: list("cpu=500m"),
        max_limit_request_ratio: list("cpu=2"),
        ..item("Pod")
    };
    let second = LimitRangeItem {
        max: list("cpu=3 memory=2Gi"),
        min: list("cpu=1"),
        default: list("cpu=1 memory=2Gi"),
        default_request: list("cpu=1"),
        max_limit_request_ratio: list("cpu=500m"),
        ..item("Pod")
    };
    let summary = summarize(&[&limit_range(vec![first]), &limit_range(vec![item("Container"), second])]);
    let merged = LimitRangeItem {
        max: list("cpu=2 memory=2Gi"),
        min: list("cpu=1 memory=1Gi"),
        default: list("cpu=2 memory=2Gi"),
        default_request: list("cpu=500m"),
        max_limit_request_ratio: list("cpu=500m"),
        ..item("Pod")
    };
    assert_eq!(summary.pod(), Some(&merged));
    assert_eq!(summary.container(), Some(&item("Container")));
}

#[test]
fn a_default_limit_is_no_request() {
    let defaults =
        LimitRangeItem { default: list("cpu=4 memory=1Gi"), default_request: list("cpu=3"), ..item("Container") };
    let mut pod = PodSpec {
        init_containers: vec![container("")],
        containers: vec![Container { resources: resources("", "cpu=6"), ..Default::default() }],
        ..Default::default()
    };
    adjust(&mut pod, no_overhead, &summarize(&[&limit_range(vec![defaults])]), Changes::default());
    assert_eq!(pod.containers[0].resources, resources("cpu=6", "cpu=6 memory=1Gi"));
    assert_eq!(pod.init_containers[0].resources, resources("cpu=3", "cpu=4 memory=1Gi"));
}

#[test]
fn pod_items_fill_in_pod_level_resources_only_where_there_are_any() {
    let summary = summarize(&[&limit_range(vec![LimitRangeItem { default: list("cpu=4"), ..item("Pod") }])]);
    let mut plain = PodSpec { containers: vec![container("")], ..Default::default() };
    adjust(&mut plain, no_overhead, &summary, Changes::default());
    assert_eq!(plain, PodSpec { containers: vec![container("")], ..Default::default() });
    let mut leveled = PodSpec { resources: Some(resources("", "memory=2Gi")), ..Default::default() };
    adjust(&mut leveled, no_overhead, &summary, Changes::default());
    assert_eq!(leveled.resources, Some(resources("memory=2Gi", "cpu=4 memory=2Gi")));
}

#[test]
fn the_runtime_class_adds_its_overhead_where_the_pod_has_none() {
    let fixed = list("cpu=1m");
    let overhead_of = |name: &str| (name == "known").then_some(&fixed);
    let table = [
        (Some("known"), None, Some("cpu=1m")),
        (Some("known"), Some(""), Some("cpu=1m")),
        (Some("known"), Some("cpu=2m"), Some("cpu=2m")),
        (Some("unknown"), None, None),
        (None, None, None),
    ];
    for (class, before, after) in table {
        let mut pod =
            PodSpec { runtime_class_name: class.map(str::to_owned), overhead: before.map(list), ..Default::default() };
        adjust(&mut pod, overhead_of, &LimitRangeSummary::default(), Changes::default());
        assert_eq!(pod.overhead, after.map(list), "{class:?} {before:?}");
    }
}

#[test]
fn requests_above_limits_are_named_by_place_and_resource() {
    let over = Container { resources: resources("cpu=300m memory=2Gi", "cpu=200m memory=1Gi"), ..Default::default() };
    let one = workload(PodSpec { containers: vec![over.clone()], ..Default::default() });
    let message = check_resources(&one.pod_sets, &LimitRangeSummary::default(), Changes::default())
        .expect_err("above")
        .to_string();
    assert_eq!(
        message,
        "resources validation failed: spec.podSets[0].template.spec.containers[0]: Invalid value: \
         [\"cpu\",\"memory\"]: requests must not exceed its limits"
    );
    let two = workload(PodSpec {
        init_containers: vec![container("cpu=1"), over],
        resources: Some(resources("cpu=2", "cpu=1 memory=1")),
        ..Default::default()
    });
    let message = check_resources(&two.pod_sets, &LimitRangeSummary::default(), Changes::default())
        .expect_err("above")
        .to_string();
    assert_eq!(
        message,
        "resources validation failed: [spec.podSets[0].template.spec.initContainers[1]: Invalid value: \
         [\"cpu\",\"memory\"]: requests must not exceed its limits, spec.podSets[0].template.spec.resources: \
         Invalid value: [\"cpu\"]: requests must not exceed its limits]"
    );
}

#[test]
fn limit_ranges_bound_containers_and_whole_pods() {
    let summary = summarize(&[&limit_range(vec![
        LimitRangeItem { max: list("cpu=1"), min: list("cpu=200m"), ..item("Container") },
        LimitRangeItem { max: list("cpu=1500m"), min: list("memory=1Gi"), ..item("Pod") },
    ])]);
    let limited = Container { resources: resources("cpu=100m", "cpu=2"), ..Default::default() };
    let pod = PodSpec { containers: vec![limited, container("cpu=2 memory=1Mi"), container("")], ..Default::default() };
    let errors: Vec<String> =
        pod_limit_range_errors(&pod, "pod", &summary, Changes::default()).iter().map(FieldError::to_string).collect();
    assert_eq!(
        errors,
        [
            "pod.containers[0]: Invalid value: [\"cpu\"]: requests must not be above the limitRange max",
            "pod.containers[0]: Invalid value: [\"cpu\"]: requests must not be below the limitRange min",
            "pod.containers[1]: Invalid value: [\"cpu\"]: requests must not be above the limitRange max",
            "pod: Invalid value: [\"cpu\"]: requests must not be above the limitRange max",
            "pod: Invalid value: [\"memory\"]: requests must not be below the limitRange min",
        ]
    );
    let message =
        check_resources(&workload(pod).pod_sets, &summary, Changes::default()).expect_err("outside").to_string();
    assert!(message.starts_with("resources didn't satisfy LimitRange constraints: [spec.podSets[0].template.spec."));
}

#[test]
fn resources_without_a_request_do_not_violate_a_minimum() {
    let summary = summarize(&[&limit_range(vec![LimitRangeItem { min: list("cpu=1"), ..item("Container") }])]);
    let absent = workload(PodSpec { containers: vec![container("memory=1")], ..Default::default() });
    assert_eq!(check_resources(&absent.pod_sets, &summary, Changes::default()), Ok(()));
    let zero = workload(PodSpec { containers: vec![container("cpu=0")], ..Default::default() });
    assert_eq!(limit_range_errors(&zero.pod_sets, &summary, Changes::default()).len(), 1);
}

fn without(change: Change) -> Changes {
    Changes::default().with(change, false)
}

#[test]
fn own_limits_are_requests_before_the_defaults_of_limit_ranges() {
    let of = |kind: &str| LimitRangeItem { default: list("cpu=4"), default_request: list("cpu=2"), ..item(kind) };
    let summary = summarize(&[&limit_range(vec![of("Container"), of("Pod")])]);
    let adjusted = |requests: &str, limits: &str, changes: Changes| {
        let container = Container { resources: resources(requests, limits), ..Default::default() };
        let mut pod =
            PodSpec { containers: vec![container], resources: Some(resources(requests, limits)), ..Default::default() };
        adjust(&mut pod, no_overhead, &summary, changes);
        assert_eq!(pod.resources.as_ref(), Some(&pod.containers[0].resources));
        text(&pod.containers[0].resources.requests)
    };
    let before_0_20 = without(Change::OwnLimitsBeforeDefaults);
    for (requests, limits, after, before) in
        [("", "", "cpu=2", "cpu=2"), ("", "cpu=3", "cpu=3", "cpu=2"), ("cpu=1", "", "cpu=1", "cpu=1")]
    {
        assert_eq!(adjusted(requests, limits, Changes::default()), after, "{requests} {limits}");
        assert_eq!(adjusted(requests, limits, before_0_20), before, "{requests} {limits}");
    }
    let only_limits = summarize(&[&limit_range(vec![LimitRangeItem { default: list("cpu=2"), ..item("Container") }])]);
    let mut pod = PodSpec { containers: vec![container("")], ..Default::default() };
    adjust(&mut pod, no_overhead, &only_limits, Changes::default());
    assert_eq!(pod.containers[0].resources, resources("", "cpu=2"));
}

#[test]
fn a_request_for_the_whole_pod_is_at_least_that_of_its_containers() {
    let pod = |whole: &str| PodSpec {
        containers: vec![container("cpu=6"), container("cpu=2")],
        resources: Some(resources(whole, "")),
        overhead: Some(list("cpu=100m")),
        ..Default::default()
    };
    let before_0_20 = without(Change::ContainersBoundPodLevelRequests);
    for (whole, after, before) in [
        ("cpu=0", "cpu=8100m", "cpu=100m"),
        ("cpu=9", "cpu=9100m", "cpu=9100m"),
        ("memory=1Gi", "cpu=8100m memory=1Gi", "cpu=8100m memory=1Gi"),
    ] {
        assert_eq!(text(&pod_requests(&pod(whole), Changes::default())), after, "{whole}");
        assert_eq!(text(&pod_requests(&pod(whole), before_0_20)), before, "{whole}");
    }
}
