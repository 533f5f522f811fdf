//! Extended resources that a class stands for.

use super::*;

#[test]
fn an_extended_resource_is_ordinary_until_a_class_stands_for_it() {
    let mut world = world();
    let mut pods = asking("w", &[("example.com/gpu", "2"), ("example.com/gpu", "1")]);
    let mut first = Container::default();
    first.resources.requests.insert("example.com/gpu".to_owned(), quantity("4"));
    pods.pod_sets[0].template.spec.init_containers = vec![first];
    world.submit(pods);
    assert_eq!(totals(&world, "w"), ["example.com/gpu=4"]);
    // The newest class is used, among those the first by name: this one has no mapping.
    world.apply([
        extended_class("gpu.example.com", "example.com/gpu", 1),
        extended_class("z", "example.com/gpu", 2),
        extended_class("a", "example.com/gpu", 2),
    ]);
    assert_eq!(totals(&world, "w"), ["example.com/gpu=4"]);
    world.delete(Kind::DeviceClass, "a");
    world.delete(Kind::DeviceClass, "z");
    assert_eq!(totals(&world, "w"), ["gpu=4"], "the mapped name of the class that is left");
    world.delete(Kind::DeviceClass, "gpu.example.com");
    assert_eq!(totals(&world, "w"), ["example.com/gpu=4"]);
}

#[test]
fn claims_and_extended_resources_add_up() {
    let mut world = world();
    world.apply([
        template("t", [exactly("big.example.com", 2)]),
        extended_class("gpu.example.com", "example.com/gpu", 0),
    ]);
    let mut both = asking("w", &[("example.com/gpu", "3")]);
    both.pod_sets[0].template.spec.resource_claims =
        claimant("", 1, &["t"]).pod_sets[0].template.spec.resource_claims.clone();
    world.submit(both);
    assert_eq!(totals(&world, "w"), ["gpu=5"]);
}

#[test]
fn extended_resources_must_be_whole_numbers() {
    let mut world = world();
    world.apply([extended_class("gpu.example.com", "example.com/gpu", 0)]);
    world.submit(asking("w", &[("example.com/gpu", "500m"), ("example.com/gpu", "1500m")]));
    let field = |i| format!("spec.podSets[0].template.spec.containers[{i}].resources.requests.example.com/gpu");
    assert_eq!(
        refused(&mut world, "w"),
        format!(
            "[{}: Invalid value: \"500m\": extended resource quantity must be an integer, {}: Invalid value: \"1500m\": \
             extended resource quantity must be an integer]",
            field(0),
            field(1)
        )
    );
    world.submit(asking("v", &[("example.com/gpu", "9e18"), ("example.com/gpu", "9e18")]));
    assert_eq!(
        refused(&mut world, "v"),
        format!("{}: Invalid value: \"18e18\": total extended resource quantity overflows int64", field(0))
    );
}

#[test]
fn a_resource_that_a_limit_range_fills_in_counts_once_one_is_asked_for() {
    let mut world = world();
    let default = LimitRangeItem {
        kind: "Container".to_owned(),
        default_request: [("example.com/gpu".to_owned(), quantity("2"))].into(),
        ..LimitRangeItem::default()
    };
    world.apply([
        Object::LimitRange(LimitRange { meta: namespaced("l"), limits: vec![default] }),
        extended_class("gpu.example.com", "example.com/gpu", 0),
    ]);
    // Kueue finds extended resources before it fills in defaults, and counts them afterwards.
    world.submit(workload("w", "1"));
    assert_eq!(totals(&world, "w"), ["cpu=1000", "example.com/gpu=2"]);
    world.submit(asking("v", &[("example.com/gpu", "1"), ("cpu", "1")]));
    assert_eq!(totals(&world, "v"), ["cpu=1000", "gpu=3"]);
}
