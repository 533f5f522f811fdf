//! Text that is often copied and never changed: names, and types, reasons and messages of conditions.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// A string constant of the program, or text that all copies share.
#[derive(Clone)]
pub enum Text {
    /// A constant.
    Static(&'static str),
    /// Text from outside, or built at run time.
    Shared(Arc<str>),
}

impl Text {
    /// A shared copy of a text.
    pub fn copied(text: &str) -> Self {
        Text::Shared(text.into())
    }

    /// The text as a shared string.
    pub fn shared(&self) -> Arc<str> {
        match self {
            Text::Static(text) => (*text).into(),
            Text::Shared(text) => Arc::clone(text),
        }
    }

    pub fn as_str(&self) -> &str {
        self
    }
}

impl Deref for Text {
    type Target = str;
    fn deref(&self) -> &str {
        match self {
            Text::Static(text) => text,
            Text::Shared(text) => text,
        }
    }
}

impl Default for Text {
    fn default() -> Self {
        Text::Static("")
    }
}

impl From<&'static str> for Text {
    fn from(text: &'static str) -> Self {
        Text::Static(text)
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::Shared(text.into())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        let (a, b): (&str, &str) = (self, other);
        std::ptr::eq(a, b) || a == b
    }
}

impl Eq for Text {}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other)
    }
}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

// Hashes like a `str`, so that it can be looked up by one.
impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl Borrow<str> for Text {
    fn borrow(&self) -> &str {
        self
    }
}

impl PartialEq<str> for Text {
    fn eq(&self, other: &str) -> bool {
        &**self == other
    }
}

impl PartialEq<&str> for Text {
    fn eq(&self, other: &&str) -> bool {
        &**self == *other
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_and_shared_texts_are_equal() {
        let (own, shared) = (Text::from("a"), Text::from("a".to_owned()));
        assert_eq!(own, shared);
        assert_eq!((shared.len(), format!("{own} {shared:?}").as_str()), (1, "a \"a\""));
        assert!(shared == *"a" && own != "b" && Text::default().is_empty());
    }
}
