//! Lists of alternatives: what they are charged, and which are refused.

use super::*;

/// Template `t` with a list of alternatives for each request.
fn alternatives<const N: usize>(lists: [Vec<ExactDeviceRequest>; N]) -> ResourceClaimTemplate {
    let request = |first_available| DeviceRequest { first_available, exactly: None };
    ResourceClaimTemplate { meta: namespaced("t"), requests: lists.map(request).into() }
}

/// With lists of alternatives; `counted` is charged by a counter, `other` as another resource.
fn world_with_lists(is_on: bool) -> World {
    let classes = [("counted", "gpu"), ("other", "example.com/gpu")];
    let device_classes = classes.map(|(class, resource)| (class.to_owned(), resource.to_owned())).into();
    let resources =
        Resources { device_classes, device_class_mappings: vec![by_counter("counted")], ..Resources::default() };
    let config = Config::default();
    let gates = config.gates.with(Gate::KueueDRAIntegrationPrioritizedList, is_on);
    world_of(Config { resources, gates, ..config })
}

#[test]
fn a_list_of_equal_alternatives_is_charged_once() {
    let pair = |n| vec![exactly("gpu.example.com", n), exactly("big.example.com", n)];
    let mut template = alternatives([pair(2), pair(3)]);
    // Selectors leave out devices of an alternative, not the charge.
    template.requests[0].first_available[1].has_expressions = true;
    template.requests.push(DeviceRequest { first_available: vec![], exactly: Some(exactly("big.example.com", 1)) });
    for is_on in [true, false] {
        let mut world = world_with_lists(is_on);
        world.apply([Object::ResourceClaimTemplate(template.clone())]);
        world.submit(claimant("w", 1, &["t"]));
        if is_on {
            assert_eq!(totals(&world, "w"), ["cpu=1000", "gpu=6"]);
            assert_eq!(world.cycle().admissions.len(), 1);
        } else {
            assert!(!is_waiting(&world, "w"));
            world.reconcile();
            let message = world.condition("w", QUOTA_RESERVED);
            assert!(message.ends_with("FirstAvailable device selection is not supported"), "{message}");
        }
    }
}

#[test]
fn alternatives_that_differ_or_cannot_be_counted_are_refused_with_the_field() {
    let first = || exactly("gpu.example.com", 1);
    let listed = |second| alternatives([vec![first(), second]]);
    let both = |mut template: ResourceClaimTemplate| {
        template.requests[0].exactly = Some(first());
        template
    };
    let mode = ExactDeviceRequest { allocation_mode: "All".to_owned(), ..first() };
    let table = [
        (
            listed(exactly("big.example.com", 2)),
            ".firstAvailable[1].count: Invalid value: 2",
            "every alternative must have count 1, this one has 2",
        ),
        (
            listed(exactly("other", 1)),
            ".firstAvailable[1].deviceClassName: Invalid value: \"other\"",
            "every alternative must map to \"gpu\", this one maps to \"example.com/gpu\"",
        ),
        (listed(exactly("unmapped", 1)), ".firstAvailable[1].deviceClassName: Not found: \"unmapped\"", ""),
        (
            listed(exactly("counted", 1)),
            ".firstAvailable[1].deviceClassName: Invalid value: \"counted\"",
            "a counter-backed or capacity-backed DeviceClass is not supported for firstAvailable",
        ),
        (listed(exactly("", 1)), ".firstAvailable[1].deviceClassName: Required value", ""),
        (listed(exactly("gpu.example.com", -1)), ".firstAvailable[1].count: Invalid value: -1", "must not be negative"),
        (
            listed(mode),
            ".firstAvailable[1].allocationMode: Unsupported value: \"All\"",
            "supported values: \"ExactCount\"",
        ),
        (both(listed(first())), ": Invalid value: null", "exactly one of exactly or firstAvailable must be set"),
    ];
    for (template, field, detail) in table {
        let mut world = world_with_lists(true);
        world.apply([Object::ResourceClaimTemplate(template)]);
        world.submit(claimant("w", 1, &["t"]));
        assert!(!is_waiting(&world, "w"), "{field}");
        world.reconcile();
        let expected = format!(
            "spec.podSets[0].template.spec.resourceClaims[0].devices.requests[0]{field}: ResourceClaimTemplate t: {detail}"
        );
        let message = world.condition("w", QUOTA_RESERVED);
        assert_eq!(message.split_once(": ").map(|it| it.1), Some(expected.as_str()));
    }
}
