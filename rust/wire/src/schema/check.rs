//! Validation against a schema, with the API server's messages (rules/01 §10).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::patterns::{QUANTITY, is_quantity};
use super::place::Place;
use super::rule::Outcome;
use super::{ListKind, Pattern, Schema, Shape, is_whole};
use crate::field_error::{ErrorKind, FieldError, WHOLE, quoted, rendered};
use crate::time::parse_time;

/// Do these errors prevent the rules across fields from being evaluated?
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
    /// All errors in the shapes and bounds of a prepared value.
    pub(crate) fn check(&self, value: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.check_at(value, &Place::ROOT, &mut errors);
        errors
    }

    /// The rules that a well-shaped value breaks, outer ones first.
    pub(crate) fn check_rules(&self, value: &Value) -> Vec<FieldError> {
        let mut errors = Vec::new();
        self.rules_at(value, &Place::ROOT, &mut errors);
        errors
    }

    fn check_at(&self, value: &Value, place: &Place<'_>, errors: &mut Vec<FieldError>) {
        match (&self.shape, value) {
            (Shape::Partly { checked, .. }, value) => checked.check_at(value, place, errors),
            (Shape::Any | Shape::Unknown, _) | (Shape::Boolean, Value::Bool(_)) => {}
            (Shape::Object(fields), Value::Object(values)) => {
                for field in fields {
                    let place = place.field(field.name);
                    match values.get(field.name) {
                        Some(value) => field.schema.check_at(value, &place, errors),
                        None if field.required => errors.push(FieldError::required(place.to_string(), "")),
                        None => {}
                    }
                }
            }
            (Shape::Map { value, max }, Value::Object(entries)) => {
                for (name, entry) in entries {
                    value.check_at(entry, &place.field(name), errors);
                }
                if entries.len() > *max {
                    errors.push(FieldError::too_many(place.to_string(), entries.len(), *max));
                }
            }
            (Shape::List { item, min, max, kind }, Value::Array(items)) => {
                for (i, entry) in items.iter().enumerate() {
                    item.check_at(entry, &place.index(i), errors);
                }
                if items.len() < *min {
                    let detail = format!("{place} in body should have at least {min} items");
                    errors.push(FieldError::invalid(place.to_string(), items.len().to_string(), detail));
                }
                if items.len() > *max {
                    errors.push(FieldError::too_many(place.to_string(), items.len(), *max));
                }
                check_entries(items, *kind, place, errors);
            }
            (Shape::Text { min, max, pattern, one_of }, value) => {
                match value {
                    Value::String(text) => errors.extend(text_error(text, (*min, *max), *pattern, place)),
                    other => errors.push(wrong_type(place, type_name(other), "string")),
                }
                let is_one = |text: &str| one_of.contains(&text);
                if !one_of.is_empty() && !value.as_str().is_some_and(is_one) {
                    errors.push(FieldError::unsupported(place.to_string(), rendered(value), one_of));
                }
            }
            (Shape::Integer { bits, min }, value) => check_integer(value, *bits, *min, place, errors),
            (Shape::Quantity | Shape::IntOrText, Value::Number(number)) if is_whole(number) => {}
            (Shape::IntOrText, Value::String(_)) => {}
            (Shape::Quantity, Value::String(text)) => {
                if !is_quantity(text) {
                    errors.push(mismatch(text, QUANTITY, place));
                }
            }
            (Shape::Quantity | Shape::IntOrText, other) => neither_number_nor_text(other, place, errors),
            (Shape::Time, Value::String(text)) if parse_time(text).is_some() => {}
            (Shape::Time, Value::String(text)) => errors.push(wrong_type(place, text, "date-time")),
            (Shape::Time, Value::Array(_)) => errors.push(wrong_type(place, "array", "string")),
            (Shape::Time, other) => errors.push(wrong_type(place, format_name(other), "date-time")),
            (Shape::Object(_) | Shape::Map { .. }, other) => errors.push(wrong_type(place, type_name(other), "object")),
            (Shape::List { .. }, other) => errors.push(wrong_type(place, type_name(other), "array")),
            (Shape::Boolean, other) => errors.push(wrong_type(place, type_name(other), "boolean")),
        }
    }

    fn rules_at(&self, value: &Value, place: &Place<'_>, errors: &mut Vec<FieldError>) {
        for rule in &self.rules {
            let message = rule.message;
            match rule.check(value) {
                Outcome::Holds => {}
                Outcome::Broken => {
                    // The value of a part with parts of its own is not shown.
                    let shown = Some(value).filter(|value| !value.is_object() && !value.is_array()).map(rendered);
                    let error = FieldError::unshown(place.to_string(), message);
                    errors.push(FieldError { value: shown, ..error });
                }
                Outcome::NoSuchKey(key) => {
                    errors.push(not_evaluated(&format!("no such key: {key}"), message, value, place));
                }
                Outcome::NotAnInteger => {
                    errors.push(not_evaluated("invalid data, expected int, got float64", message, value, place));
                }
            }
        }
        match (&self.shape, value) {
            (Shape::Object(fields), Value::Object(values)) => {
                for field in fields {
                    if let Some(value) = values.get(field.name) {
                        field.schema.rules_at(value, &place.field(field.name), errors);
                    }
                }
            }
            (Shape::List { item, .. }, Value::Array(items)) => {
                for (i, entry) in items.iter().enumerate() {
                    item.rules_at(entry, &place.index(i), errors);
                }
            }
            _ => {}
        }
    }
}

fn not_evaluated(why: &str, rule: &str, value: &Value, place: &Place<'_>) -> FieldError {
    let detail = format!("{why} evaluating rule: {rule}");
    FieldError::invalid(place.to_string(), quoted(type_name(value)), detail)
}

/// The error of a text: length first, then pattern.
fn text_error(
    text: &str,
    (min, max): (usize, usize),
    pattern: Option<Pattern>,
    place: &Place<'_>,
) -> Option<FieldError> {
    let n_chars = if min == 0 && max == usize::MAX { 0 } else { text.chars().count() };
    if n_chars > max {
        // Characters are counted, whatever the message says.
        return Some(FieldError::too_long(place.to_string(), max));
    }
    if n_chars < min {
        let detail = format!("{place} in body should be at least {min} chars long");
        return Some(FieldError::invalid(place.to_string(), quoted(text), detail));
    }
    let pattern = pattern.filter(|pattern| !pattern.matches(text))?;
    Some(mismatch(text, pattern.expression(), place))
}

fn mismatch(text: &str, expression: &str, place: &Place<'_>) -> FieldError {
    let detail = format!("{place} in body should match '{expression}'");
    FieldError::invalid(place.to_string(), quoted(text), detail)
}

/// Checks type, range and bound in this order; any number is checked against all three.
fn check_integer(value: &Value, bits: u32, min: i64, place: &Place<'_>, errors: &mut Vec<FieldError>) {
    let Value::Number(number) = value else {
        let is_formatted = matches!(value, Value::Bool(_) | Value::Object(_));
        errors.push(match is_formatted {
            true => wrong_type(place, format_name(value), &format!("int{bits}")),
            false => wrong_type(place, type_name(value), "integer"),
        });
        return;
    };
    if !is_whole(number) {
        errors.push(wrong_type(place, "float64", &format!("int{bits}")));
    }
    if integer_of(value).is_none_or(|n| bits == 32 && i32::try_from(n).is_err()) {
        errors.push(out_of_range(&format!("with format int{bits}"), place));
    }
    #[allow(clippy::cast_precision_loss)] // bounds are small
    if number.as_f64().is_some_and(|float| float < min as f64) {
        let detail = format!("{place} in body should be greater than or equal to {min}");
        errors.push(FieldError::invalid(place.to_string(), rendered(value), detail));
    }
}

/// The value of a number as a 64-bit integer. Go first prints a float with the fewest digits that identify it.
fn integer_of(number: &Value) -> Option<i64> {
    number.as_i64().or_else(|| number.as_f64()?.to_string().parse().ok())
}

fn neither_number_nor_text(value: &Value, place: &Place<'_>, errors: &mut Vec<FieldError>) {
    errors.push(wrong_type(place, type_name(value), "integer,string"));
    if value.is_null() {
        return;
    }
    let detail = format!("{} must validate at least one schema (anyOf)", quoted(&place.to_string()));
    errors.push(FieldError::invalid(WHOLE, quoted(""), detail));
    errors.push(wrong_type(place, type_name(value), "integer"));
    if value.is_number() && integer_of(value).is_none() {
        errors.push(out_of_range("(default format)", place));
    }
}

fn out_of_range(format: &str, place: &Place<'_>) -> FieldError {
    FieldError::invalid(WHOLE, quoted(""), format!("Checked value must be of type integer {format} in {place}"))
}

/// A list keyed by fields takes only objects; of equal entries the second is reported.
fn check_entries(items: &[Value], kind: ListKind, place: &Place<'_>, errors: &mut Vec<FieldError>) {
    if kind == ListKind::Atomic {
        return;
    }
    if let ListKind::Map(_) = kind {
        let stranger = items.iter().position(|item| !item.is_object() && !item.is_null());
        if let Some(i) = stranger {
            let detail = "must be an object for an array of list-type map";
            return errors.push(FieldError::invalid(place.index(i).to_string(), rendered(&items[i]), detail));
        }
    }
    let mut seen = BTreeSet::new();
    let mut reported = BTreeSet::new();
    for (i, item) in items.iter().enumerate() {
        let shown = match kind {
            ListKind::Map(keys) => {
                let of_item = |key: &&str| Some(((*key).to_owned(), item.get(key)?.clone()));
                rendered(&Value::Object(keys.iter().filter_map(of_item).collect::<Map<_, _>>()))
            }
            _ => rendered(item),
        };
        if !seen.insert(shown.clone()) && reported.insert(shown.clone()) {
            errors.push(FieldError::duplicate(place.index(i).to_string(), shown));
        }
    }
}

fn wrong_type(place: &Place<'_>, found: &str, wanted: &str) -> FieldError {
    let path = place.to_string();
    let subject = if path.is_empty() { String::new() } else { format!("{path} in body ") };
    let found = quoted(found);
    let detail = format!("{subject}must be of type {wanted}: {found}");
    FieldError { path, kind: ErrorKind::TypeInvalid, value: Some(found), detail }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        // Beyond 64 bits all numbers are floats.
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The type name of a value in format errors: only numbers have one.
fn format_name(value: &Value) -> &'static str {
    match value {
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        _ => "",
    }
}
