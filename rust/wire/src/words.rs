//! The words of enumerations: read, written and validated by one table.

use kueuecore::objects::{FungibilityPolicy, FungibilityPreference, PreemptionPolicy, QueueingStrategy, StopPolicy};

/// An enumeration whose values are words in JSON.
pub(crate) trait Word: Copy + PartialEq + 'static {
    /// The words, in the order in which errors list them.
    const WORDS: &'static [&'static str];
    /// What they mean, in the same order.
    const MEANINGS: &'static [Self];

    /// What a word means; `None` for one that is not known.
    fn read(word: &str) -> Option<Self> {
        Self::WORDS.iter().position(|it| *it == word).map(|place| Self::MEANINGS[place])
    }

    /// The word; empty for a value that has none.
    fn word(self) -> &'static str {
        Self::MEANINGS.iter().position(|it| *it == self).map_or("", |place| Self::WORDS[place])
    }
}

macro_rules! words {
    ($($name:ident { $($word:ident),* $(,)? })*) => {$(
        impl Word for $name {
            const WORDS: &'static [&'static str] = &[$(stringify!($word)),*];
            const MEANINGS: &'static [Self] = &[$($name::$word),*];
        }
    )*};
}

words! {
    QueueingStrategy { StrictFIFO, BestEffortFIFO }
    StopPolicy { None, Hold, HoldAndDrain }
    FungibilityPolicy { MayStopSearch, TryNextFlavor }
    FungibilityPreference { BorrowingOverPreemption, PreemptionOverBorrowing }
    // Each policy takes some of these: see the schema. `Unset` has no word.
    PreemptionPolicy { Never, LowerPriority, LowerOrNewerEqualPriority, Any }
}
