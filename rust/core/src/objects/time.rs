//! Points in time: nanoseconds since 1970, written as RFC 3339 says.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

const NANOS: i128 = 1_000_000_000;

/// A point in time: nanoseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// The time of an object without one: older than all others, like Go's zero time.
    pub const ABSENT: Time = Time(i64::MIN);

    /// The saturating distance from `earlier`, in nanoseconds.
    #[must_use]
    pub fn since(self, earlier: Time) -> i64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl Default for Time {
    fn default() -> Self {
        Time::ABSENT
    }
}

/// RFC 3339, absent for [`Time::ABSENT`].
impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if *self == Time::ABSENT { serializer.serialize_none() } else { serializer.serialize_str(&format_time(*self)) }
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = Stamp;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a time such as 2026-01-01T00:00:00Z")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Stamp, E> {
                parse_time(text).map(Stamp).ok_or_else(|| E::custom("must be a time such as 2026-01-01T00:00:00Z"))
            }
        }
        struct Stamp(Time);
        impl<'de> Deserialize<'de> for Stamp {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_str(Text)
            }
        }
        Ok(Option::<Stamp>::deserialize(deserializer)?.map_or(Time::ABSENT, |stamp| stamp.0))
    }
}

/// The time that an RFC 3339 text says, or `None` if it is not one.
///
/// Fractions beyond nanoseconds are cut off. Times outside what 64 bits of nanoseconds hold (about the years 1678
/// to 2262) saturate; so year 1, Go's zero time, is [`Time::ABSENT`].
#[must_use]
pub fn parse_time(text: &str) -> Option<Time> {
    let bytes = text.as_bytes();
    let year = number(bytes.get(0..4)?)?;
    let month = number(bytes.get(5..7)?)?;
    let day = number(bytes.get(8..10)?)?;
    let hour = number(bytes.get(11..13)?)?;
    let minute = number(bytes.get(14..16)?)?;
    let second = number(bytes.get(17..19)?)?;
    let separators = [bytes[4], bytes[7], bytes[10], bytes[13], bytes[16]];
    if separators != *b"--T::" && separators != *b"--t::" {
        return None;
    }
    if !(1..=12).contains(&month) || day < 1 || day > days_in_month(year, month) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction, rest) = fraction(&bytes[19..])?;
    let offset = offset_seconds(rest)?;
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset;
    let nanos = i128::from(seconds) * NANOS + i128::from(fraction);
    Some(Time(i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })))
}

/// The time in UTC as `2026-01-01T00:00:00Z`, with a fraction only where there is one.
#[must_use]
pub fn format_time(time: Time) -> String {
    let seconds = time.0.div_euclid(1_000_000_000);
    let nanos = time.0.rem_euclid(1_000_000_000);
    let (year, month, day) = civil_date(seconds.div_euclid(86_400));
    let of_day = seconds.rem_euclid(86_400);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let mut text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}");
    if nanos != 0 {
        let digits = format!("{nanos:09}");
        text.push('.');
        text.push_str(digits.trim_end_matches('0'));
    }
    text.push('Z');
    text
}

/// A number of decimal digits only.
fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |value: i64, &digit| match digit {
        b'0'..=b'9' => Some(value * 10 + i64::from(digit - b'0')),
        _ => None,
    })
}

/// Nanoseconds of a leading `.digits`, and what follows it.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    if rest.first() != Some(&b'.') {
        return Some((0, rest));
    }
    let digits = rest[1..].iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return None;
    }
    let kept = digits.min(9);
    let missing = u32::try_from(9 - kept).ok()?;
    Some((number(&rest[1..=kept])? * 10_i64.pow(missing), &rest[1 + digits..]))
}

/// Seconds east of UTC.
fn offset_seconds(rest: &[u8]) -> Option<i64> {
    let sign = match rest {
        b"Z" | b"z" => return Some(0),
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return None,
    };
    if rest.len() != 6 || rest[3] != b':' {
        return None;
    }
    let (hours, minutes) = (number(&rest[1..3])?, number(&rest[4..6])?);
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days before a year, counted from year 0 of the proleptic Gregorian calendar.
fn days_before_year(year: i64) -> i64 {
    let past = year - 1;
    year * 365 + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400)
}

fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let months: i64 = (1..month).map(|m| days_in_month(year, m)).sum();
    days_before_year(year) - days_before_year(1970) + months + day - 1
}

/// Year, month and day of a number of days since 1970.
fn civil_date(days: i64) -> (i64, i64, i64) {
    let from_zero = days + days_before_year(1970);
    // 400 years have 146097 days; the guess is off by one at most.
    let mut year = (from_zero * 400).div_euclid(146_097);
    while days_before_year(year + 1) <= from_zero {
        year += 1;
    }
    while days_before_year(year) > from_zero {
        year -= 1;
    }
    let mut left = from_zero - days_before_year(year);
    let mut month = 1;
    while left >= days_in_month(year, month) {
        left -= days_in_month(year, month);
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_parse_to_nanoseconds() {
        let table = [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-01-01T00:00:00Z", 1_767_225_600_000_000_000),
            ("2026-01-01T01:30:00+01:30", 1_767_225_600_000_000_000),
            ("2024-02-29T23:59:59.5Z", 1_709_251_199_500_000_000),
            ("2024-02-29T23:59:59.1234567899-00:00", 1_709_251_199_123_456_789),
            ("1969-12-31T23:59:59.999999999Z", -1),
            ("0001-01-01T00:00:00Z", i64::MIN),
            ("9999-12-31T00:00:00Z", i64::MAX),
        ];
        for (text, nanos) in table {
            assert_eq!(parse_time(text), Some(Time(nanos)), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_rejected() {
        for text in [
            "",
            "2026-01-01",
            "2026-01-01T00:00:00",
            "2026-13-01T00:00:00Z",
            "2026-02-29T00:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+1:00",
            "2026-01-01T00:00:00Zx",
            "２026-01-01T00:00:00Z",
        ] {
            assert_eq!(parse_time(text), None, "{text}");
        }
    }

    #[test]
    fn a_printed_time_parses_to_itself() {
        for nanos in [0, 1, -1, 1_767_225_600_000_000_000, 951_782_400_000_000_000, i64::MAX, i64::MIN, 1_500_000_000] {
            assert_eq!(parse_time(&format_time(Time(nanos))), Some(Time(nanos)), "{}", format_time(Time(nanos)));
        }
        assert_eq!(format_time(Time(951_782_400_000_000_000)), "2000-02-29T00:00:00Z");
        assert_eq!(format_time(Time(1_500_000_000)), "1970-01-01T00:00:01.5Z");
        // Every day of 800 years, so that each kind of leap year is passed.
        for day in -146_097..146_097 {
            let (year, month, date) = civil_date(day);
            assert_eq!(days_since_1970(year, month, date), day);
        }
    }
}
