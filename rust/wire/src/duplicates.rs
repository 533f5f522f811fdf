//! Parses JSON to a value and reports keys that occur twice in an object; the last one counts.

use std::collections::BTreeSet;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Reads one JSON value and returns the paths of duplicate fields, each once.
///
/// # Errors
/// Invalid JSON.
pub(crate) fn read(json: &[u8]) -> Result<(Value, Vec<String>), serde_json::Error> {
    let mut duplicates = Vec::new();
    let mut reader = serde_json::Deserializer::from_slice(json);
    let value = Tree { duplicates: &mut duplicates }.deserialize(&mut reader)?;
    reader.end()?;
    let mut seen = BTreeSet::new();
    let paths = duplicates.into_iter().map(|segments| {
        let path: String = segments.into_iter().rev().collect();
        path.strip_prefix('.').map(str::to_owned).unwrap_or(path)
    });
    let paths = paths.filter(|path| seen.insert(path.clone())).collect();
    Ok((value, paths))
}

/// The seed and visitor that builds a value.
struct Tree<'a> {
    /// Each as the segments of its path, last one first: they are built only for duplicates.
    duplicates: &'a mut Vec<Vec<String>>,
}

impl Tree<'_> {
    fn inner(&mut self) -> Tree<'_> {
        Tree { duplicates: self.duplicates }
    }

    /// Prepends this segment to the paths found since there were `n`.
    fn lies_below(&mut self, n: usize, segment: impl Fn() -> String) {
        for path in &mut self.duplicates[n..] {
            path.push(segment());
        }
    }
}

impl<'de> DeserializeSeed<'de> for Tree<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Tree<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            let n = self.duplicates.len();
            let Some(item) = seq.next_element_seed(self.inner())? else { return Ok(Value::Array(items)) };
            self.lies_below(n, || format!("[{}]", items.len()));
            items.push(item);
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let n = self.duplicates.len();
            let value = map.next_value_seed(self.inner())?;
            if fields.contains_key(&key) {
                self.duplicates.push(Vec::new());
            }
            self.lies_below(n, || format!(".{key}"));
            fields.insert(key, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_of_equal_keys_counts_and_all_are_named_once() {
        let text = r#"{"a": 1, "b": [{}, {"c": {"d": 1, "d": 2, "d": 3}}], "a": {"x": null}}"#;
        let (value, paths) = read(text.as_bytes()).expect("JSON");
        assert_eq!(value, json!({"a": {"x": null}, "b": [{}, {"c": {"d": 3}}]}));
        assert_eq!(paths, ["b[1].c.d", "a"]);
    }

    #[test]
    fn json_without_duplicate_keys_reads_as_serde_does() {
        for text in ["null", "[1, -2, 1.5, true, \"x\"]", r#"{"a": {"b": [18446744073709551615]}}"#] {
            let expected: Value = serde_json::from_str(text).expect("JSON");
            assert_eq!(read(text.as_bytes()).expect("JSON"), (expected, Vec::new()));
        }
        assert!(read(b"{} {}").is_err() && read(b"[").is_err());
    }
}
