//! Before validation: unknown fields are reported and dropped, nulls dropped, defaults filled in.

use serde_json::Value;

use super::{Schema, Shape};
use crate::suggest::nearest;

/// A field that nobody knows, and the known one that may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    pub(crate) path: String,
    pub(crate) meant: Option<&'static str>,
}

impl Schema {
    /// Prepares a value in place and gives the fields that were dropped. A part with a wrong shape is left alone.
    pub(crate) fn prepare(&self, value: &mut Value) -> Vec<Unknown> {
        let mut unknown = Vec::new();
        self.prepare_at(value, "", &mut unknown);
        unknown
    }

    fn prepare_at(&self, value: &mut Value, path: &str, unknown: &mut Vec<Unknown>) {
        match (&self.shape, value) {
            (Shape::Object(fields), Value::Object(values)) => {
                values.retain(|name, value| {
                    let known = fields.iter().any(|field| field.name == name);
                    if !known {
                        let meant = nearest(name, fields.iter().map(|field| field.name));
                        unknown.push(Unknown { path: child(path, name), meant });
                    }
                    known && !value.is_null()
                });
                for field in fields {
                    if let (None, Some(default)) = (values.get(field.name), &field.default) {
                        values.insert(field.name.to_owned(), default.clone());
                    }
                    if let Some(value) = values.get_mut(field.name) {
                        field.schema.prepare_at(value, &child(path, field.name), unknown);
                    }
                }
            }
            (Shape::Map { value, .. }, Value::Object(entries)) => {
                for (name, entry) in entries {
                    value.prepare_at(entry, &child(path, name), unknown);
                }
            }
            (Shape::List { item, .. }, Value::Array(items)) => {
                for (i, entry) in items.iter_mut().enumerate() {
                    item.prepare_at(entry, &format!("{path}[{i}]"), unknown);
                }
            }
            (Shape::Integer { .. }, number) => whole(number),
            _ => {}
        }
    }
}

/// `1.0` is an integer in JSON schemas.
#[allow(clippy::cast_possible_truncation, clippy::float_cmp)]
fn whole(number: &mut Value) {
    if let Some(float) =
        number.as_f64().filter(|float| number.is_f64() && float.trunc() == *float && float.abs() < 9e15)
    {
        *number = Value::from(float as i64);
    }
}

/// The path of a field below another.
pub(crate) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
