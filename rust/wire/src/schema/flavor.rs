//! Flavors: their labels, taints and tolerations, and quotas in them, as specs and statuses have them.

use serde_json::Value;

use super::kubernetes::{EFFECTS, toleration};
use super::rule::{self, Outcome};
use super::{Schema, entries, field, fields, has, items, list, map, object, quantity, reference, text, text_of, time};

pub(super) fn resource_groups() -> Schema {
    let resource = object([
        field("name", text()).required(),
        field("nominalQuota", quantity()).required(),
        field("borrowingLimit", quantity()),
        field("lendingLimit", quantity()),
    ]);
    let flavor = object([
        field("name", reference()).required(),
        field("resources", list(resource).at_least(1).at_most(64).unique_by(&["name"])).required(),
    ]);
    let group = object([
        field("coveredResources", list(text()).at_least(1).at_most(64)).required(),
        field("flavors", list(flavor).at_least(1).at_most(64).unique_by(&["name"])).required(),
    ])
    .rule(
        "flavors must have the same number of resources as the coveredResources",
        "!self.flavors.exists(flavor, size(flavor.resources) != size(self.coveredResources))",
        |group| {
            let n_covered = items(group, "coveredResources").len();
            items(group, "flavors").iter().all(|flavor| items(flavor, "resources").len() == n_covered)
        },
    );
    list(group).at_most(16)
}

pub(super) fn node_labels() -> Schema {
    map(text()).at_most(8)
}

pub(super) fn node_taints() -> Schema {
    let taint = object(fields(&["key", "value", "effect"], text)).needs(&["key", "effect"]);
    list(taint.with([field("timeAdded", time())])).at_most(8)
}

/// At most eight tolerations and their rules, of a flavor or of an admission check's update.
pub(super) fn tolerations() -> Schema {
    list(toleration())
        .at_most(8)
        .rule(
            "operator must be Exists when 'key' is empty, which means 'match all values and all keys'",
            // A toleration with another operator decides; one without any is an error.
            "!self.exists(t, !has(t.key) && has(t.operator) && t.operator != 'Exists') \
             && self.all(t, has(t.key) || t.operator == 'Exists')",
            |list| {
                rule::all(entries(list), |t| if has(t, "key") { Outcome::Holds } else { is(t, "operator", "Exists") })
            },
        )
        .rule(
            "effect must be 'NoExecute' when 'tolerationSeconds' is set",
            "!self.exists(t, has(t.tolerationSeconds) && has(t.effect) && t.effect != 'NoExecute') \
             && self.all(t, has(t.tolerationSeconds) ? t.effect == 'NoExecute' : true)",
            |list| {
                rule::all(entries(list), |t| match rule::has_integer(t, "tolerationSeconds") {
                    Ok(true) => is(t, "effect", "NoExecute"),
                    Ok(false) => Outcome::Holds,
                    Err(error) => error,
                })
            },
        )
        .rule(
            "supported toleration values: 'Equal'(default), 'Exists'",
            "!self.exists(t, has(t.operator) && t.operator != 'Equal' && t.operator != 'Exists')",
            |list| entries(list).all(|t| !has(t, "operator") || ["Equal", "Exists"].contains(&text_of(t, "operator"))),
        )
        .rule(
            "a value must be empty when 'operator' is 'Exists'",
            "!self.exists(t, has(t.value) && has(t.operator) && t.operator == 'Exists')",
            |list| entries(list).all(|t| text_of(t, "operator") != "Exists" || !has(t, "value")),
        )
        .rule(
            "supported taint effect values: 'NoSchedule', 'PreferNoSchedule', 'NoExecute'",
            "!self.exists(t, has(t.effect) && !(t.effect in ['NoExecute', 'NoSchedule', 'PreferNoSchedule']))",
            |list| entries(list).all(|t| !has(t, "effect") || EFFECTS.contains(&text_of(t, "effect"))),
        )
}

/// Does the field have this text? CEL reports an error if it is absent.
fn is(value: &Value, name: &'static str, wanted: &str) -> Outcome {
    value.get(name).map_or(Outcome::NoSuchKey(name), |found| (found == wanted).into())
}
