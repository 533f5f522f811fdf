//! The words of enumerations: each is read, written and validated by one table beside it.

use serde::de::Deserializer;

use super::fields::read_text;

/// An enumeration whose values are words.
pub trait Word: Copy + PartialEq + 'static {
    /// The words, in the order in which errors list them.
    const WORDS: &'static [&'static str];
    /// What they mean, in the same order.
    const MEANINGS: &'static [Self];

    /// What a word means; `None` for one that is not known.
    fn read(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|known| *known == word).map(|place| Self::MEANINGS[place])
    }

    /// The word; empty for a value that has none.
    fn word(self) -> &'static str {
        Self::MEANINGS.iter().position(|known| *known == self).map_or("", |place| Self::WORDS[place])
    }
}

/// Reads a word that is optional; an unknown one counts as absent.
pub(crate) fn read_word<'de, D: Deserializer<'de>, W: Word>(deserializer: D) -> Result<Option<W>, D::Error> {
    read_text(deserializer, W::read)
}

/// Implements [`Word`], and reading and writing by it.
macro_rules! words {
    ($($name:ident { $($word:ident),* $(,)? })*) => {$(
        impl $crate::objects::words::Word for $name {
            const WORDS: &'static [&'static str] = &[$(stringify!($word)),*];
            const MEANINGS: &'static [Self] = &[$($name::$word),*];
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str($crate::objects::words::Word::word(*self))
            }
        }

        /// An unknown word acts as the default.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::objects::words::read_word(deserializer).map(Option::unwrap_or_default)
            }
        }
    )*};
}

pub(super) use words;
