//! Field errors as the Kubernetes API server renders them: `PATH: KIND: DETAIL` (rules/01, head).

use std::borrow::Cow;
use std::fmt;

use kueuecore::objects::Object;
use serde_json::Value;

use crate::go_json;
use crate::kinds::names_of;

/// What is wrong with a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// A value that is not allowed here.
    Invalid,
    /// A value that another entry has too.
    Duplicate,
    /// A value outside an enumeration; the detail lists the supported ones.
    Unsupported,
    /// A value that must be given.
    Required,
    /// A field that may not be set.
    Forbidden,
    /// A reference to something that does not exist.
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

impl ErrorKind {
    /// The reason of a cause in a `Status` of the API server.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Unsupported => "FieldValueNotSupported",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }
}

/// How the API server shows the path of a whole object, or of something without a path.
pub const WHOLE: &str = "<nil>";

/// One error about one field. `Display` gives the API server's text.
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

    /// An invalid part whose value is not shown.
    pub fn unshown(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Invalid, value: None, detail: detail.into() }
    }

    /// A value that occurs twice.
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

    /// A field that may not be set, or not to this value.
    pub fn forbidden(path: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { path: path.into(), kind: ErrorKind::Forbidden, value: None, detail: detail.into() }
    }

    /// A reference to something that does not exist.
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

impl FieldError {
    /// What the API server says after the path.
    #[must_use]
    pub fn message(&self) -> String {
        let mut text = self.kind.text().to_owned();
        if let Some(value) = &self.value {
            text += &format!(": {}", shortened(value));
        }
        if !self.detail.is_empty() {
            text += &format!(": {}", self.detail);
        }
        escaped(&text)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "{}: ", escaped(&self.path))?;
        }
        f.write_str(&self.message())
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

/// A rejected object, with all its errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// Position of the object in the batch, lists flattened.
    pub index: usize,
    pub object: ObjectRef,
    /// At least one error.
    pub errors: Vec<FieldError>,
    /// Other oddities of the object: an unknown field may be the misspelled one that is missing.
    pub warnings: Vec<Warning>,
}

/// At most this many fields of one object are listed in warnings; the rest are counted.
pub(crate) const MAX_WARNINGS: usize = 100;

/// A field that was ignored, in whole or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    pub object: ObjectRef,
    /// Position of the object in the batch.
    pub index: usize,
    /// Path of the field.
    pub field: String,
    /// What is odd about it, and a suggestion.
    pub message: String,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.object.kind.is_empty(), self.object.name.is_empty()) {
            (true, _) => write!(f, "object {}", self.index)?,
            (false, true) => write!(f, "{} (object {})", escaped(&self.object.kind), self.index)?,
            (false, false) => {
                write!(f, "{} {}", escaped(&self.object.kind), shortened(&quoted(&self.object.name)))?;
            }
        }
        write!(f, " is invalid: {}", joined(&self.errors))
    }
}

impl std::error::Error for Rejection {}

/// Several errors as one text: a single one plain, more as `[a, b]`.
#[must_use]
fn joined(errors: &[FieldError]) -> String {
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
            '"' | '\\' => out.extend(['\\', c]),
            c => push_escaped(&mut out, c),
        }
    }
    out.push('"');
    out
}

/// The original of a [`quoted`] text; `None` if it is not quoted that way.
#[must_use]
pub fn unquoted(quoted: &str) -> Option<String> {
    let mut rest = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut out = String::with_capacity(rest.len());
    while let Some(c) = rest.chars().next() {
        let (unit, behind) = rest.split_at(unit_len(rest));
        rest = behind;
        match (c, unit.get(1..2)) {
            ('\\', Some("x" | "u" | "U")) => out.push(char::from_u32(u32::from_str_radix(&unit[2..], 16).ok()?)?),
            ('\\', None) => return None,
            ('\\', Some(letter)) => {
                let escape = ESCAPES.iter().find(|(_, name)| name == &letter);
                out.push_str(escape.map_or(letter, |(c, _)| c));
            }
            _ => out.push(c),
        }
    }
    Some(out)
}

/// A text on one line, with everything unprintable (controls, line ends, text direction) escaped as Go's `%q` does.
/// `kueuecore._text` does the same in Python.
#[must_use]
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().for_each(|c| push_escaped(&mut out, c));
    out
}

const ESCAPES: [(&str, &str); 7] =
    [("\u{7}", "a"), ("\u{8}", "b"), ("\t", "t"), ("\n", "n"), ("\u{b}", "v"), ("\u{c}", "f"), ("\r", "r")];

fn push_escaped(out: &mut String, c: char) {
    let start = out.len();
    out.push(c);
    if is_printable(c) {
        return;
    }
    let escape = match ESCAPES.iter().find(|(it, _)| *it == &out[start..]) {
        Some((_, letter)) => format!("\\{letter}"),
        None if c.is_ascii() => format!("\\x{:02x}", c as u32),
        None if (c as u32) < 0x10000 => format!("\\u{:04x}", c as u32),
        None => format!("\\U{:08x}", c as u32),
    };
    out.replace_range(start.., &escape);
}

/// Whether a character is printable, as Go's `unicode.IsPrint` says.
#[must_use]
pub fn is_printable(c: char) -> bool {
    if c.is_ascii() {
        return c == ' ' || c.is_ascii_graphic();
    }
    // `escape_debug` handles the others, but leaves marks alone unless they come first.
    let mut text = String::from("x");
    text.push(c);
    text.escape_debug().nth(1) == Some(c)
}

/// How many characters of a name or a value are shown; no name in Kubernetes is longer.
const LONGEST: usize = 253;

/// A name or value as errors show it: cut if longer than any Kubernetes name can be. If a slash joins two (namespace
/// and name, prefix and name of a label), each is cut. An escape counts as one character.
#[must_use]
pub fn shortened(value: &str) -> Cow<'_, str> {
    if value.len() <= LONGEST {
        return Cow::from(value);
    }
    let inner = value.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
    let (quote, text) = inner.map_or(("", value), |inner| ("\"", inner));
    let shown = match text.split_once('/') {
        Some((before, after)) if !after.contains('/') => format!("{}/{}", beginning(before), beginning(after)),
        _ => beginning(text).into_owned(),
    };
    Cow::from(format!("{quote}{shown}{quote}"))
}

fn beginning(text: &str) -> Cow<'_, str> {
    let mut rest = text;
    for _ in 0..LONGEST {
        rest = &rest[unit_len(rest)..];
    }
    if rest.is_empty() { Cow::from(text) } else { Cow::from(format!("{}...", &text[..text.len() - rest.len()])) }
}

/// Length of the character or escape that an escaped text begins with.
fn unit_len(escaped: &str) -> usize {
    let n_chars = match escaped.as_bytes() {
        [b'\\', b'x', ..] => 4,
        [b'\\', b'u', ..] => 6,
        [b'\\', b'U', ..] => 10,
        [b'\\', ..] => 2,
        _ => 1,
    };
    escaped.char_indices().nth(n_chars).map_or(escaped.len(), |(end, _)| end)
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
    let kind = object.kind();
    let (namespace, name) = names_of(object);
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
    fn long_values_are_shortened() {
        let error = FieldError::invalid("spec.a", quoted(&"ä".repeat(5000)), "must be short");
        let shown = format!("spec.a: Invalid value: \"{}...\": must be short", "ä".repeat(253));
        assert_eq!(error.to_string(), shown);
        let longest = quoted(&"\u{1b}".repeat(253));
        assert_eq!(shortened(&longest), longest);
        assert_eq!(shortened(&quoted(&"\u{1b}".repeat(254))), format!("\"{}...\"", r"\x1b".repeat(253)));
        assert_eq!(shortened(&"1".repeat(254)), format!("{}...", "1".repeat(253)));
        let key = format!("\"{}/{}\"", "p".repeat(253), "n".repeat(63));
        assert_eq!(shortened(&key), key);
    }

    #[test]
    fn unprintable_characters_are_escaped_as_in_go() {
        let table = [
            ("a\u{7}\u{8}\t\n\u{b}\u{c}\r", r"a\a\b\t\n\v\f\r"),
            ("\0\u{1b}[2J\u{7f}", r"\x00\x1b[2J\x7f"),
            ("\u{85}\u{9b}\u{2028}\u{202e}\u{feff}", r"\u0085\u009b\u2028\u202e\ufeff"),
            ("\u{e0041}", r"\U000e0041"),
            ("Grüße, 世界 e\u{301} 🚀 it's", "Grüße, 世界 e\u{301} 🚀 it's"),
        ];
        for (text, shown) in table {
            assert_eq!(escaped(text), shown);
            assert_eq!(quoted(text), format!("\"{shown}\""));
            assert_eq!(unquoted(&quoted(text)).as_deref(), Some(text));
        }
        assert_eq!(quoted(r#"a\"b"#), r#""a\\\"b""#);
        assert_eq!(unquoted(r#""a\\\"b""#).as_deref(), Some(r#"a\"b"#));
        assert_eq!(unquoted("12"), None);
        let error = FieldError::unshown("metadata.labels.a\nb", "not so\u{1b}");
        assert_eq!(error.to_string(), r"metadata.labels.a\nb: Invalid value: not so\x1b");
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
