//! JSON with fields in a given order, as the command writes it.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

/// A JSON value whose objects keep the order of their fields.
#[derive(Clone, Debug)]
pub enum Json {
    Plain(Value),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// The same with `null` for an empty text.
    pub fn text_or_null(text: &str) -> Self {
        if text.is_empty() { Self::Plain(Value::Null) } else { Self::from(text) }
    }
}

impl<T: Into<Value>> From<T> for Json {
    fn from(value: T) -> Self {
        Self::Plain(value.into())
    }
}

impl FromIterator<Json> for Json {
    fn from_iter<I: IntoIterator<Item = Json>>(items: I) -> Self {
        Self::List(items.into_iter().collect())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Plain(value) => value.serialize(serializer),
            Self::List(items) => serializer.collect_seq(items),
            Self::Object(fields) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in fields {
                    map.serialize_entry(name, value)?;
                }
                map.end()
            }
        }
    }
}

/// The fields of a row in a given order; absent ones are null.
pub fn ordered(row: &Value, fields: &[&'static str]) -> Json {
    Json::Object(fields.iter().map(|field| (*field, Json::Plain(row[*field].clone()))).collect())
}

/// The items of an array; none of anything else.
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The text at a path of fields; empty if there is none.
pub fn text_at<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    path.iter().fold(value, |value, field| &value[*field]).as_str().unwrap_or_default()
}

/// JSON text as the command writes it: indented by two, and nothing outside ASCII.
pub fn pretty(json: &Json) -> String {
    let text = serde_json::to_string_pretty(json).expect("its keys are texts");
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if c < '\u{7f}' {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_and_text_is_ascii() {
        let json = Json::Object(vec![("z", Json::from("§\u{1f680}\u{7f}")), ("a", Json::List(Vec::new()))]);
        assert_eq!(pretty(&json), "{\n  \"z\": \"\\u00a7\\ud83d\\ude80\\u007f\",\n  \"a\": []\n}\n");
    }
}
