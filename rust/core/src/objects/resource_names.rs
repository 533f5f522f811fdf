//! How a resource's name affects its numbers (rules/01 §7.1, §7.2; rules/02 §1).

use std::cmp::Ordering;

use crate::base::amount::Amount;
use crate::base::quantity::{Family, Quantity};

/// The one resource that is counted in thousandths.
pub const CPU: &str = "cpu";
/// Main memory, in bytes.
pub(crate) const MEMORY: &str = "memory";
/// Local disk, in bytes.
pub(crate) const EPHEMERAL_STORAGE: &str = "ephemeral-storage";
/// Prefix of huge-page resources, in bytes.
pub(crate) const HUGE_PAGES_PREFIX: &str = "hugepages-";

/// The integer for a request: milli-units of `cpu`, whole units of everything else, rounded away from zero and clamped
/// to `i64` (rules/01 §7.1).
#[must_use]
pub fn resource_value(resource: &str, quantity: &Quantity) -> i64 {
    if resource == CPU { quantity.ceil_milli() } else { quantity.ceil_units() }
}

/// The amount for a quota. From 9223372036854775 cores, or 2^63-1 of anything else, it is unlimited (rules/02 §1).
#[must_use]
pub fn amount_from_quantity(resource: &str, quantity: &Quantity) -> Amount {
    let first_unlimited = if resource == CPU { i64::MAX / 1000 } else { i64::MAX };
    let first_unlimited = Quantity::from_units(first_unlimited, Family::DecimalSi);
    if quantity.cmp_value(&first_unlimited) == Ordering::Less {
        Amount::new(resource_value(resource, quantity))
    } else {
        Amount::UNLIMITED
    }
}

/// The quantity that Kueue writes for an integer value, in a status or in a message (rules/01 §7.2).
///
/// `byte_valued`: the resource is declared to be written like memory; `memory`, `ephemeral-storage` and huge pages
/// always are.
#[must_use]
pub fn quantity_from_value(resource: &str, value: i64, byte_valued: bool) -> Quantity {
    if resource == CPU || !(byte_valued || is_byte_valued(resource)) {
        return exact_quantity(resource, value);
    }
    // A value written without a binary suffix is read back as a decimal quantity.
    if value.unsigned_abs() >= 1 << 40 || value.unsigned_abs() == 1000 {
        let written = Quantity::from_units(value, Family::BinarySi);
        return Quantity::parse(&written.to_string()).unwrap_or(written);
    }
    let has_suffix = value % 1024 == 0 && value != 0;
    Quantity::from_units(value, if has_suffix { Family::BinarySi } else { Family::DecimalSi })
}

/// The same number; its form matters only when written.
#[must_use]
pub(crate) fn exact_quantity(resource: &str, value: i64) -> Quantity {
    if resource == CPU { Quantity::from_milli(value) } else { Quantity::from_units(value, Family::DecimalSi) }
}

/// Is the resource in bytes by name?
#[must_use]
pub(crate) fn is_byte_valued(resource: &str) -> bool {
    resource == MEMORY || resource == EPHEMERAL_STORAGE || resource.starts_with(HUGE_PAGES_PREFIX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quantity(text: &str) -> Quantity {
        Quantity::parse(text).expect("a quantity")
    }

    #[test]
    fn requests_clamp_to_the_integers() {
        let table = [
            ("cpu", "1500m", 1500),
            ("cpu", "1u", 1),
            ("cpu", "10000000000000000", i64::MAX),
            ("memory", "1500m", 2),
            ("memory", "100Ei", i64::MAX),
            ("example.com/gpu", "100m", 1),
            ("example.com/gpu", "-100000000000000000000", i64::MIN),
        ];
        for (resource, text, value) in table {
            assert_eq!(resource_value(resource, &quantity(text)), value, "{resource} {text}");
        }
    }

    #[test]
    fn quotas_become_unlimited_a_little_before_the_integers_end() {
        let table = [
            ("cpu", "9223372036854774.999", Amount::new(9_223_372_036_854_774_999)),
            ("cpu", "9223372036854775", Amount::UNLIMITED),
            ("cpu", "1E", Amount::UNLIMITED),
            ("memory", "9223372036854775806", Amount::new(i64::MAX - 1)),
            ("memory", "10E", Amount::UNLIMITED),
        ];
        for (resource, text, amount) in table {
            assert_eq!(amount_from_quantity(resource, &quantity(text)), amount, "{resource} {text}");
        }
    }

    #[test]
    fn written_byte_quantities_read_back_equal() {
        let near = |value: i64| (-2..3).map(move |by| value.saturating_add(by));
        let powers = (0..63).flat_map(|n| near(1 << n));
        let decimal = (0..19).flat_map(|n| near(10_i64.pow(n)).chain(near(3 * 10_i64.pow(n.min(18)))));
        let multiples = (0..2100).map(|n| n * 512);
        for value in powers.chain(decimal).chain(multiples).chain([i64::MAX, i64::MIN]) {
            for value in [value, value.saturating_neg()] {
                let written = Quantity::from_units(value, Family::BinarySi).to_string();
                let found = quantity_from_value("memory", value, false);
                assert_eq!(format!("{found:?}"), format!("{:?}", quantity(&written)), "{value} {written}");
            }
        }
    }

    #[test]
    fn bytes_print_binary_where_1024_divides_them() {
        let table = [
            ("cpu", 1500, "1500m"),
            ("cpu", 5000, "5"),
            ("memory", 0, "0"),
            ("memory", 1 << 30, "1Gi"),
            ("memory", 128_000, "125Ki"),
            ("memory", 1500, "1500"),
            ("memory", 1_500_000, "1500k"),
            ("hugepages-2Mi", 1 << 21, "2Mi"),
            ("example.com/gpu", 1000, "1k"),
            ("example.com/gpu", 1024, "1024"),
        ];
        for (resource, value, text) in table {
            assert_eq!(quantity_from_value(resource, value, false).to_string(), text, "{resource} {value}");
        }
        assert_eq!(quantity_from_value("gpu.memory", 10_468_982_784, true).to_string(), "9984Mi");
    }
}
