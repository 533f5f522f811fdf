//! Resource transformations (rules/01 §7.3 step 4).

use std::collections::BTreeMap;

use crate::base::quantity::Quantity;
use crate::objects::ResourceList;
use crate::objects::config::Transformation;
use crate::pods::lists;

/// Applies the rules, keyed by input, to the requests of one pod. Every rule reads the original requests; its outputs
/// are summed, clamped at zero, and only then added to what was kept.
pub(super) fn apply(requests: ResourceList, rules: &BTreeMap<String, Transformation>) -> ResourceList {
    if !requests.keys().any(|name| rules.contains_key(name)) {
        return requests;
    }
    let (mut kept, mut generated) = (ResourceList::new(), ResourceList::new());
    for (name, quantity) in &requests {
        let Some(rule) = rules.get(name) else {
            kept.insert(name.clone(), quantity.clone());
            continue;
        };
        let base = match requests.get(&rule.multiply_by) {
            Some(factor) => quantity.times(factor),
            None => quantity.clone(),
        };
        let outputs = rule.outputs.iter().map(|(output, factor)| (output.clone(), base.times(factor))).collect();
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
