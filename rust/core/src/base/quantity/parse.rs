//! Parsing of quantities (rules/01 §7).

use std::cmp::Ordering;

use super::decimal::{Decimal, Rounding};
use super::{Family, ParseQuantityError, Quantity};

/// The scale of a suffix.
#[derive(Clone, Copy, Debug)]
enum Scale {
    /// A power of ten.
    Ten(i32),
    /// A power of two.
    Two(u32),
}

/// A quantity split into its parts.
struct Pieces<'a> {
    negative: bool,
    /// Whole digits without leading zeros, never empty.
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
    /// Is there any digit? Kubernetes takes `+` and `k` as zero.
    has_number: bool,
}

pub(super) fn parse(text: &str) -> Result<Quantity, ParseQuantityError> {
    if text.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let pieces = cut(text)?;
    let (scale, family) = suffix_scale(pieces.suffix).ok_or(ParseQuantityError::Suffix)?;
    let digits = pieces.whole.bytes().chain(pieces.fraction.bytes());
    let n_fraction = i64::try_from(pieces.fraction.len()).unwrap_or(i64::MAX);
    let plain = match scale {
        Scale::Ten(exponent) => {
            let exponent = i64::from(exponent).saturating_sub(n_fraction);
            Decimal::from_digits(pieces.negative, digits, exponent)
        }
        Scale::Two(power) => {
            Decimal::from_digits(pieces.negative, digits, -n_fraction).times(Decimal::new(1i128 << power, 0))
        }
    };
    if is_short(&pieces, scale) {
        let mut quantity = Quantity { value: plain, family, text: None };
        if keeps_text(&pieces, scale, plain) && may_differ_from_canonical(text, family) && quantity.to_string() != text
        {
            quantity.text = Some(text.into());
        }
        return Ok(quantity);
    }
    if !pieces.has_number {
        return Err(ParseQuantityError::Numeric);
    }
    Ok(bounded(plain, family))
}

/// Bounds of the big-decimal path: nine decimals, rounded away from zero, and binary ones within `i64`.
fn bounded(value: Decimal, family: Family) -> Quantity {
    let rounded = value.rounded(-9, Rounding::AwayFromZero);
    let capped = match family {
        Family::BinarySi => nearer_to_zero(rounded, i64::MAX),
        Family::DecimalSi | Family::DecimalExponent => rounded,
    };
    // A binary quantity below one becomes decimal, so that it can be written.
    let below_one = !capped.is_zero() && capped.rounded(0, Rounding::TowardZero).is_zero();
    let family = if family == Family::BinarySi && below_one { Family::DecimalSi } else { family };
    Quantity { value: capped, family, text: None }
}

/// The number, or +-`limit` if it is beyond that.
fn nearer_to_zero(value: Decimal, limit: i64) -> Decimal {
    let limit = Decimal::new(i128::from(limit), 0);
    if value.compare(limit) == Ordering::Greater {
        limit
    } else if value.compare(limit.negated()) == Ordering::Less {
        limit.negated()
    } else {
        value
    }
}

/// Does Kubernetes parse this number without big decimals? Only then it neither rounds nor caps, and may keep the text
/// as written.
fn is_short(pieces: &Pieces<'_>, scale: Scale) -> bool {
    let n_whole = i64::try_from(pieces.whole.len()).unwrap_or(i64::MAX);
    let n_fraction = i64::try_from(pieces.fraction.len()).unwrap_or(i64::MAX);
    match scale {
        Scale::Ten(exponent) => {
            n_whole.saturating_add(n_fraction) <= 18 && i64::from(exponent).saturating_sub(n_fraction) >= -9
        }
        // About three decimal digits per ten bits, out of fourteen.
        Scale::Two(power) => n_fraction == 0 && n_whole + i64::from(power) * 3 / 10 <= 14,
    }
}

/// Does Kubernetes keep this text as it is instead of computing the canonical form?
fn keeps_text(pieces: &Pieces<'_>, scale: Scale, value: Decimal) -> bool {
    match scale {
        Scale::Two(_) => pieces.whole.parse::<i64>().is_ok_and(|whole| whole & 7 != 0),
        Scale::Ten(_) => {
            let ends_in_000 = value.digits() % 1000 == 0 && pieces.whole.len() + pieces.fraction.len() >= 3;
            value.exponent() % 3 == 0 && !ends_in_000 && !pieces.whole.starts_with('0')
        }
    }
}

/// A quick check for things that no canonical form contains.
fn may_differ_from_canonical(text: &str, family: Family) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    family == Family::DecimalExponent || unsigned.starts_with(['+', '0']) || unsigned.contains('.')
}

fn cut(text: &str) -> Result<Pieces<'_>, ParseQuantityError> {
    let (negative, unsigned) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let stripped = unsigned.trim_start_matches('0');
    let (whole, rest) = split_while(stripped, |byte| byte.is_ascii_digit());
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(after) => split_while(after, |byte| byte.is_ascii_digit()),
        None => ("", rest),
    };
    let (_, after_letters) = split_while(rest, |byte| b"eEinumkKMGTP".contains(&byte));
    let after_sign = after_letters.strip_prefix(['-', '+']).unwrap_or(after_letters);
    let (_, left_over) = split_while(after_sign, |byte| byte.is_ascii_digit());
    if !left_over.is_empty() {
        return Err(ParseQuantityError::Format);
    }
    let has_number = unsigned.len() > stripped.len() || !whole.is_empty() || !fraction.is_empty();
    Ok(Pieces { negative, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix: rest, has_number })
}

fn split_while(text: &str, belongs: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !belongs(byte)).unwrap_or(text.len());
    text.split_at(end)
}

fn suffix_scale(suffix: &str) -> Option<(Scale, Family)> {
    let decimal = |exponent| Some((Scale::Ten(exponent), Family::DecimalSi));
    let binary = |power| Some((Scale::Two(power), Family::BinarySi));
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            // Far beyond any real object, and clear of the limits of i32.
            let exponent = exponent.clamp(-1_000_000_000, 1_000_000_000);
            let exponent = i32::try_from(exponent).ok()?;
            Some((Scale::Ten(exponent), Family::DecimalExponent))
        }
    }
}
