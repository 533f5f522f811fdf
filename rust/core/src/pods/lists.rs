//! Combining resource lists, name by name.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::base::quantity::Quantity;
use crate::objects::ResourceList;
use crate::objects::resource_names::resource_value;

/// Adds what `from` has and `into` lacks.
pub(crate) fn keep_first(into: &mut ResourceList, from: &ResourceList) {
    merge(into, from, |_, _| {});
}

/// Keeps the smaller of two quantities, the one in `into` when they are equal.
pub(crate) fn keep_min(into: &mut ResourceList, from: &ResourceList) {
    merge(into, from, |ours, theirs| {
        if ours.cmp_value(theirs) == Ordering::Greater {
            ours.clone_from(theirs);
        }
    });
}

/// Keeps the larger of two quantities, the one in `into` when they are equal.
pub(crate) fn keep_max(into: &mut ResourceList, from: &ResourceList) {
    merge(into, from, |ours, theirs| {
        if ours.cmp_value(theirs) == Ordering::Less {
            ours.clone_from(theirs);
        }
    });
}

/// Adds up.
pub(crate) fn add(into: &mut ResourceList, from: &ResourceList) {
    merge(into, from, |ours, theirs| *ours = ours.plus(theirs));
}

fn merge(into: &mut ResourceList, from: &ResourceList, meet: impl Fn(&mut Quantity, &Quantity)) {
    for (name, theirs) in from {
        match into.get_mut(name) {
            Some(ours) => meet(ours, theirs),
            None => {
                into.insert(name.clone(), theirs.clone());
            }
        }
    }
}

/// The integer values of a resource list (rules/01 §7.1).
#[must_use]
pub fn values(list: &ResourceList) -> BTreeMap<String, i64> {
    list.iter().map(|(name, quantity)| (name.clone(), resource_value(name, quantity))).collect()
}

/// The resources that both have and that are larger in `left`, by name.
pub(crate) fn greater_resources(left: &ResourceList, right: &ResourceList) -> Vec<String> {
    let larger = |name: &str, quantity: &Quantity| {
        right.get(name).is_some_and(|other| resource_value(name, quantity) > resource_value(name, other))
    };
    left.iter().filter(|(name, quantity)| larger(name, quantity)).map(|(name, _)| name.clone()).collect()
}
