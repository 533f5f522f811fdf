//! Excluded resources and transformations (rules/01 §7.3 steps 3 to 5).

use std::collections::BTreeMap;

use crate::base::changes::{Change, Changes};
use crate::base::quantity::{Family, Quantity};
use crate::objects::ResourceList;
use crate::objects::config::{Resources, Transformation};
use crate::pods::lists;

/// What is charged for the requests of one pod. `of_devices` is the part of them that is charged as devices; outputs of
/// transformations are not part of it.
pub(super) fn charged(
    mut requests: ResourceList,
    resources: &Resources,
    changes: Changes,
    of_devices: &ResourceList,
) -> ResourceList {
    let Resources { exclude_resource_prefixes: excluded, transformations: rules, .. } = resources;
    let counts = |name: &String| !excluded.iter().any(|prefix| name.starts_with(prefix));
    let may_be_inputs =
        changes.has(Change::ExcludedResourcesAreInputs) && changes.has(Change::TransformationsAreSummedApart);
    if !may_be_inputs {
        requests.retain(|name, _| counts(name));
    }
    let (mut kept, generated) = apply(requests, rules, changes);
    if may_be_inputs {
        kept.retain(|name, _| counts(name));
    }
    for (name, part) in of_devices {
        if let Some(quantity) = kept.get_mut(name) {
            *quantity = quantity.minus(part);
            if quantity.signum() <= 0 {
                kept.remove(name);
            }
        }
    }
    lists::add(&mut kept, &generated);
    kept
}

/// Applies the rules, keyed by input: what is kept of the requests, and what is generated. Every rule reads the
/// original requests; outputs are summed, and nothing negative is generated.
fn apply(
    requests: ResourceList,
    rules: &BTreeMap<String, Transformation>,
    changes: Changes,
) -> (ResourceList, ResourceList) {
    if !requests.keys().any(|name| rules.contains_key(name)) {
        return (requests, ResourceList::new());
    }
    let times = |factor: &Quantity, quantity: &Quantity| {
        if changes.has(Change::TransformationsAreExact) {
            quantity.times(factor)
        } else {
            // The other side of the product counted in whole units, rounded up.
            factor.times(&Quantity::from_units(quantity.ceil_units(), Family::DecimalSi))
        }
    };
    if !changes.has(Change::TransformationsAreSummedApart) {
        return (overwritten(&requests, rules, times), ResourceList::new());
    }
    let (mut kept, mut generated) = (ResourceList::new(), ResourceList::new());
    for (name, quantity) in &requests {
        let Some(rule) = rules.get(name) else {
            kept.insert(name.clone(), quantity.clone());
            continue;
        };
        let base = match requests.get(&rule.multiply_by) {
            Some(factor) => times(quantity, factor),
            None => quantity.clone(),
        };
        let outputs = rule.outputs.iter().map(|(output, factor)| (output.clone(), times(factor, &base))).collect();
        lists::add(&mut generated, &outputs);
        if !rule.replace {
            kept.insert(name.clone(), quantity.clone());
        }
    }
    for quantity in generated.values_mut() {
        if quantity.signum() < 0 {
            *quantity = Quantity::default();
        }
    }
    (kept, generated)
}

/// The same, with everything in one list: an input overwrites what was generated under its name before, a retained one
/// is scaled, too, and a negative output lowers what it meets.
fn overwritten(
    requests: &ResourceList,
    rules: &BTreeMap<String, Transformation>,
    times: impl Fn(&Quantity, &Quantity) -> Quantity,
) -> ResourceList {
    let mut result = ResourceList::new();
    for (name, quantity) in requests {
        let Some(rule) = rules.get(name) else {
            result.insert(name.clone(), quantity.clone());
            continue;
        };
        let input = match requests.get(&rule.multiply_by) {
            Some(factor) => times(quantity, factor),
            None => quantity.clone(),
        };
        let outputs = rule.outputs.iter().map(|(output, factor)| (output.clone(), times(factor, &input))).collect();
        lists::add(&mut result, &outputs);
        if !rule.replace {
            result.insert(name.clone(), input);
        }
    }
    result
}
