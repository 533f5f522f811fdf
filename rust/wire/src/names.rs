//! Syntax of names and label keys, with the API server's error texts.
//!
//! Every function returns the errors as sentences without a subject; empty means valid. Lengths are in bytes.

const LABEL_KEY: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const LABEL_VALUE: &str = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?";
const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const C_IDENTIFIER: &str = "[A-Za-z_][A-Za-z0-9_]*";

/// A label key: an optional DNS subdomain and `/`, then a name of at most 63 bytes.
#[must_use]
pub fn label_key_errors(key: &str) -> Vec<String> {
    let shape = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric \
                 character";
    let shape = pattern(shape, LABEL_KEY, &["MyName", "my.name", "123-abc"]);
    let mut errors = Vec::new();
    let name = match key.split_once('/') {
        None => key,
        Some((_, name)) if name.contains('/') => {
            let example = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a valid label key {shape}{example}")];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push("prefix part must be non-empty".to_owned());
            }
            if !prefix.is_empty() {
                errors.extend(
                    subdomain_errors(prefix, too_many_bytes).iter().map(|error| format!("prefix part {error}")),
                );
            }
            name
        }
    };
    if name.is_empty() {
        errors.push("name part must be non-empty".to_owned());
    } else if name.len() > 63 {
        errors.push(format!("name part {}", too_many_bytes(63)));
    }
    if name.is_empty() || !is_label_text(name) {
        errors.push(format!("name part {shape}"));
    }
    errors
}

/// A label value: empty, or like the name of a label key, at most 63 bytes.
#[must_use]
pub fn label_value_errors(value: &str) -> Vec<String> {
    let shape = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
                 start and end with an alphanumeric character";
    let shape = || pattern(shape, LABEL_VALUE, &["MyValue", "my_value", "12345"]);
    complaints(value, 63, too_many_bytes, is_label_text(value), shape)
}

/// A DNS label in lower case of at most 63 bytes.
#[must_use]
pub fn dns1123_label_errors(value: &str) -> Vec<String> {
    let shape = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start \
                 and end with an alphanumeric character";
    let shape = || match value.split('.').all(is_dns_label) {
        true => "must not contain dots".to_owned(),
        false => pattern(shape, DNS1123_LABEL, &["my-name", "123-abc"]),
    };
    complaints(value, 63, too_many_characters, is_dns_label(value), shape)
}

/// DNS labels joined by dots, at most 253 bytes.
#[must_use]
pub fn dns1123_subdomain_errors(value: &str) -> Vec<String> {
    subdomain_errors(value, too_many_characters)
}

fn subdomain_errors(value: &str, too_long: fn(usize) -> String) -> Vec<String> {
    let shape = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and \
                 must start and end with an alphanumeric character";
    let well_formed = value.split('.').all(is_dns_label);
    complaints(value, 253, too_long, well_formed, || pattern(shape, DNS1123_SUBDOMAIN, &["example.com"]))
}

/// A DNS label of at most 63 bytes that starts with a letter.
#[must_use]
pub fn dns1035_label_errors(value: &str) -> Vec<String> {
    let shape = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
                 character, and end with an alphanumeric character";
    let well_formed = is_dns_label(value) && value.starts_with(|c: char| c.is_ascii_lowercase());
    let shape = || pattern(shape, DNS1035_LABEL, &["my-name", "abc-123"]);
    complaints(value, 63, too_many_characters, well_formed, shape)
}

/// A C identifier of any length.
#[must_use]
pub fn c_identifier_errors(value: &str) -> Vec<String> {
    let shape = "a valid C identifier must start with alphabetic character or '_', followed by a string of \
                 alphanumeric characters or '_'";
    let well_formed = value.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let shape = || pattern(shape, C_IDENTIFIER, &["my_name", "MY_NAME", "MyName"]);
    complaints(value, usize::MAX, too_many_bytes, well_formed, shape)
}

fn complaints(
    value: &str,
    max: usize,
    too_long: fn(usize) -> String,
    well_formed: bool,
    shape: impl FnOnce() -> String,
) -> Vec<String> {
    let mut errors = Vec::new();
    if value.len() > max {
        errors.push(too_long(max));
    }
    if !well_formed {
        errors.push(shape());
    }
    errors
}

/// The message for a text that does not match: the rule, examples, and the pattern.
fn pattern(shape: &str, regex: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{shape} (e.g. {}regex used for validation is '{regex}')", examples.join(" or "))
}

// Lengths are always in bytes, though the API server says "bytes" only for keys and values and "characters" for names.
fn too_many_bytes(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn too_many_characters(max: usize) -> String {
    format!("must be no more than {max} characters")
}

/// Empty, or letters, digits, `-`, `_` and `.` with a letter or digit at both ends.
pub(crate) fn is_label_text(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b)) && ends_are_alphanumeric(text)
}

/// Lower-case letters, digits and `-`, which stands at neither end; of any length.
pub(crate) fn is_dns_label(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && ends_are_alphanumeric(text)
}

fn ends_are_alphanumeric(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_alphanumeric();
    text.is_empty() || (text.starts_with(alphanumeric) && text.ends_with(alphanumeric))
}

#[cfg(test)]
pub(crate) mod tests {
    use regex_lite::Regex;

    use super::*;

    /// All texts of up to four of these characters.
    pub(crate) fn short_texts(alphabet: &str) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut from = 0;
        for _ in 0..4 {
            let to = texts.len();
            let longer = texts[from..to].iter().flat_map(|text| alphabet.chars().map(move |c| format!("{text}{c}")));
            let longer: Vec<String> = longer.collect();
            texts.extend(longer);
            from = to;
        }
        texts
    }

    #[test]
    fn names_are_well_formed_if_they_match_the_pattern_that_is_named() {
        type Errors = fn(&str) -> Vec<String>;
        let table: [(Errors, &str); 5] = [
            (label_value_errors, LABEL_VALUE),
            (dns1123_label_errors, DNS1123_LABEL),
            (dns1123_subdomain_errors, DNS1123_SUBDOMAIN),
            (dns1035_label_errors, DNS1035_LABEL),
            (c_identifier_errors, C_IDENTIFIER),
        ];
        for (errors, pattern) in table {
            let expression = Regex::new(&format!("^{pattern}$")).unwrap();
            for text in short_texts("aZ0-._/:é") {
                assert_eq!(errors(&text).is_empty(), expression.is_match(&text), "{pattern} {text:?}");
            }
        }
    }

    #[test]
    fn well_formed_names_pass() {
        let long = "a".repeat(63);
        for key in ["a", "A.b_c-1", "example.com/gpu", &long] {
            assert_eq!(label_key_errors(key), [""; 0], "{key}");
        }
        for value in ["", "x", "My_value.1"] {
            assert_eq!(label_value_errors(value), [""; 0], "{value}");
        }
        assert_eq!(dns1123_subdomain_errors("a.b-c.d0"), [""; 0]);
        assert_eq!(dns1123_label_errors("0a-b"), [""; 0]);
        assert_eq!(dns1035_label_errors("a-0"), [""; 0]);
        assert_eq!(c_identifier_errors("_a1"), [""; 0]);
    }

    #[test]
    fn malformed_names_get_a_reason() {
        let long = "a".repeat(64);
        let label_key = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end \
                         with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for \
                         validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        assert_eq!(label_key_errors(""), ["name part must be non-empty", label_key]);
        assert_eq!(label_key_errors("/x"), ["prefix part must be non-empty"]);
        assert_eq!(label_key_errors("a/-x"), [label_key]);
        assert_eq!(label_key_errors(&long), ["name part must be no more than 63 bytes"]);
        assert!(label_key_errors("a/b/c")[0].ends_with("prefix and '/' (e.g. 'example.com/MyName')"));
        assert!(label_key_errors("A/b")[0].starts_with("prefix part a lowercase RFC 1123 subdomain must"));
        assert_eq!(label_value_errors(&long), ["must be no more than 63 bytes"]);
        for bad in ["-a", "a.", "a b"] {
            assert_eq!(label_value_errors(bad).len(), 1, "{bad}");
        }
        for bad in ["", "A", "a..b", "a-", "é"] {
            assert_eq!(dns1123_subdomain_errors(bad).len(), 1, "{bad}");
        }
        assert_eq!(dns1123_label_errors("a.b").len(), 1);
        assert_eq!(dns1035_label_errors("0a").len(), 1);
        assert_eq!(c_identifier_errors("1a").len(), 1);
    }
}
