//! JSON values formatted as Go does, which is how API servers show rejected values (rules/01 §10 9).

use std::fmt::Write;
use std::ops::Range;

use serde_json::{Number, Value};

/// A number as Go's `%v` prints it.
pub(crate) fn plain_number(number: &Number) -> String {
    float_of(number).map_or_else(|| number.to_string(), |float| number_text(float, -4..6, 2))
}

/// A value as Go's `encoding/json` writes it: keys sorted, HTML characters escaped.
pub(crate) fn json(value: &Value) -> String {
    let mut out = String::new();
    push(value, &mut out);
    out
}

fn push(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => match float_of(number) {
            Some(float) => out.push_str(&number_text(float, -6..21, 1)),
            None => out.push_str(&number.to_string()),
        },
        Value::String(text) => push_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                push(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                out.push_str(if i > 0 { "," } else { "" });
                push_text(name, out);
                out.push(':');
                push(value, out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) => out.push_str(&value.to_string()),
    }
}

fn push_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' | '\0'..='\u{1f}' => {
                write!(out, "\\u{:04x}", c as u32).expect("a String takes all");
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

/// Go treats every number that is not a 64-bit integer as a float.
fn float_of(number: &Number) -> Option<f64> {
    number.as_f64().filter(|_| !number.is_i64())
}

/// The fewest digits that identify a float, with an exponent only outside `plain`.
fn number_text(float: f64, plain: Range<i32>, least_width: usize) -> String {
    let text = format!("{float:e}");
    let (digits, exponent) = text.split_once('e').expect("written with an exponent");
    let exponent: i32 = exponent.parse().expect("a small number");
    if float == 0.0 || plain.contains(&exponent) {
        return float.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:0least_width$}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_read_as_in_go() {
        let table = [
            (json!(-5), "-5", "-5"),
            (json!(-0.0), "-0", "-0"),
            (json!(1.5), "1.5", "1.5"),
            (json!(123456.0), "123456", "123456"),
            (json!(1_234_567.0), "1.234567e+06", "1234567"),
            (json!(1e21), "1e+21", "1e+21"),
            (json!(0.0001), "0.0001", "0.0001"),
            (json!(1e-5), "1e-05", "0.00001"),
            (json!(1e-7), "1e-07", "1e-7"),
            (json!(1e308), "1e+308", "1e+308"),
            (json!(u64::MAX), "1.8446744073709552e+19", "18446744073709552000"),
        ];
        for (value, plain, in_json) in table {
            let Value::Number(number) = &value else { panic!("{value} is no number") };
            assert_eq!(plain_number(number), plain);
            assert_eq!(json(&value), in_json);
        }
    }

    #[test]
    fn html_characters_are_escaped() {
        let value = json!({"b": ["<&>\u{2028}\"\\\n\u{1}ä", null], "a": true});
        assert_eq!(json(&value), r#"{"a":true,"b":["\u003c\u0026\u003e\u2028\"\\\n\u0001ä",null]}"#);
    }
}
