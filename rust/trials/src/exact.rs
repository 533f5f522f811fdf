//! Quantities as exact multiples of 10^-9, the finest unit that Kubernetes keeps, in plain integers.

/// The value of a text in units of 10^-9, rounded away from zero; `None` if it does not start with a quantity, or may
/// not fit into 128 bits.
#[must_use]
pub fn nanos(text: &str) -> Option<i128> {
    let (negative, rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.len() + fraction.len() == 0 || fraction.contains('.') {
        return None;
    }
    let digits: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let (tens, twos) = scale(suffix)?;
    let tens = tens.checked_add(9)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let magnitude = digits.checked_mul(1i128.checked_shl(twos)?)?;
    let magnitude = match u32::try_from(tens) {
        Ok(power) => magnitude.checked_mul(10i128.checked_pow(power)?)?,
        Err(_) => {
            let divisor = 10i128.checked_pow(tens.unsigned_abs())?;
            magnitude / divisor + i128::from(magnitude % divisor != 0)
        }
    };
    let cap = i128::from(i64::MAX) * 1_000_000_000;
    let magnitude = if twos > 0 { magnitude.min(cap) } else { magnitude };
    // Beyond this, quantities themselves begin to round.
    (magnitude < 10i128.pow(36)).then_some(if negative { -magnitude } else { magnitude })
}

/// Powers of ten and of two.
fn scale(suffix: &str) -> Option<(i32, u32)> {
    const DECIMAL: [(&str, i32); 10] =
        [("", 0), ("n", -9), ("u", -6), ("m", -3), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
    const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
    let decimal = DECIMAL.into_iter().find(|(text, _)| *text == suffix).map(|(_, power)| (power, 0));
    let binary = || BINARY.into_iter().find(|(text, _)| *text == suffix).map(|(_, power)| (0, power));
    let exponent = || suffix.strip_prefix(['e', 'E'])?.parse().ok().map(|power| (power, 0));
    decimal.or_else(binary).or_else(exponent)
}

/// `nanos` in units of 10^-9 x `unit`, rounded away from zero and clamped to an `i64`.
#[must_use]
pub fn ceil(nanos: i128, unit: i128) -> i64 {
    let magnitude = nanos.abs() / unit + i128::from(nanos % unit != 0);
    let signed = if nanos < 0 { -magnitude } else { magnitude };
    clamp(signed)
}

/// The nearest `i64`.
#[must_use]
pub fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_signs_and_fractions_are_read() {
        let table = [
            ("1", Some(1_000_000_000)),
            ("-1.5", Some(-1_500_000_000)),
            ("500m", Some(500_000_000)),
            ("1Ki", Some(1024 * 1_000_000_000)),
            ("1e3", Some(1_000_000_000_000)),
            ("1e-10", Some(1)),
            ("9Ei", Some(i128::from(i64::MAX) * 1_000_000_000)),
            ("1e30", None),
            ("1K", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(nanos(text), expected, "{text}");
        }
    }

    #[test]
    fn rounding_goes_away_from_zero_and_stops_at_64_bits() {
        assert_eq!((ceil(1, 1_000), ceil(-1, 1_000), ceil(2_000, 1_000)), (1, -1, 2));
        assert_eq!((ceil(i128::MAX, 1), ceil(i128::MIN + 1, 1)), (i64::MAX, i64::MIN));
    }
}
