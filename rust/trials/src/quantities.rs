//! Two quantities, one per line: written and read again, and compared with exact arithmetic (rules/01 §7).

use std::cmp::Ordering;

use kueuecore::base::amount::Amount;
use kueuecore::base::quantity::Quantity;
use kueuecore::objects::resource_names::{amount_from_quantity, quantity_from_value};

use crate::exact::{ceil, clamp, nanos};

const UNIT: i128 = 1_000_000_000;

/// Panics if a quantity has the wrong value.
pub fn quantities(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let (first, second) = text.split_once('\n').unwrap_or((text, ""));
    let read: Vec<(Quantity, Option<i128>)> = [first, second]
        .into_iter()
        .filter_map(|text| Quantity::parse(text).ok().map(|quantity| (quantity, nanos(text))))
        .collect();
    for (quantity, exact) in &read {
        check_one(quantity, *exact);
    }
    if let [(a, exact_a), (b, exact_b)] = &read[..] {
        check_two(a, b);
        if let (Some(exact_a), Some(exact_b)) = (exact_a, exact_b) {
            check_exact(a, b, *exact_a, *exact_b);
        }
        check_amounts(a.ceil_milli(), b.ceil_milli());
        check_amounts(a.ceil_units(), b.ceil_units());
    }
}

/// Exponents are cut off far beyond any real object; near the cut, a quantity is written but not read again.
const MAX_EXPONENT: i64 = 999_999_000;

fn exponent(text: &str) -> Option<i64> {
    text.split_once(['e', 'E'])?.1.parse().ok()
}

fn check_one(quantity: &Quantity, exact: Option<i128>) {
    let written = quantity.to_string();
    if exponent(&written).is_some_and(|exponent| exponent.abs() > MAX_EXPONENT) {
        return;
    }
    let again = Quantity::parse(&written).unwrap_or_else(|error| panic!("{written} was written: {error}"));
    assert_eq!(again.cmp_value(quantity), Ordering::Equal, "{written} is read again");
    // 62.5Ki is written as 64000, which Kubernetes reads as decimal and writes as 64k.
    if !written.ends_with("000") {
        assert_eq!(again, *quantity, "{written} is read again");
        assert_eq!(again.to_string(), written);
    }
    assert_eq!(quantity.is_zero(), quantity.signum() == 0, "{written}");
    assert!(quantity.minus(quantity).is_zero(), "{written} - {written}");
    assert!(!quantity.as_f64().is_nan(), "{written} as a float");
    // Kueue has no number either where it multiplies zero by a power beyond all floats.
    let _ = quantity.as_f64_approximate();
    for factor in [0.0, 0.5, -1.0 / 3.0, 1e300, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN] {
        let _ = quantity.times_f64_toward_zero(factor).to_string();
    }
    for resource in ["cpu", "memory", "example.com/gpu"] {
        let value = amount_from_quantity(resource, quantity).get();
        // Kueue's unit can be written as a quantity again, with the same value.
        let back = quantity_from_value(resource, value, false);
        if value == i64::MIN {
            // -8Ei: Kubernetes clamps binary quantities to ±(2^63-1).
            continue;
        }
        assert_eq!(amount_from_quantity(resource, &back).get(), value, "{written} of {resource}, as {back}");
    }
    let Some(exact) = exact else { return };
    assert_eq!(quantity.ceil_units(), ceil(exact, UNIT), "{written} in units");
    assert_eq!(quantity.ceil_milli(), ceil(exact, UNIT / 1000), "{written} in thousandths");
    assert_eq!(i128::from(quantity.signum()), exact.signum(), "sign of {written}");
    let float = exact as f64 / 1e9;
    assert!((quantity.as_f64() - float).abs() <= float.abs() * 1e-12, "{written} is {}", quantity.as_f64());
}

fn check_two(a: &Quantity, b: &Quantity) {
    assert_eq!(a.cmp_value(b), b.cmp_value(a).reverse(), "{a} and {b} compared");
    assert_eq!(a.plus(b).cmp_value(&b.plus(a)), Ordering::Equal, "{a} + {b}");
    assert_eq!(a.times(b).cmp_value(&b.times(a)), Ordering::Equal, "{a} x {b}");
    assert_eq!(a.minus(b).signum(), -b.minus(a).signum(), "{a} - {b}");
    assert_eq!(a == b, a.to_string() == b.to_string(), "{a} and {b} are equal when they are written alike");
    for result in [a.plus(b), a.minus(b), a.times(b)] {
        let _ = (result.to_string(), result.ceil_units(), result.ceil_milli(), result.as_f64());
    }
}

fn check_exact(a: &Quantity, b: &Quantity, exact_a: i128, exact_b: i128) {
    assert_eq!(a.cmp_value(b), exact_a.cmp(&exact_b), "{a} and {b} compared");
    let same = |result: &Quantity, exact: i128, what: &str| {
        let expected = Quantity::parse(&format!("{exact}n")).expect("a number of 10^-9");
        assert_eq!(result.cmp_value(&expected), Ordering::Equal, "{a} {what} {b} is {result}, not {expected}");
    };
    let limit = 10i128.pow(35);
    if exact_a.abs() < limit && exact_b.abs() < limit {
        same(&a.plus(b), exact_a + exact_b, "+");
        same(&a.minus(b), exact_a - exact_b, "-");
    }
    if exact_a % UNIT == 0
        && let Some(product) = (exact_a / UNIT).checked_mul(exact_b).filter(|product| product.abs() < limit)
    {
        same(&a.times(b), product, "x");
    }
}

/// Sums of quota saturate, and the largest number means `unlimited` (rules/02 §1).
fn check_amounts(a: i64, b: i64) {
    let (x, y) = (Amount::new(a), Amount::new(b));
    let (wide_a, wide_b) = (i128::from(a), i128::from(b));
    let is_finite = !x.is_unlimited() && !y.is_unlimited();
    let sum = if is_finite { clamp(wide_a + wide_b) } else { i64::MAX };
    assert_eq!(x.plus(y).get(), sum, "{x} + {y}");
    let difference = match (x.is_unlimited(), y.is_unlimited()) {
        (true, true) => 0,
        (true, false) => i64::MAX,
        (false, true) => i64::MIN,
        (false, false) => clamp(wide_a - wide_b),
    };
    assert_eq!(x.minus(y).get(), difference, "{x} - {y}");
    let with_units = |wide: i128| if x.is_unlimited() { i64::MAX } else { clamp(wide) };
    assert_eq!(x.plus_units(b).get(), with_units(wide_a + wide_b), "{x} + {b}");
    assert_eq!(x.minus_units(b).get(), with_units(wide_a - wide_b), "{x} - {b}");
}
