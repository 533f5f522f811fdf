//! Before validation: unknown fields are reported and dropped, nulls dropped, defaults filled in (rules/01 §10 1).

use serde_json::Value;

use super::place::Place;
use super::{Schema, Shape};
use crate::field_error::MAX_WARNINGS;
use crate::suggest::nearest;

/// The unknown fields of an object.
#[derive(Default)]
pub(crate) struct Unknown {
    /// The first of them.
    pub(crate) fields: Vec<UnknownField>,
    /// How many more there are.
    pub(crate) n_more: usize,
}

/// An unknown field, and the known one that may have been meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnknownField {
    pub(crate) path: String,
    pub(crate) meant: Option<&'static str>,
}

impl Unknown {
    fn note(&mut self, place: &Place<'_>, name: &str, known: &[super::Field]) {
        // Finding a suggestion takes time.
        if self.fields.len() >= MAX_WARNINGS {
            self.n_more += 1;
            return;
        }
        let meant = nearest(name, known.iter().map(|field| field.name));
        self.fields.push(UnknownField { path: place.field(name).to_string(), meant });
    }
}

impl Schema {
    /// Prepares a value in place and returns the dropped fields.
    pub(crate) fn prepare(&self, value: &mut Value) -> Unknown {
        let mut unknown = Unknown::default();
        self.prepare_at(value, &Place::ROOT, &mut unknown);
        unknown
    }

    fn prepare_at(&self, value: &mut Value, place: &Place<'_>, unknown: &mut Unknown) {
        match (&self.shape, value) {
            (Shape::Object(fields), Value::Object(values)) => {
                values.retain(|name, value| {
                    let known = fields.iter().any(|field| field.name == name);
                    if !known {
                        unknown.note(place, name, fields);
                    }
                    known && !value.is_null()
                });
                for field in fields {
                    if let (None, Some(default)) = (values.get(field.name), &field.schema.default) {
                        values.insert(field.name.to_owned(), default.clone());
                    }
                    if let Some(value) = values.get_mut(field.name) {
                        field.schema.prepare_at(value, &place.field(field.name), unknown);
                    }
                }
            }
            (Shape::Map { value: schema, .. }, Value::Object(entries)) => {
                entries.retain(|_, entry| {
                    schema.fill_null(entry);
                    !entry.is_null()
                });
                for (name, entry) in entries {
                    schema.prepare_at(entry, &place.field(name), unknown);
                }
            }
            (Shape::List { item, .. }, Value::Array(items)) => {
                for (i, entry) in items.iter_mut().enumerate() {
                    item.fill_null(entry);
                    item.prepare_at(entry, &place.index(i), unknown);
                }
            }
            (Shape::Partly { checked, .. }, value) => checked.prepare_at(value, place, unknown),
            (Shape::Any | Shape::Unknown, _) => {}
            (_, part) => empty(part),
        }
    }

    fn fill_null(&self, value: &mut Value) {
        if let (true, Some(default)) = (value.is_null(), &self.default) {
            value.clone_from(default);
        }
    }
}

/// Drops all fields of a part that should not have been an object.
fn empty(part: &mut Value) {
    match part {
        Value::Object(fields) => fields.clear(),
        Value::Array(items) => items.iter_mut().for_each(empty),
        _ => {}
    }
}
