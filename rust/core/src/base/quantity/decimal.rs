//! Decimal numbers of up to 36 significant digits: quantities without suffix.

use std::cmp::Ordering;

/// `digits` x 10^`exponent`. Not normalised: 3000 x 10^-3 stays as written, because the approximate float of a quantity
/// depends on it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Decimal {
    digits: i128,
    exponent: i32,
}

/// Significant digits that are kept. Two fewer than an `i128` holds, so that the canonical form can multiply by 100.
const MAX_DIGITS: u32 = 36;
/// One more than the largest magnitude of `digits`.
const DIGITS_END: u128 = 10u128.pow(MAX_DIGITS);

/// How dropped digits are rounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rounding {
    AwayFromZero,
    TowardZero,
}

impl Decimal {
    /// `digits` x 10^`exponent`; digits past the limit round away from zero.
    pub(super) fn new(digits: i128, exponent: i32) -> Self {
        let magnitude = Wide::from(digits.unsigned_abs());
        magnitude.into_decimal(digits < 0, i64::from(exponent), Rounding::AwayFromZero)
    }

    /// The number with these decimal digits (ASCII, most significant first) x 10^`exponent`.
    pub(super) fn from_digits(negative: bool, digits: impl Iterator<Item = u8>, exponent: i64) -> Self {
        let (mut magnitude, mut n_dropped, mut lost) = (0u128, 0i64, false);
        for digit in digits {
            let digit = digit - b'0';
            if magnitude < DIGITS_END / 10 {
                magnitude = magnitude * 10 + u128::from(digit);
            } else {
                n_dropped += 1;
                lost |= digit != 0;
            }
        }
        Wide::from(magnitude + u128::from(lost)).into_decimal(
            negative,
            exponent.saturating_add(n_dropped),
            Rounding::AwayFromZero,
        )
    }

    /// The digits, as written.
    pub(super) fn digits(self) -> i128 {
        self.digits
    }

    /// The power of ten of the last digit, as written.
    pub(super) fn exponent(self) -> i32 {
        self.exponent
    }

    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// The same number without trailing zero digits; zero has exponent 0.
    pub(super) fn normalised(self) -> Self {
        if self.digits == 0 {
            return Self::default();
        }
        let mut exponent = self.exponent;
        // 64-bit division is much cheaper, and nearly every number is that small.
        if let Ok(mut digits) = i64::try_from(self.digits) {
            while digits % 10 == 0 && exponent < i32::MAX {
                digits /= 10;
                exponent += 1;
            }
            return Self { digits: i128::from(digits), exponent };
        }
        let mut digits = self.digits;
        while digits % 10 == 0 && exponent < i32::MAX {
            digits /= 10;
            exponent += 1;
        }
        Self { digits, exponent }
    }

    /// Compares values, exactly.
    pub(super) fn compare(self, other: Self) -> Ordering {
        let by_sign = self.digits.signum().cmp(&other.digits.signum());
        if by_sign != Ordering::Equal || self.digits == 0 {
            return by_sign;
        }
        let (high, low, flipped) =
            if self.exponent >= other.exponent { (self, other, false) } else { (other, self, true) };
        let n = i64::from(high.exponent) - i64::from(low.exponent);
        // A product that does not fit is larger in magnitude than any number that does.
        let order = match scaled_up(high.digits, n) {
            Some(digits) => digits.cmp(&low.digits),
            None => high.digits.signum().cmp(&0),
        };
        if flipped { order.reverse() } else { order }
    }

    /// The sum; exact while it needs no more than 36 digits.
    pub(super) fn plus(self, other: Self) -> Self {
        if other.digits == 0 {
            return self;
        }
        if self.digits == 0 {
            return other;
        }
        let (high, low) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let mut n = i64::from(high.exponent) - i64::from(low.exponent);
        if let Some(digits) = scaled_up(high.digits, n) {
            return Self::new(digits + low.digits, low.exponent);
        }
        // The low end of `low` is past the limit: scale `high` as far down as possible, and round `low` up to that.
        let mut digits = high.digits;
        let mut exponent = high.exponent;
        while let Some(next) = scaled_up(digits, 1) {
            digits = next;
            exponent -= 1;
            n -= 1;
        }
        Self::new(digits + scaled_down(low.digits, n, Rounding::AwayFromZero), exponent)
    }

    pub(super) fn negated(self) -> Self {
        Self { digits: -self.digits, exponent: self.exponent }
    }

    /// The product; exact while it needs no more than 36 digits.
    pub(super) fn times(self, other: Self) -> Self {
        let exponent = i64::from(self.exponent) + i64::from(other.exponent);
        let product = Wide::product(self.digits.unsigned_abs(), other.digits.unsigned_abs());
        product.into_decimal((self.digits < 0) != (other.digits < 0), exponent, Rounding::AwayFromZero)
    }

    /// The exact product, rounded toward zero to its last digit at 10^`exponent`.
    pub(super) fn times_toward_zero(self, other: Self, exponent: i32) -> Self {
        let from = i64::from(self.exponent) + i64::from(other.exponent);
        let mut product = Wide::product(self.digits.unsigned_abs(), other.digits.unsigned_abs());
        let mut at = from;
        while at < i64::from(exponent) && !product.is_zero() {
            product.divide_by_10();
            at += 1;
        }
        let product = product.into_decimal((self.digits < 0) != (other.digits < 0), at, Rounding::TowardZero);
        product.rounded(exponent, Rounding::TowardZero)
    }

    /// The number with its last digit at 10^`exponent`. A number too large for that is returned as it is.
    pub(super) fn rounded(self, exponent: i32, rounding: Rounding) -> Self {
        let n = i64::from(exponent) - i64::from(self.exponent);
        if n > 0 {
            return Self { digits: scaled_down(self.digits, n, rounding), exponent };
        }
        match scaled_up(self.digits, -n) {
            Some(digits) => Self { digits, exponent },
            None => self,
        }
    }

    /// How many 10^`exponent` this is, rounded away from zero; `None` past `i128`.
    pub(super) fn in_units_of(self, exponent: i32) -> Option<i128> {
        let n = i64::from(self.exponent) - i64::from(exponent);
        if n <= 0 { Some(scaled_down(self.digits, -n, Rounding::AwayFromZero)) } else { scaled_up(self.digits, n) }
    }

    /// The float that Kubernetes computes: the exact quotient rounded to 64 bits (or to the length of the digits), and
    /// then to a float.
    pub(super) fn as_f64(self) -> f64 {
        let n_decimals = self.exponent.checked_neg().and_then(|n| u32::try_from(n).ok());
        match n_decimals.filter(|n| *n > 0).and_then(|n| 10u128.checked_pow(n)) {
            Some(divisor) if divisor <= DIGITS_END && self.digits != 0 => {
                let magnitude = quotient_as_f64(self.digits.unsigned_abs(), divisor);
                if self.digits < 0 { -magnitude } else { magnitude }
            }
            _ => format!("{}e{}", self.digits, self.exponent).parse().expect("digits and an exponent are a float"),
        }
    }

    /// Is this a whole number?
    pub(super) fn is_whole(self) -> bool {
        self.rounded(0, Rounding::TowardZero).compare(self) == Ordering::Equal
    }
}

/// `dividend` / `divisor`, both positive, rounded twice: see [`Decimal::as_f64`].
#[allow(clippy::cast_precision_loss)] // the second rounding
fn quotient_as_f64(dividend: u128, divisor: u128) -> f64 {
    let n_bits = (u128::BITS - dividend.leading_zeros()).max(64);
    let (mut quotient, mut remainder) = (dividend / divisor, dividend % divisor);
    let mut exponent = 0u64;
    while u128::BITS - quotient.leading_zeros() < n_bits {
        remainder *= 2;
        quotient *= 2;
        exponent += 1;
        if remainder >= divisor {
            remainder -= divisor;
            quotient += 1;
        }
    }
    let half = (remainder * 2).cmp(&divisor);
    if half == Ordering::Greater || (half == Ordering::Equal && quotient % 2 == 1) {
        quotient += 1;
    }
    // The bits of 2^-exponent: with fewer than 36 decimals it is far from the smallest float.
    quotient as f64 * f64::from_bits((1023 - exponent) << 52)
}

/// `digits` x 10^`n` for `n` >= 0, if it stays below the limit.
fn scaled_up(digits: i128, n: i64) -> Option<i128> {
    if digits == 0 || n == 0 {
        return Some(digits);
    }
    let factor = 10i128.checked_pow(u32::try_from(n).ok()?)?;
    digits.checked_mul(factor).filter(|product| product.unsigned_abs() < DIGITS_END)
}

/// `digits` / 10^`n` for `n` >= 0.
fn scaled_down(digits: i128, n: i64, rounding: Rounding) -> i128 {
    if n == 0 {
        return digits;
    }
    let divisor = u32::try_from(n).ok().and_then(|n| 10i128.checked_pow(n));
    let (quotient, exact) = match divisor {
        Some(divisor) => (digits / divisor, digits % divisor == 0),
        None => (0, digits == 0),
    };
    if exact || rounding == Rounding::TowardZero { quotient } else { quotient + digits.signum() }
}

/// An unsigned 256-bit number, least significant limb first: the product of two magnitudes.
#[derive(Clone, Copy, Debug)]
struct Wide([u64; 4]);

impl From<u128> for Wide {
    fn from(value: u128) -> Self {
        Self([low_half(value), high_half(value), 0, 0])
    }
}

impl Wide {
    fn product(a: u128, b: u128) -> Self {
        if let Some(product) = a.checked_mul(b) {
            return Self::from(product);
        }
        let (a, b) = ([low_half(a), high_half(a)], [low_half(b), high_half(b)]);
        let mut limbs = [0u64; 4];
        for (i, &x) in a.iter().enumerate() {
            let mut carry = 0u128;
            for (j, &y) in b.iter().enumerate() {
                let sum = u128::from(x) * u128::from(y) + u128::from(limbs[i + j]) + carry;
                limbs[i + j] = low_half(sum);
                carry = sum >> 64;
            }
            limbs[i + 2] = low_half(carry);
        }
        Self(limbs)
    }

    fn is_zero(self) -> bool {
        self.0 == [0; 4]
    }

    /// Divides in place and returns the remainder.
    fn divide_by_10(&mut self) -> u64 {
        let mut remainder = 0u64;
        for limb in self.0.iter_mut().rev() {
            let dividend = (u128::from(remainder) << 64) | u128::from(*limb);
            *limb = low_half(dividend / 10);
            remainder = low_half(dividend % 10);
        }
        remainder
    }

    /// The magnitude, if it is below the limit.
    fn fitting(self) -> Option<i128> {
        let value = (u128::from(self.0[1]) << 64) | u128::from(self.0[0]);
        if self.0[2] != 0 || self.0[3] != 0 || value >= DIGITS_END { None } else { i128::try_from(value).ok() }
    }

    /// +-self x 10^`exponent`, dropping digits until it fits. An exponent past `i32` is clamped.
    fn into_decimal(mut self, negative: bool, mut exponent: i64, rounding: Rounding) -> Decimal {
        let mut lost = false;
        let magnitude = loop {
            match self.fitting() {
                Some(magnitude) if !lost || rounding == Rounding::TowardZero => break magnitude,
                Some(magnitude) if magnitude.unsigned_abs() + 1 < DIGITS_END => break magnitude + 1,
                _ => {
                    lost |= self.divide_by_10() != 0;
                    exponent += 1;
                }
            }
        };
        let end = if exponent < 0 { i32::MIN } else { i32::MAX };
        Decimal {
            digits: if negative { -magnitude } else { magnitude },
            exponent: i32::try_from(exponent).unwrap_or(end),
        }
    }
}

#[allow(clippy::cast_possible_truncation)] // taking the low half is the point
fn low_half(value: u128) -> u64 {
    value as u64
}

fn high_half(value: u128) -> u64 {
    low_half(value >> 64)
}
