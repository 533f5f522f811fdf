//! The patterns that text must match, as the CustomResourceDefinitions write them.

use crate::names::{is_dns_label, is_label_text};

/// A pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// A DNS subdomain, of any length.
    Subdomain,
    /// A DNS label, of any length.
    Label,
    /// A label key: an optional DNS subdomain and `/`, then a name.
    LabelKey,
    /// A DNS label that begins with a letter, in any case.
    KindName,
    /// The reason of a condition.
    Reason,
}

impl Pattern {
    /// The regular expression, for messages.
    pub(crate) fn expression(self) -> &'static str {
        match self {
            Pattern::Subdomain => r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
            Pattern::Label => "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$",
            Pattern::LabelKey => {
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            }
            Pattern::KindName => "^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$",
            Pattern::Reason => "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        }
    }

    /// Does the text match? By hand: every name of every object is asked about, and an engine for expressions takes a
    /// hundred times as long.
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Pattern::Subdomain => text.split('.').all(is_dns_label),
            Pattern::Label => is_dns_label(text),
            Pattern::LabelKey => match text.split_once('/') {
                Some((prefix, name)) => Pattern::Subdomain.matches(prefix) && !name.is_empty() && is_label_text(name),
                None => !text.is_empty() && is_label_text(text),
            },
            Pattern::KindName => {
                text.starts_with(|c: char| c.is_ascii_alphabetic()) && is_dns_label(&text.to_ascii_lowercase())
            }
            Pattern::Reason => {
                text.starts_with(|c: char| c.is_ascii_alphabetic())
                    && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_,:".contains(&b))
                    && !text.ends_with([',', ':'])
            }
        }
    }
}

/// The pattern of a quantity field, for messages.
pub(crate) const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// Does the text match [`QUANTITY`]?
pub(crate) fn is_quantity(text: &str) -> bool {
    let Some(suffix) = after_number(text) else { return false };
    match suffix {
        "" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" => true,
        _ => suffix.strip_prefix(['e', 'E']).and_then(after_number) == Some(""),
    }
}

/// What follows a signed decimal number, if there is one.
fn after_number(text: &str) -> Option<&str> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let rest = unsigned.trim_start_matches(|c: char| c.is_ascii_digit());
    let n_whole = unsigned.len() - rest.len();
    let Some(fraction) = rest.strip_prefix('.') else { return (n_whole > 0).then_some(rest) };
    let rest = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    (n_whole > 0 || rest.len() < fraction.len()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use regex_lite::Regex;

    use super::*;
    use crate::names::tests::short_texts;

    #[test]
    fn patterns_match_what_their_expressions_match() {
        for pattern in [Pattern::Subdomain, Pattern::Label, Pattern::LabelKey, Pattern::KindName, Pattern::Reason] {
            let expression = Regex::new(pattern.expression()).unwrap();
            for text in short_texts("aZ0-._/:é") {
                assert_eq!(pattern.matches(&text), expression.is_match(&text), "{pattern:?} {text:?}");
            }
        }
    }

    #[test]
    fn quantities_match_their_expression() {
        let expression = Regex::new(QUANTITY).unwrap();
        for text in short_texts("1.+-eEKim ") {
            assert_eq!(is_quantity(&text), expression.is_match(&text), "{text:?}");
        }
    }
}
