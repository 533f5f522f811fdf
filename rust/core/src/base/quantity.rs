//! Kubernetes quantities: `500m`, `1Gi`, `12e6` (rules/01 §7).
//!
//! Values are exact decimals of up to 36 significant digits; products and sums are rounded away from zero beyond that.
//! No quantity of an API object comes close.

mod decimal;
mod parse;

use std::borrow::Cow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use decimal::Decimal;

/// A quantity: a number, and the family of suffixes in which it was written.
///
/// Two quantities are `==` when Kubernetes writes them the same way: `3000m` equals `3` and `1024Mi` equals `1Gi`, but
/// `1Gi` does not equal `1073741824`. [`Quantity::cmp_value`] compares numbers.
#[derive(Clone, Debug, Default)]
pub struct Quantity {
    value: Decimal,
    family: Family,
    /// The text as written, if Kubernetes keeps it although it is not canonical (`1.500`, `+5`).
    text: Option<Box<str>>,
}

/// The three ways to write a quantity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// `n u m k M G T P E`.
    #[default]
    DecimalSi,
    /// `Ki Mi Gi Ti Pi Ei`.
    BinarySi,
    /// `e3`.
    DecimalExponent,
}

/// Why a text is not a quantity, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseQuantityError {
    /// Not of the form number, suffix.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// No number before the suffix.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// Not a known suffix.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

impl Quantity {
    /// Reads a quantity. More than nine decimals are rounded away from zero; binary ones stop at +-(2^63-1).
    ///
    /// # Errors
    /// A text that Kubernetes does not accept. Like Kubernetes' own reader, this takes a lone sign or suffix as zero;
    /// the schema of an object is stricter.
    pub fn parse(text: &str) -> Result<Self, ParseQuantityError> {
        parse::parse(text)
    }

    /// A number of whole units.
    #[must_use]
    pub(crate) fn from_units(units: i64, family: Family) -> Self {
        Self { value: Decimal::new(i128::from(units), 0), family, text: None }
    }

    /// A number of thousandths, in the decimal family.
    #[must_use]
    pub(crate) fn from_milli(milli: i64) -> Self {
        Self { value: Decimal::new(i128::from(milli), -3), family: Family::DecimalSi, text: None }
    }

    /// Its parts: digits, the power of ten of the last digit, the family, and the kept text.
    pub(crate) fn parts(&self) -> (i128, i32, Family, Option<&str>) {
        (self.value.digits(), self.value.exponent(), self.family, self.text.as_deref())
    }

    /// A quantity of these [parts](Quantity::parts).
    pub(crate) fn from_parts(digits: i128, exponent: i32, family: Family, text: Option<&str>) -> Self {
        Self { value: Decimal::new(digits, exponent), family, text: text.map(Into::into) }
    }

    /// Is it zero?
    #[must_use]
    pub fn is_zero(&self) -> bool {
        self.value.is_zero()
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn signum(&self) -> i32 {
        match self.cmp_value(&Self::default()) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// Compares the numbers exactly, whatever their notation.
    #[must_use]
    pub fn cmp_value(&self, other: &Self) -> Ordering {
        self.value.compare(other.value)
    }

    /// The sum, written in the family of `self`, or of `other` when `self` is zero.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let family = if self.is_zero() { other.family } else { self.family };
        Self { value: self.value.plus(other.value), family, text: None }
    }

    /// The difference, written in the family of `self`, or of `other` when `self` is zero.
    #[must_use]
    pub fn minus(&self, other: &Self) -> Self {
        let family = if self.is_zero() { other.family } else { self.family };
        Self { value: self.value.plus(other.value.negated()), family, text: None }
    }

    /// The product, written in the family of `self`.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        Self { value: self.value.times(other.value), family: self.family, text: None }
    }

    /// The product with a float (its shortest decimal form), truncated to nine decimals, in the decimal family: used to
    /// decay usage (rules/09). An infinite or NaN factor gives zero.
    #[must_use]
    pub fn times_f64_toward_zero(&self, factor: f64) -> Self {
        if !factor.is_finite() {
            return Self::default();
        }
        Self { value: self.value.times_toward_zero(decimal_of(factor), -9), family: Family::DecimalSi, text: None }
    }

    /// The same in floating point, cut to whole thousandths.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // as Kueue did
    pub(crate) fn times_f64_to_milli(&self, factor: f64) -> Self {
        Self::from_milli((self.ceil_milli() as f64 * factor) as i64)
    }

    /// Thousandths, rounded away from zero, clamped to `i64`.
    #[must_use]
    pub fn ceil_milli(&self) -> i64 {
        self.clamped(-3)
    }

    /// Whole units, rounded away from zero, clamped to `i64`.
    #[must_use]
    pub fn ceil_units(&self) -> i64 {
        self.clamped(0)
    }

    // Kubernetes misrounds some negative big decimals; no object may contain one.
    fn clamped(&self, exponent: i32) -> i64 {
        let end = if self.signum() < 0 { i64::MIN } else { i64::MAX };
        self.value.in_units_of(exponent).and_then(|units| i64::try_from(units).ok()).unwrap_or(end)
    }

    /// The nearest float, except for one in 10000 where Kubernetes is a bit off, too: fair-sharing weights (rules/02).
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        self.value.as_f64()
    }

    /// Digits times a power of ten, each rounded to a float: Kueue computes the weight and usage of admission fair
    /// sharing this way (rules/09), so that `0.3` is 0.30000000000000004.
    #[must_use]
    pub fn as_f64_approximate(&self) -> f64 {
        let base = float(&self.value.digits().to_string());
        if self.value.exponent() == 0 { base } else { base * float(&format!("1e{}", self.value.exponent())) }
    }

    /// As text: the original text if it is kept, else the canonical form, with the largest suffix of the family that
    /// leaves a whole number.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        if let Some(text) = &self.text {
            return Cow::Borrowed(text);
        }
        let Canonical { number, suffix } = self.canonical();
        // 64-bit integers are formatted much faster, and nearly every number is that small.
        let mut text = i64::try_from(number).map_or_else(|_| number.to_string(), |number| number.to_string());
        match suffix {
            Suffix::None => {}
            Suffix::Text(suffix) => text.push_str(suffix),
            Suffix::Exponent(exponent) => text.push_str(&format!("e{exponent}")),
        }
        Cow::Owned(text)
    }

    /// The parts of the canonical form.
    fn canonical(&self) -> Canonical {
        if self.is_zero() {
            return Canonical { number: 0, suffix: Suffix::None };
        }
        let family = if self.family == Family::BinarySi && self.is_written_binary() {
            Family::BinarySi
        } else if self.family == Family::DecimalExponent {
            Family::DecimalExponent
        } else {
            Family::DecimalSi
        };
        match (family, self.value.in_units_of(0)) {
            (Family::BinarySi, Some(units)) => binary_form(units),
            _ => decimal_form(self.value, family),
        }
    }

    /// Binary suffixes are for whole numbers of at least 1024.
    fn is_written_binary(&self) -> bool {
        let large = |limit| self.value.compare(Decimal::new(limit, 0));
        let small = large(1024) == Ordering::Less && large(-1024) == Ordering::Greater;
        !small && self.value.is_whole()
    }
}

/// The number before the suffix, and the suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Canonical {
    number: i128,
    suffix: Suffix,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Suffix {
    None,
    Text(&'static str),
    Exponent(i32),
}

const BINARY_SUFFIXES: [&str; 6] = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

fn binary_form(units: i128) -> Canonical {
    let (mut number, mut suffix) = (units, Suffix::None);
    for text in BINARY_SUFFIXES {
        if number % 1024 != 0 {
            break;
        }
        number /= 1024;
        suffix = Suffix::Text(text);
    }
    Canonical { number, suffix }
}

fn decimal_form(value: Decimal, family: Family) -> Canonical {
    let value = value.normalised();
    // The exponent is a multiple of three.
    let (number, exponent) = match value.exponent().rem_euclid(3) {
        0 => (value.digits(), value.exponent()),
        1 => (value.digits() * 10, value.exponent().saturating_sub(1)),
        _ => (value.digits() * 100, value.exponent().saturating_sub(2)),
    };
    let suffix = match (family, exponent) {
        (_, 0) => Suffix::None,
        (Family::DecimalExponent, _) => Suffix::Exponent(exponent),
        (_, -9) => Suffix::Text("n"),
        (_, -6) => Suffix::Text("u"),
        (_, -3) => Suffix::Text("m"),
        (_, 3) => Suffix::Text("k"),
        (_, 6) => Suffix::Text("M"),
        (_, 9) => Suffix::Text("G"),
        (_, 12) => Suffix::Text("T"),
        (_, 15) => Suffix::Text("P"),
        (_, 18) => Suffix::Text("E"),
        // Past the last suffix, Kubernetes writes the bare number, which is another quantity; an exponent keeps the
        // value.
        _ => Suffix::Exponent(exponent),
    };
    Canonical { number, suffix }
}

fn decimal_of(value: f64) -> Decimal {
    // Rust writes the shortest decimal form, never with an exponent.
    let text = value.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let n_fraction = i64::try_from(fraction.len()).expect("a float has some hundred decimals");
    Decimal::from_digits(value < 0.0, whole.bytes().chain(fraction.bytes()), -n_fraction)
}

fn float(text: &str) -> f64 {
    text.parse().expect("digits and an exponent are a float")
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text())
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && (self.text.is_some() || self.canonical() == other.canonical())
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        if self.text.is_none() {
            self.canonical().hash(state);
        }
    }
}

impl FromStr for Quantity {
    type Err = ParseQuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::parse(text)
    }
}

#[cfg(test)]
mod tests;
