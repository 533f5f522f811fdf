//! Field errors as the Kubernetes API server renders them: `PATH: KIND: DETAIL` (rules/01, head).

use std::borrow::Cow;
use std::fmt;

use kueuecore::objects::Object;
use serde_json::Value;

use crate::go_json;

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// A value that cannot stand there.
    Invalid,
    /// A value that another entry has too.
    Duplicate,
    /// A value outside an enumeration; the detail lists the supported ones.
    Unsupported,
    /// A value that must be given.
    Required,
    /// A field that may not be set.
    Forbidden,
    /// A reference to something that is not there.
    NotFound,
    /// A list that is too long.
    TooMany,
    /// A text that is too long.
    TooLong,
    /// A value of the wrong type; reads like [`ErrorKind::Invalid`].
    TypeInvalid,
}

impl ErrorKind {
    /// The words of the API server.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Unsupported => "Unsupported value",
            ErrorKind::Required => "Required value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::NotFound => "Not found",
            ErrorKind::TooMany => "Too many",
            ErrorKind::TooLong => "Too long",
        }
    }
}

/// How the API server names the path of a whole object, and of what it has no path for.
pub const WHOLE: &str = "<nil>";

/// One complaint about one field. `Display` gives the API server's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Path from the object's root, as in `spec.podSets[0].count`; empty for the object as a whole.
    pub path: String,
    /// What is wrong.
    pub kind: ErrorKind,
    /// The offending value as rendered: numbers and booleans plain, strings quoted, the rest as JSON.
    pub value: Option<String>,
    /// What would be right; may be empty.
    pub detail: String,
}

impl FieldError {
    /// An invalid value, already rendered by [`quoted`] or [`rendered`].
    pub fn invalid(path: impl Into<String>, value: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Invalid, value: Some(value.into()), detail: detail.into() }
    }

    /// An invalid part of which no value is shown.
    pub fn unshown(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Invalid, value: None, detail: detail.into() }
    }

    /// A value that stands there twice.
    pub fn duplicate(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Duplicate, value: Some(value.into()), detail: String::new() }
    }

    /// A value that is not one of `supported`.
    pub fn unsupported<S: AsRef<str>>(path: impl Into<String>, value: impl Into<String>, supported: &[S]) -> Self {
        let list: Vec<String> = supported.iter().map(|s| quoted(s.as_ref())).collect();
        let detail = if list.is_empty() { String::new() } else { format!("supported values: {}", list.join(", ")) };
        Self { path: path.into(), kind: ErrorKind::Unsupported, value: Some(value.into()), detail }
    }

    /// A value that is missing.
    pub fn required(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Required, value: None, detail: detail.into() }
    }

    /// A field that may not be set (so).
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Forbidden, value: None, detail: detail.into() }
    }

    /// A reference to something that is not there.
    pub fn not_found(path: impl Into<String>, value: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::NotFound, value: Some(value.into()), detail: String::new() }
    }

    /// A list of `actual` entries where `max` are allowed.
    pub fn too_many(path: impl Into<String>, actual: usize, max: usize) -> Self {
        let noun = if max == 1 { "item" } else { "items" };
        Self {
            path: path.into(),
            kind: ErrorKind::TooMany,
            value: Some(actual.to_string()),
            detail: format!("must have at most {max} {noun}"),
        }
    }
}

impl FieldError {
    /// A text of more than `max` characters; the text is not shown.
    pub fn too_long(path: impl Into<String>, max: usize) -> Self {
        let noun = if max == 1 { "byte" } else { "bytes" };
        Self {
            path: path.into(),
            kind: ErrorKind::TooLong,
            value: None,
            detail: format!("may not be more than {max} {noun}"),
        }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(self.kind.text())?;
        if let Some(value) = &self.value {
            write!(f, ": {}", shortened(value))?;
        }
        if !self.detail.is_empty() {
            write!(f, ": {}", self.detail)?;
        }
        Ok(())
    }
}

/// Which object a rejection or warning is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRef {
    /// Group and version as given.
    pub api_version: String,
    /// Kind as given.
    pub kind: String,
    /// Namespace as given; empty for none.
    pub namespace: String,
    /// Name as given; empty for none.
    pub name: String,
}

/// An object that was refused, with everything that is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Position of the object in the batch, lists flattened.
    pub index: usize,
    /// The object.
    pub object: ObjectRef,
    /// At least one error.
    pub errors: Vec<FieldError>,
    /// What else is odd about the object: a field that nobody knows may be the one that is missed.
    pub warnings: Vec<Warning>,
}

/// So many fields of one object are warned of by name; of the rest, the number is given.
pub(crate) const MAX_WARNINGS: usize = 100;

/// A field that was ignored, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// The object.
    pub object: ObjectRef,
    /// Position of the object in the batch.
    pub index: usize,
    /// Path of the field.
    pub field: String,
    /// What is odd about it, and what may have been meant.
    pub message: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.object.kind.is_empty(), self.object.name.is_empty()) {
            (true, _) => write!(f, "object {}", self.index)?,
            (false, true) => write!(f, "{} (object {})", self.object.kind, self.index)?,
            (false, false) => write!(f, "{} {}", self.object.kind, shortened(&quoted(&self.object.name)))?,
        }
        write!(f, " is invalid: {}", joined(&self.errors))
    }
}

impl std::error::Error for Rejection {}

/// Several errors as one text: one plain, more as `[a, b]`.
#[must_use]
pub fn joined(errors: &[FieldError]) -> String {
    match errors {
        [one] => one.to_string(),
        many => {
            let texts: Vec<String> = many.iter().map(ToString::to_string).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

/// A string in quotes, escaped as Go's `%q` does.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{b}' => out.push_str("\\v"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => out.push_str(&format!("\\x{:02x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// So many characters of a value are shown.
const MAX_SHOWN: usize = 256;

/// A text as an error shows it: of a long one the beginning, and how long it is.
#[must_use]
pub fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => Cow::from(format!("{}... ({} characters)", &text[..end], text.chars().count())),
        None => Cow::from(text),
    }
}

/// A JSON value as field errors show it.
#[must_use]
pub fn rendered(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Number(number) => go_json::plain_number(number),
        other => go_json::json(other),
    }
}

/// The kind of a decoded object and what all objects carry.
#[must_use]
pub fn object_ref(object: &Object) -> ObjectRef {
    let kind = crate::decode::kind_of(object);
    let (namespace, name) = crate::decode::names_of(object);
    ObjectRef {
        api_version: kind.preferred_version().to_owned(),
        kind: kind.name().to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn errors_read_as_the_api_server_prints_them() {
        let table = [
            (
                FieldError::invalid("spec.a", "-1", "must be greater than or equal to 0"),
                "spec.a: Invalid value: -1: must be greater than or equal to 0",
            ),
            (FieldError::unshown("spec", "no"), "spec: Invalid value: no"),
            (FieldError::duplicate("spec.a[1]", quoted("x")), "spec.a[1]: Duplicate value: \"x\""),
            (
                FieldError::unsupported("spec.a", quoted("x"), &["y", "z"]),
                "spec.a: Unsupported value: \"x\": supported values: \"y\", \"z\"",
            ),
            (FieldError::required("spec.a", ""), "spec.a: Required value"),
            (FieldError::forbidden("spec.a", "no"), "spec.a: Forbidden: no"),
            (FieldError::not_found("spec.a", quoted("x")), "spec.a: Not found: \"x\""),
            (FieldError::too_many("spec.a", 17, 16), "spec.a: Too many: 17: must have at most 16 items"),
        ];
        for (error, text) in table {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn values_are_plain_quoted_or_json() {
        let table = [
            (json!(3), "3"),
            (json!(true), "true"),
            (json!("a\"b\n"), "\"a\\\"b\\n\""),
            (json!({"b": 1, "a": [null]}), "{\"a\":[null],\"b\":1}"),
            (json!(null), "null"),
        ];
        for (value, text) in table {
            assert_eq!(rendered(&value), text);
        }
    }

    #[test]
    fn of_a_long_value_the_beginning_is_shown() {
        let error = FieldError::invalid("spec.a", quoted(&"ä".repeat(5000)), "must be short");
        let shown = format!("spec.a: Invalid value: \"{}... (5002 characters): must be short", "ä".repeat(255));
        assert_eq!(error.to_string(), shown);
        assert_eq!(shortened(&"x".repeat(256)), "x".repeat(256));
    }

    #[test]
    fn a_rejection_names_the_object_and_lists_all_errors() {
        let mut rejection = Rejection {
            index: 2,
            object: ObjectRef { kind: "ClusterQueue".into(), name: "team-a".into(), ..ObjectRef::default() },
            errors: vec![FieldError::required("spec.a", "")],
            warnings: Vec::new(),
        };
        assert_eq!(rejection.to_string(), "ClusterQueue \"team-a\" is invalid: spec.a: Required value");
        rejection.errors.push(FieldError::required("spec.b", "b"));
        rejection.object.name.clear();
        assert_eq!(
            rejection.to_string(),
            "ClusterQueue (object 2) is invalid: [spec.a: Required value, spec.b: Required value: b]"
        );
    }
}
