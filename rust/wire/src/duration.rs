//! Durations as Go writes them: `5m`, `1h30m`, `1.5s`, `0s` (rules/11 §1.4).

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::field_error::quoted;

/// A span of time in nanoseconds, read and written in Go's syntax.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration {
    /// Nanoseconds; may be negative.
    pub ns: i64,
}

/// Units by name, in nanoseconds; both spellings of micro.
const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
];
const SECOND: u64 = 1_000_000_000;

impl Duration {
    /// A duration of this many seconds.
    #[must_use]
    pub const fn seconds(seconds: i64) -> Self {
        Self { ns: seconds.saturating_mul(SECOND as i64) }
    }

    /// Reads a duration: an optional sign, then numbers with a unit each, or a plain `0`.
    ///
    /// # Errors
    /// Go's message for the text, such as `time: missing unit in duration "5"`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("time: invalid duration {}", quoted(text));
        let (negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self::default());
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (whole, after_whole) = split_digits(rest);
            let (fraction, after_number) = match after_whole.strip_prefix('.') {
                Some(after_dot) => split_digits(after_dot),
                None => ("", after_whole),
            };
            if whole.is_empty() && fraction.is_empty() {
                return Err(invalid());
            }
            let unit_end = after_number.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(after_number.len());
            let (unit, next) = after_number.split_at(unit_end);
            if unit.is_empty() {
                return Err(format!("time: missing unit in duration {}", quoted(text)));
            }
            let Some(&(_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
                return Err(format!("time: unknown unit {} in duration {}", quoted(unit), quoted(text)));
            };
            let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| invalid())? };
            let part = whole.checked_mul(unit_ns).and_then(|ns| ns.checked_add(fraction_ns(fraction, unit_ns)));
            total = part.and_then(|ns| total.checked_add(ns)).filter(|&ns| ns <= 1 << 63).ok_or_else(invalid)?;
            rest = next;
        }
        // The smallest i64 has no positive counterpart.
        let ns = if negative { 0i64.checked_sub_unsigned(total) } else { 0i64.checked_add_unsigned(total) };
        Ok(Self { ns: ns.ok_or_else(invalid)? })
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// Decimals of a unit in nanoseconds, rounded down; Go computes them in double precision.
fn fraction_ns(digits: &str, unit_ns: u64) -> u64 {
    let mut value: u64 = 0;
    let mut scale: f64 = 1.0;
    for digit in digits.bytes() {
        let Some(next) = value.checked_mul(10).and_then(|v| v.checked_add(u64::from(digit - b'0'))) else { break };
        if next > 1 << 63 {
            break;
        }
        value = next;
        scale *= 10.0;
    }
    (value as f64 * (unit_ns as f64 / scale)) as u64
}

impl std::fmt::Display for Duration {
    /// Formatted as by Go: `1h30m0s`, `1.5s`, `100ms`, `0s`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.ns < 0 {
            f.write_str("-")?;
        }
        let ns = self.ns.unsigned_abs();
        match ns {
            0 => f.write_str("0s"),
            1..1_000 => write!(f, "{ns}ns"),
            1_000..1_000_000 => write!(f, "{}µs", decimal(ns, 1_000)),
            1_000_000..SECOND => write!(f, "{}ms", decimal(ns, 1_000_000)),
            _ => {
                let (hours, minutes) = (ns / (3600 * SECOND), ns / (60 * SECOND));
                if hours > 0 {
                    write!(f, "{hours}h")?;
                }
                if minutes > 0 {
                    write!(f, "{}m", minutes % 60)?;
                }
                write!(f, "{}s", decimal(ns % (60 * SECOND), SECOND))
            }
        }
    }
}

/// `ns / unit` with as many decimals as it needs.
fn decimal(ns: u64, unit: u64) -> String {
    let width = unit.ilog10() as usize;
    let text = format!("{}.{:0width$}", ns / unit, ns % unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl Serialize for Duration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Duration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_as_go_does() {
        let table = [
            ("0", 0, "0s"),
            ("0s", 0, "0s"),
            ("-0", 0, "0s"),
            ("5m", 300_000_000_000, "5m0s"),
            ("1h30m", 5_400_000_000_000, "1h30m0s"),
            ("1.5h", 5_400_000_000_000, "1h30m0s"),
            ("-1s", -1_000_000_000, "-1s"),
            ("+.5s", 500_000_000, "500ms"),
            ("1.s", 1_000_000_000, "1s"),
            ("1h0.1s", 3_600_100_000_000, "1h0m0.1s"),
            ("61.001s", 61_001_000_000, "1m1.001s"),
            ("1500us", 1_500_000, "1.5ms"),
            ("10µs", 10_000, "10µs"),
            ("7ns", 7, "7ns"),
            ("0.3333333333333333333h", 1_200_000_000_000, "20m0s"),
            ("2540400h10m10.000000000s", 9_145_440_610_000_000_000, "2540400h10m10s"),
            ("9223372036854775807ns", i64::MAX, "2562047h47m16.854775807s"),
            ("-9223372036854775808ns", i64::MIN, "-2562047h47m16.854775808s"),
        ];
        for (text, ns, printed) in table {
            let duration = Duration::parse(text).expect(text);
            assert_eq!((duration.ns, duration.to_string().as_str()), (ns, printed), "{text}");
        }
    }

    #[test]
    fn malformed_durations_are_refused_with_gos_texts() {
        let table = [
            ("", "time: invalid duration \"\""),
            ("-", "time: invalid duration \"-\""),
            ("5", "time: missing unit in duration \"5\""),
            ("1m5", "time: missing unit in duration \"1m5\""),
            ("5d", "time: unknown unit \"d\" in duration \"5d\""),
            ("1 s", "time: unknown unit \" s\" in duration \"1 s\""),
            ("s", "time: invalid duration \"s\""),
            (".s", "time: invalid duration \".s\""),
            ("9223372036854775808ns", "time: invalid duration \"9223372036854775808ns\""),
            ("99999999999999999999s", "time: invalid duration \"99999999999999999999s\""),
            ("3000000h", "time: invalid duration \"3000000h\""),
        ];
        for (text, error) in table {
            assert_eq!(Duration::parse(text).expect_err(text), error);
        }
    }
}
