//! Amounts, quantities and other small parts of a case, to and from JSON.

use kueuecore::base::amount::Amount;
use kueuecore::base::ids::{FlavorId, FlavorResourceId, ResourceId};
use kueuecore::base::names::Names;
use kueuecore::base::quantity::Quantity;
use kueuecore::objects::resource_names::{amount_from_quantity, quantity_from_value};
use kueuecore::state::State;
use serde_json::{Map, Value};

pub(super) fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str, String> {
    value[key].as_str().ok_or_else(|| format!("{key} is no text: {}", value[key]))
}

pub(super) fn integer(value: &Value, key: &str) -> Result<i64, String> {
    value[key].as_i64().ok_or_else(|| format!("{key} is no integer: {}", value[key]))
}

pub(super) fn is_true(value: &Value, key: &str) -> bool {
    value[key].as_bool().unwrap_or_default()
}

/// The entries of an object; none if it is absent.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The items of a list; none if it is absent.
pub(super) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn texts(value: &Value) -> impl Iterator<Item = &str> {
    items(value).iter().filter_map(Value::as_str)
}

pub(super) fn quantity(value: &Value) -> Result<Quantity, String> {
    let text = value.as_str().ok_or_else(|| format!("no quantity: {value}"))?;
    Quantity::parse(text).map_err(|e| format!("{text}: {e}"))
}

/// The amounts of `{flavor: {resource: quantity}}`.
pub(super) fn flavor_amounts(state: &mut State, value: &Value) -> Result<Vec<(FlavorResourceId, Amount)>, String> {
    let mut amounts = Vec::new();
    for (flavor, resources) in entries(value) {
        let flavor = state.flavor(flavor);
        for (name, given) in entries(resources) {
            let resource = state.names.resource(name);
            let fr = state.names.flavor_resource(flavor, resource);
            amounts.push((fr, amount_from_quantity(name, &quantity(given)?)));
        }
    }
    Ok(amounts)
}

/// An amount of a resource as a quantity, or `unlimited`.
pub(super) fn amount(resource: &str, amount: Amount) -> Value {
    if amount.is_unlimited() {
        return Value::from("unlimited");
    }
    Value::from(quantity_from_value(resource, amount.get(), false).to_string())
}

/// Amounts as `{flavor: {resource: quantity}}`.
pub(super) fn by_flavor(names: &Names, amounts: impl IntoIterator<Item = (FlavorResourceId, Amount)>) -> Value {
    let mut flavors = Map::new();
    for (fr, value) in amounts {
        let (flavor, resource) = names.parts(fr);
        let resource = names.resource_text(resource);
        flavors.entry(&names.flavors[flavor]).or_insert_with(|| Value::Object(Map::new()))[resource] =
            amount(resource, value);
    }
    Value::Object(flavors)
}

/// Requests as `{resource: quantity}`.
pub(super) fn requests(names: &Names, requests: &[(ResourceId, i64)]) -> Value {
    requests
        .iter()
        .map(|&(resource, value)| {
            let name = names.resource_text(resource);
            (name.to_owned(), amount(name, Amount::new(value)))
        })
        .collect()
}

/// `{resource: flavor}` by ids.
pub(super) fn flavors_of(state: &mut State, value: &Value) -> Vec<(ResourceId, FlavorId)> {
    let pairs: Vec<(&String, &str)> = entries(value).filter_map(|(r, f)| Some((r, f.as_str()?))).collect();
    pairs.into_iter().map(|(resource, flavor)| (state.names.resource(resource), state.flavor(flavor))).collect()
}
