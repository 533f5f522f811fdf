//! Saturating quota arithmetic (rules/02 §1).

use std::fmt;

/// A quota amount: milli-units for `cpu`, whole units for every other resource.
///
/// `i64::MAX` means *unlimited*. There is no `+` and no `-`: arithmetic uses the named methods, so that no sum can wrap
/// or forget the sentinel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Amount(i64);

impl Amount {
    /// No limit.
    pub const UNLIMITED: Amount = Amount(i64::MAX);
    pub const ZERO: Amount = Amount(0);

    /// The amount with this integer value; `i64::MAX` is unlimited.
    #[must_use]
    pub const fn new(value: i64) -> Self {
        Self(value)
    }

    /// The stored integer; unlimited gives `i64::MAX`.
    #[must_use]
    pub const fn get(self) -> i64 {
        self.0
    }

    /// Is this the sentinel?
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        self.0 == i64::MAX
    }

    /// Is this the largest or smallest amount, where sums saturate?
    #[must_use]
    pub(crate) const fn is_at_an_end(self) -> bool {
        self.0 == i64::MAX || self.0 == i64::MIN
    }

    /// Is this so large that the sum of two such amounts may saturate?
    #[must_use]
    pub(crate) const fn is_huge(self) -> bool {
        self.0.unsigned_abs() >= 1 << 61
    }

    /// `self + other`; overflow becomes unlimited.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        if self.is_unlimited() || other.is_unlimited() { Self::UNLIMITED } else { Self(self.0.saturating_add(other.0)) }
    }

    /// `self - other`; unlimited - unlimited is 0, finite - unlimited the smallest integer.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        match (self.is_unlimited(), other.is_unlimited()) {
            (true, true) => Self::ZERO,
            (true, false) => Self::UNLIMITED,
            (false, true) => Self(i64::MIN),
            (false, false) => Self(self.0.saturating_sub(other.0)),
        }
    }

    /// `self + v` for a plain integer.
    #[must_use]
    pub const fn plus_units(self, v: i64) -> Self {
        if self.is_unlimited() { self } else { Self(self.0.saturating_add(v)) }
    }

    /// `self - v` for a plain integer.
    #[must_use]
    pub const fn minus_units(self, v: i64) -> Self {
        if self.is_unlimited() { self } else { Self(self.0.saturating_sub(v)) }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unlimited() { f.write_str("<unlimited>") } else { write!(f, "{}", self.0) }
    }
}
