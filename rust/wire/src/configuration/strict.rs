//! Strict decoding: duplicate and unknown fields are errors, null is absent, and every error has a path.

use std::cell::RefCell;

use serde::Deserialize;
use serde::de::{self, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::error::ConfigurationError;
use crate::duplicates;
use crate::field_error::quoted;
use crate::suggest::nearest;

/// Reads JSON and reports every duplicate key; the last one counts.
pub(super) fn parse(json: &[u8]) -> Result<(Value, Vec<ConfigurationError>), ConfigurationError> {
    let (value, duplicates) = duplicates::read(json)
        .map_err(|error| ConfigurationError::Malformed { path: String::new(), reason: error.to_string() })?;
    Ok((value, duplicates.into_iter().map(|path| ConfigurationError::DuplicateField { path }).collect()))
}

/// Which fields count as unknown although the type has them: for a path without list positions, the reason.
pub(super) type Absent<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Decodes a JSON tree. Unknown fields are reported in `unknown` and skipped.
///
/// # Errors
/// The first value of a wrong type.
pub(super) fn decode<'de, T: Deserialize<'de>>(
    value: &'de Value,
    absent: Absent<'_>,
    unknown: &RefCell<Vec<ConfigurationError>>,
) -> Result<T, ConfigurationError> {
    T::deserialize(Strict { value, path: String::new(), absent, unknown })
        .map_err(|WrongType { path, reason }| ConfigurationError::Malformed { path, reason })
}

/// A value of the tree and its path.
#[derive(Clone)]
struct Strict<'de, 'a> {
    value: &'de Value,
    path: String,
    absent: Absent<'a>,
    unknown: &'a RefCell<Vec<ConfigurationError>>,
}

impl<'de, 'a> Strict<'de, 'a> {
    fn at(&self, path: String, value: &'de Value) -> Self {
        Self { value, path, absent: self.absent, unknown: self.unknown }
    }

    fn wrong<T>(&self, expected: &str) -> Result<T, WrongType> {
        Err(WrongType { path: self.path.clone(), reason: format!("must be {expected}") })
    }

    fn report_unknown(&self, fields: &Map<String, Value>, known: &'static [&'static str]) {
        for key in fields.keys() {
            let path = child(&self.path, key);
            let hint = if known.contains(&key.as_str()) {
                let Some(reason) = (self.absent)(&without_positions(&path)) else { continue };
                Some(reason)
            } else {
                nearest(key, known.iter().copied()).map(|name| format!("did you mean {}?", quoted(name)))
            };
            self.unknown.borrow_mut().push(ConfigurationError::UnknownField { path, hint });
        }
    }
}

/// A value of another type than its field; the path is filled in further up.
#[derive(Debug)]
struct WrongType {
    path: String,
    reason: String,
}

impl WrongType {
    /// Adds the path, unless an inner value has set it.
    fn within(self, path: String) -> Self {
        if self.path.is_empty() { Self { path, ..self } } else { self }
    }
}

impl std::fmt::Display for WrongType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for WrongType {}

impl de::Error for WrongType {
    fn custom<T: std::fmt::Display>(reason: T) -> Self {
        Self { path: String::new(), reason: reason.to_string() }
    }
}

impl<'de, 'a> Deserializer<'de> for Strict<'de, 'a> {
    type Error = WrongType;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongType> {
        match self.value {
            Value::Object(fields) => visitor.visit_map(Fields::new(&self, fields, None)),
            Value::Array(items) => visitor.visit_seq(Items { parent: &self, items: items.iter().enumerate() }),
            leaf => leaf.deserialize_any(visitor).map_err(de::Error::custom),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, WrongType> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, WrongType> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        known: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, WrongType> {
        let Value::Object(fields) = self.value else { return self.wrong("an object") };
        self.report_unknown(fields, known);
        visitor.visit_map(Fields::new(&self, fields, Some(known)))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map enum identifier ignored_any
    }
}

/// The entries of an object that are not null and, for a struct, not unknown.
struct Fields<'p, 'de, 'a> {
    parent: &'p Strict<'de, 'a>,
    entries: serde_json::map::Iter<'de>,
    known: Option<&'static [&'static str]>,
    next: Option<(&'de String, &'de Value)>,
}

impl<'p, 'de, 'a> Fields<'p, 'de, 'a> {
    fn new(
        parent: &'p Strict<'de, 'a>,
        fields: &'de Map<String, Value>,
        known: Option<&'static [&'static str]>,
    ) -> Self {
        Self { parent, entries: fields.iter(), known, next: None }
    }

    fn is_read(&self, key: &str) -> bool {
        let Some(known) = self.known else { return true };
        known.contains(&key) && (self.parent.absent)(&without_positions(&child(&self.parent.path, key))).is_none()
    }
}

impl<'de> MapAccess<'de> for Fields<'_, 'de, '_> {
    type Error = WrongType;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, WrongType> {
        loop {
            let Some((key, value)) = self.entries.next() else { return Ok(None) };
            if !value.is_null() && self.is_read(key) {
                self.next = Some((key, value));
                return seed.deserialize(key.as_str().into_deserializer()).map(Some);
            }
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, WrongType> {
        let Some((key, value)) = self.next.take() else { return self.parent.wrong("an object") };
        let path = child(&self.parent.path, key);
        seed.deserialize(self.parent.at(path.clone(), value)).map_err(|error| error.within(path))
    }
}

struct Items<'p, 'de, 'a> {
    parent: &'p Strict<'de, 'a>,
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de, '_> {
    type Error = WrongType;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, WrongType> {
        let Some((position, value)) = self.items.next() else { return Ok(None) };
        let path = format!("{}[{position}]", self.parent.path);
        seed.deserialize(self.parent.at(path.clone(), value)).map(Some).map_err(|error| error.within(path))
    }
}

fn child(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

/// `a[3].b` as `a[].b`.
fn without_positions(path: &str) -> String {
    let mut inside = false;
    path.chars()
        .filter(|&c| {
            inside = c == '[' || (inside && c != ']');
            !inside || c == '['
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_their_positions() {
        assert_eq!(without_positions("a[12].b[0]"), "a[].b[]");
        assert_eq!(without_positions("a.b"), "a.b");
    }
}
