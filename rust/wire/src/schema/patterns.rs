//! The patterns that text must match, as the CustomResourceDefinitions write them.

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

    /// Does the text match?
    pub(crate) fn matches(self, text: &str) -> bool {
        match self {
            Pattern::Subdomain => text.split('.').all(is_label),
            Pattern::Label => is_label(text),
            Pattern::LabelKey => match text.split_once('/') {
                Some((prefix, name)) => Pattern::Subdomain.matches(prefix) && is_name(name),
                None => is_name(text),
            },
            Pattern::KindName => {
                text.starts_with(|c: char| c.is_ascii_alphabetic()) && is_label(&text.to_ascii_lowercase())
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

fn is_label(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
}

fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_what_their_expressions_say() {
        let table: [(Pattern, &[&str], &[&str]); 5] = [
            (Pattern::Subdomain, &["a", "a-b.c0"], &["", "A", "a.", ".a", "-a", "a..b", "a_b", "ä"]),
            (Pattern::Label, &["a", "0-a"], &["", "a.b", "a-", "A"]),
            (Pattern::LabelKey, &["a", "A_b.c", "x.y/Z"], &["", "/a", "a/", "a/b/c", "X/a", "_a"]),
            (Pattern::KindName, &["Kind", "a1"], &["", "1a", "a-", "a_b"]),
            (Pattern::Reason, &["A", "A_b,c:d"], &["", "1", "a,", "a b"]),
        ];
        for (pattern, good, bad) in table {
            for text in good {
                assert!(pattern.matches(text), "{pattern:?} {text}");
            }
            for text in bad {
                assert!(!pattern.matches(text), "{pattern:?} {text}");
            }
        }
    }

    #[test]
    fn quantities_match_their_expression() {
        for text in ["1", "-1.5", "+.5", "1.", "1Ki", "1k", "1e3", "1E-3", "1e.5", "100m"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", ".", "1K", "1 ", "1e", "Ki", "--1", "1ee3", "1e3Ki", "a"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
