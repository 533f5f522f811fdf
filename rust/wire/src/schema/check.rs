//! Validation against a schema, in the words of the API server (rules/01, head).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::patterns::{QUANTITY, is_quantity};
use super::prepare::child;
use super::{Pattern, Schema, Shape, Unique};
use crate::field_error::{ErrorKind, FieldError, quoted, rendered};
use crate::time::parse_time;

/// Do these errors keep the rules over several fields from being evaluated?
pub(crate) fn blocks_rules(errors: &[FieldError]) -> bool {
    let blocking = |kind| {
        matches!(
            kind,
            ErrorKind::Unsupported
                | ErrorKind::Required
                | ErrorKind::TooLong
                | ErrorKind::TooMany
                | ErrorKind::TypeInvalid
        )
    };
    errors.iter().any(|error| blocking(error.kind))
}

impl Schema {
    /// Everything that is wrong with the shapes and bounds of a prepared value.
    pub(crate) fn check(&self, value: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.check_at(value, "", &mut errors);
        errors
    }

    /// The rules that do not hold for a value of the right shape, outer ones first.
    pub(crate) fn check_rules(&self, value: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.rules_at(value, "", &mut errors);
        errors
    }

    fn check_at(&self, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
        match (&self.shape, value) {
            (Shape::Any, _) | (Shape::Boolean, Value::Bool(_)) => {}
            (Shape::Object(fields), Value::Object(values)) => {
                for field in fields {
                    let path = child(path, field.name);
                    match values.get(field.name) {
                        Some(value) => field.schema.check_at(value, &path, errors),
                        None if field.required => errors.push(FieldError::required(path, "")),
                        None => {}
                    }
                }
            }
            (Shape::Map { value, max }, Value::Object(entries)) => {
                if entries.len() > *max {
                    errors.push(FieldError::too_many(path, entries.len(), *max));
                }
                for (name, entry) in entries {
                    value.check_at(entry, &child(path, name), errors);
                }
            }
            (Shape::List { item, min, max, unique }, Value::Array(items)) => {
                if items.len() < *min {
                    let detail = format!("{path} in body should have at least {min} items");
                    errors.push(FieldError::invalid(path, items.len().to_string(), detail));
                }
                if items.len() > *max {
                    errors.push(FieldError::too_many(path, items.len(), *max));
                }
                for (i, entry) in items.iter().enumerate() {
                    item.check_at(entry, &format!("{path}[{i}]"), errors);
                }
                duplicates(items, *unique, path, errors);
            }
            (Shape::Text { min, max, pattern, one_of }, Value::String(text)) => {
                check_text(text, (*min, *max), *pattern, path, errors);
                if !one_of.is_empty() && !one_of.contains(&text.as_str()) {
                    errors.push(FieldError::unsupported(path, quoted(text), one_of));
                }
            }
            (Shape::Integer { bits, min }, Value::Number(number)) if !number.is_f64() => {
                let held = number.as_i64().filter(|n| *bits == 64 || i32::try_from(*n).is_ok());
                if held.is_none() {
                    let detail = format!("Checked value must be of type integer with format int{bits} in {path}");
                    errors.push(FieldError::invalid(path, number.to_string(), detail));
                } else if held < Some(*min) {
                    let detail = format!("{path} in body should be greater than or equal to {min}");
                    errors.push(FieldError::invalid(path, number.to_string(), detail));
                }
            }
            (Shape::Quantity, Value::String(text)) => {
                if !is_quantity(text) {
                    let detail = format!("{path} in body should match '{QUANTITY}'");
                    errors.push(FieldError::invalid(path, quoted(text), detail));
                }
            }
            (Shape::Quantity, Value::Number(number)) if !number.is_f64() => {}
            (Shape::Time, Value::String(text)) if parse_time(text).is_some() => {}
            (Shape::Time, Value::String(text)) => errors.push(wrong_type(path, &quoted(text), "date-time")),
            (_, other) => errors.push(wrong_type(path, &quoted(type_name(other)), self.wanted_type())),
        }
    }

    fn wanted_type(&self) -> &'static str {
        match self.shape {
            Shape::Object(_) | Shape::Map { .. } => "object",
            Shape::List { .. } => "array",
            Shape::Text { .. } | Shape::Time => "string",
            Shape::Integer { .. } => "integer",
            Shape::Boolean => "boolean",
            Shape::Quantity => "integer,string",
            Shape::Any => "any",
        }
    }

    fn rules_at(&self, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
        for (message, holds) in &self.rules {
            if !holds(value) {
                let shown = match value {
                    Value::Object(_) | Value::Array(_) => None,
                    scalar => Some(rendered(scalar)),
                };
                let detail = (*message).to_owned();
                errors.push(FieldError { path: path.to_owned(), kind: ErrorKind::Invalid, value: shown, detail });
            }
        }
        match (&self.shape, value) {
            (Shape::Object(fields), Value::Object(values)) => {
                for field in fields {
                    if let Some(value) = values.get(field.name) {
                        field.schema.rules_at(value, &child(path, field.name), errors);
                    }
                }
            }
            (Shape::List { item, .. }, Value::Array(items)) => {
                for (i, entry) in items.iter().enumerate() {
                    item.rules_at(entry, &format!("{path}[{i}]"), errors);
                }
            }
            _ => {}
        }
    }
}

fn check_text(
    text: &str,
    (min, max): (usize, usize),
    pattern: Option<Pattern>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    let n_chars = text.chars().count();
    if n_chars > max {
        // Characters are counted, whatever the message says.
        errors.push(FieldError::too_long(path, max));
    }
    if n_chars < min {
        let detail = format!("{path} in body should be at least {min} chars long");
        errors.push(FieldError::invalid(path, quoted(text), detail));
    }
    if let Some(pattern) = pattern.filter(|pattern| !pattern.matches(text)) {
        let detail = format!("{path} in body should match '{}'", pattern.expression());
        errors.push(FieldError::invalid(path, quoted(text), detail));
    }
}

/// The second of each group of equal entries is reported.
fn duplicates(items: &[Value], unique: Unique, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let shown = match unique {
            Unique::No => return,
            Unique::Whole => rendered(item),
            Unique::By(keys) => {
                let of_item = |key: &&str| Some(((*key).to_owned(), item.get(key)?.clone()));
                Value::Object(keys.iter().filter_map(of_item).collect::<Map<_, _>>()).to_string()
            }
        };
        if !seen.insert(shown.clone()) && reported.insert(shown.clone()) {
            errors.push(FieldError::duplicate(format!("{path}[{i}]"), shown));
        }
    }
}

fn wrong_type(path: &str, found: &str, wanted: &str) -> FieldError {
    let subject = if path.is_empty() { String::new() } else { format!("{path} in body ") };
    let detail = format!("{subject}must be of type {wanted}: {found}");
    FieldError { path: path.to_owned(), kind: ErrorKind::TypeInvalid, value: Some(found.to_owned()), detail }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
