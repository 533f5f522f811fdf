//! Resource transformations (rules/01 §7.3 step 4).

use std::collections::BTreeMap;

use crate::base::changes::{Change, Changes};
use crate::base::quantity::{Family, Quantity};
use crate::objects::ResourceList;
use crate::objects::config::Transformation;
use crate::pods::lists;

/// Applies the rules, keyed by input, to the requests of one pod. Every rule reads the original requests; its outputs
/// are summed, clamped at zero, and only then added to what was kept.
pub(super) fn apply(
    requests: ResourceList,
    rules: &BTreeMap<String, Transformation>,
    changes: Changes,
) -> ResourceList {
    if !requests.keys().any(|name| rules.contains_key(name)) {
        return requests;
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
        return overwritten(&requests, rules, times);
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
    lists::add(&mut kept, &generated);
    kept
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
