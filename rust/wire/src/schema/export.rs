//! The tables as structural OpenAPI schemas, as in a CustomResourceDefinition.

use kueuecore::base::changes::Changes;
use serde_json::{Map, Value, json};

use super::patterns::QUANTITY;
use super::{Field, ListKind, Schema, Served, Shape};
use crate::kinds::Kind;

/// The schema of one of Kueue's own kinds in a version, as `openAPIV3Schema` of its CustomResourceDefinition; `None` for
/// kinds and versions that Kueue does not define.
#[must_use]
pub fn open_api(kind: Kind, api_version: &str, changes: Changes) -> Option<Value> {
    let old = match api_version.strip_prefix("kueue.x-k8s.io/").filter(|_| kind.is_kueue())? {
        "v1beta2" => false,
        "v1beta1" => true,
        _ => return None,
    };
    let mut schema = super::of(kind, Served::of(kind, old, changes)).open_api();
    // API servers validate metadata themselves.
    schema["properties"]["metadata"] = json!({"type": "object"});
    Some(schema)
}

impl Schema {
    fn open_api(&self) -> Value {
        let mut schema = self.shape.open_api();
        if let Some(default) = &self.default {
            schema.insert("default".to_owned(), default.clone());
        }
        if !self.rules.is_empty() {
            let rules = self.rules.iter().map(|rule| json!({"message": rule.message, "rule": rule.expression}));
            schema.insert("x-kubernetes-validations".to_owned(), rules.collect());
        }
        Value::Object(schema)
    }
}

impl Shape {
    fn open_api(&self) -> Map<String, Value> {
        let integer_or_text = || {
            [
                ("anyOf", json!([{"type": "integer"}, {"type": "string"}])),
                ("x-kubernetes-int-or-string", Value::from(true)),
            ]
        };
        match self {
            Shape::Object(fields) => object(fields),
            Shape::Map { value, max } => {
                written([("type", Value::from("object")), ("additionalProperties", value.open_api())]).with_bounds([(
                    "maxProperties",
                    0,
                    *max,
                )])
            }
            Shape::List { item, min, max, kind } => {
                written([("type", Value::from("array")), ("items", item.open_api())])
                    .with_bounds([("minItems", *min, usize::MAX), ("maxItems", 0, *max)])
                    .with(list_kind(*kind))
            }
            Shape::Text { min, max, pattern, one_of } => written([("type", Value::from("string"))])
                .with_bounds([("minLength", *min, usize::MAX), ("maxLength", 0, *max)])
                .with(pattern.map(|pattern| ("pattern", Value::from(pattern.expression()))))
                .with((!one_of.is_empty()).then(|| ("enum", Value::from(*one_of)))),
            Shape::Integer { bits, min } => {
                written([("type", Value::from("integer")), ("format", Value::from(format!("int{bits}")))])
                    .with((*min > i64::MIN).then(|| ("minimum", Value::from(*min))))
            }
            Shape::Boolean => written([("type", Value::from("boolean"))]),
            Shape::Quantity => written(integer_or_text()).with([("pattern", Value::from(QUANTITY))]),
            Shape::IntOrText => written(integer_or_text()),
            Shape::Time => written([("type", Value::from("string")), ("format", Value::from("date-time"))]),
            Shape::Partly { known, .. } => known.shape.open_api(),
            Shape::Any | Shape::Unknown => written([("x-kubernetes-preserve-unknown-fields", Value::from(true))]),
        }
    }
}

fn object(fields: &[Field]) -> Map<String, Value> {
    let known = || fields.iter().filter(|field| !matches!(field.schema.shape, Shape::Unknown));
    let properties: Map<String, Value> =
        known().map(|field| (field.name.to_owned(), field.schema.open_api())).collect();
    let mut required: Vec<&str> = known().filter(|field| field.required).map(|field| field.name).collect();
    required.sort_unstable();
    written([("type", Value::from("object")), ("properties", Value::Object(properties))])
        .with((!required.is_empty()).then(|| ("required", Value::from(required))))
}

fn list_kind(kind: ListKind) -> Vec<(&'static str, Value)> {
    let kind_of_list = |name: &str| ("x-kubernetes-list-type", Value::from(name));
    match kind {
        ListKind::Atomic => vec![kind_of_list("atomic")],
        ListKind::Set => vec![kind_of_list("set")],
        ListKind::Map(keys) => vec![kind_of_list("map"), ("x-kubernetes-list-map-keys", Value::from(keys))],
    }
}

fn written(parts: impl IntoIterator<Item = (&'static str, Value)>) -> Map<String, Value> {
    parts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Adds to a schema.
trait With: Sized {
    fn with(self, parts: impl IntoIterator<Item = (&'static str, Value)>) -> Self;

    /// Adds bounds, except those without effect: 0, or the maximum.
    fn with_bounds(self, bounds: impl IntoIterator<Item = (&'static str, usize, usize)>) -> Self {
        let telling = |(name, min, max): (&'static str, usize, usize)| {
            let bound = if min > 0 { min } else { max };
            (bound < usize::MAX).then(|| (name, Value::from(bound)))
        };
        self.with(bounds.into_iter().filter_map(telling).collect::<Vec<_>>())
    }
}

impl With for Map<String, Value> {
    fn with(mut self, parts: impl IntoIterator<Item = (&'static str, Value)>) -> Self {
        self.extend(written(parts));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> impl Iterator<Item = (Kind, &'static str, Value)> {
        let versions = |kind: Kind| kind.api_versions().iter().copied().map(move |version| (kind, version));
        let kinds = Kind::ALL.iter().copied().flat_map(versions);
        kinds.filter_map(|(kind, version)| Some((kind, version, open_api(kind, version, Changes::default())?)))
    }

    fn nodes(schema: &Value) -> Vec<&Value> {
        let parts = schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::values);
        let parts = parts.chain(schema.get("items")).chain(schema.get("additionalProperties"));
        std::iter::once(schema).chain(parts.flat_map(nodes)).collect()
    }

    #[test]
    fn every_rule_has_an_expression_over_the_part_it_stands_at() {
        for (kind, version, schema) in all() {
            for rule in nodes(&schema).iter().filter_map(|node| node["x-kubernetes-validations"].as_array()).flatten() {
                let expression = rule["rule"].as_str().unwrap_or_default();
                assert!(expression.contains("self"), "{kind:?} {version}: {rule}");
                assert!(!rule["message"].as_str().unwrap_or_default().is_empty(), "{kind:?} {version}: {rule}");
            }
        }
    }

    #[test]
    fn a_schema_is_structural() {
        for (kind, version, schema) in all() {
            for node in nodes(&schema) {
                let is_open = ["x-kubernetes-preserve-unknown-fields", "x-kubernetes-int-or-string"];
                let has_type = node["type"].is_string();
                assert!(has_type != is_open.iter().any(|it| node[*it] == true), "{kind:?} {version}: {node}");
                // The keys of a list are required, unless they have a default.
                for key in node["x-kubernetes-list-map-keys"].as_array().into_iter().flatten() {
                    let required = node["items"]["required"].as_array().is_some_and(|names| names.contains(key));
                    let field = &node["items"]["properties"][key.as_str().unwrap_or_default()];
                    assert!(required || !field["default"].is_null(), "{kind:?} {version}: {key}");
                }
            }
        }
    }

    #[test]
    fn a_table_reads_as_open_api() {
        let schema =
            open_api(Kind::AdmissionCheck, "kueue.x-k8s.io/v1beta2", Changes::default()).expect("it is Kueue's");
        assert_eq!(
            schema["properties"]["spec"],
            json!({
                "type": "object",
                "required": ["controllerName"],
                "properties": {
                    "controllerName": {
                        "type": "string", "minLength": 1, "maxLength": 253,
                        "x-kubernetes-validations": [{"message": "field is immutable", "rule": "oldSelf == self"}],
                    },
                    "parameters": {
                        "type": "object",
                        "required": ["apiGroup", "kind", "name"],
                        "properties": {
                            "apiGroup": {
                                "type": "string", "minLength": 1, "maxLength": 253,
                                "pattern": super::super::Pattern::Subdomain.expression(),
                            },
                            "kind": {
                                "type": "string", "minLength": 1, "maxLength": 63,
                                "pattern": super::super::Pattern::KindName.expression(),
                            },
                            "name": {
                                "type": "string", "minLength": 1, "maxLength": 63,
                                "pattern": super::super::Pattern::Label.expression(),
                            },
                        },
                    },
                },
            })
        );
        assert_eq!(open_api(Kind::AdmissionCheck, "kueue.x-k8s.io/v1", Changes::default()), None);
        assert_eq!(open_api(Kind::Node, "v1", Changes::default()), None);
    }
}
