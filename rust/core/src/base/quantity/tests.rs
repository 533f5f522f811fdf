use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Family, ParseQuantityError, Quantity};

fn quantity(text: &str) -> Quantity {
    Quantity::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn canonical_form_uses_the_largest_suffix_of_the_family() {
    let table = [
        ("0", "0"),
        ("0Ki", "0"),
        ("3000m", "3"),
        ("1500m", "1500m"),
        ("0.5", "500m"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000Mi", "1000Mi"),
        ("1000", "1k"),
        ("1073741824", "1073741824"),
        ("12e6", "12e6"),
        ("12000e3", "12e6"),
        ("10e1", "100"),
        ("-0.25", "-250m"),
        ("1n", "1n"),
        ("-100000000000000000000", "-100E"),
        ("1000E", "1e21"),
    ];
    for (text, canonical) in table {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn some_texts_are_kept_as_written() {
    for text in ["1.500", "+5", "007", "1.234k", "1E3", "5e0", "+1Gi", "01Gi"] {
        assert_eq!(quantity(text).to_string(), text);
    }
    assert_ne!(quantity("1.500"), quantity("1500m"));
    assert_eq!(quantity("1.500").plus(&quantity("0")).to_string(), "1500m");
}

#[test]
fn more_than_nine_decimals_round_away_from_zero() {
    for (text, canonical) in [
        ("0.0000000001", "1n"),
        ("-0.0000000001", "-1n"),
        ("1.0000000001", "1000000001n"),
        ("1e-20", "1e-9"),
        ("0.1n", "1n"),
        ("0.00000000049Ki", "502n"),
    ] {
        assert_eq!(quantity(text).to_string(), canonical, "{text}");
    }
}

#[test]
fn binary_quantities_stop_at_the_largest_integer() {
    assert_eq!(quantity("100Ei").to_string(), "9223372036854775807");
    assert_eq!(quantity("-100Ei").to_string(), "-9223372036854775807");
    assert_eq!(quantity("7Ei").to_string(), "7Ei");
}

#[test]
fn invalid_quantities_get_a_reason() {
    use ParseQuantityError::{Format, Numeric, Suffix};
    let table = [
        ("", Format),
        ("abc", Format),
        ("1.5.2", Format),
        ("1 Gi", Format),
        ("1e5m", Format),
        ("1K", Suffix),
        ("1e", Suffix),
        ("1e-", Suffix),
        ("5-3", Suffix),
        ("1Ee3", Suffix),
        ("1mi", Suffix),
        ("e-20", Numeric),
        (".Ei", Numeric),
    ];
    for (text, error) in table {
        assert_eq!(Quantity::parse(text), Err(error), "{text}");
    }
    assert_eq!(Suffix.to_string(), "unable to parse quantity's suffix");
}

#[test]
fn equality_is_that_of_the_canonical_form() {
    assert_eq!(quantity("3000m"), quantity("3"));
    assert_eq!(quantity("1024Mi"), quantity("1Gi"));
    assert_ne!(quantity("1Gi"), quantity("1073741824"));
    assert_eq!(quantity("1Gi").cmp_value(&quantity("1073741824")), Ordering::Equal);
    assert_eq!(Quantity::default(), quantity("0Gi"));
}

#[test]
fn integer_values_round_away_from_zero_and_clamp() {
    assert_eq!(quantity("1500m").ceil_units(), 2);
    assert_eq!(quantity("-1500m").ceil_units(), -2);
    assert_eq!(quantity("100u").ceil_milli(), 1);
    assert_eq!(quantity("9223372036854775807").ceil_units(), i64::MAX);
    assert_eq!(quantity("9223372036854775808").ceil_units(), i64::MAX);
    assert_eq!(quantity("-1e400").ceil_milli(), i64::MIN);
    assert_eq!(quantity("1e-400").ceil_units(), 1);
}

#[test]
fn sums_keep_the_family_of_the_first_that_is_not_zero() {
    assert_eq!(quantity("1Gi").plus(&quantity("1Mi")).to_string(), "1025Mi");
    assert_eq!(quantity("0").plus(&quantity("2Ki")).to_string(), "2Ki");
    assert_eq!(quantity("1Ki").plus(&quantity("500m")).to_string(), "1024500m");
    assert_eq!(quantity("2").minus(&quantity("500m")).to_string(), "1500m");
    assert_eq!(quantity("1e30").plus(&quantity("-1e30")).plus(&quantity("1n")).to_string(), "1n");
}

#[test]
fn products_are_exact() {
    assert_eq!(quantity("500m").times(&quantity("0.25")).to_string(), "125m");
    let long = quantity("123456789.123456789").times(&quantity("987654321.987654321"));
    assert_eq!(long.cmp_value(&quantity("121932631356500531")), Ordering::Greater);
    assert_eq!(long.ceil_units(), 121_932_631_356_500_532);
    // 123456789123456789 * 987654321987654321 = 121932631356500531347203169112635269 (x 10^-18)
    assert_eq!(long.to_string(), "121932631356500531347203169112635269e-18");
}

#[test]
fn numbers_past_the_limit_neither_panic_nor_shrink() {
    let digits = "9".repeat(60);
    let large = quantity(&digits);
    assert_eq!(large.cmp_value(&quantity("1e60")), Ordering::Equal);
    assert_eq!(large.times(&large).cmp_value(&quantity("1e119")), Ordering::Greater);
    assert_eq!(large.plus(&quantity("1n")).cmp_value(&large), Ordering::Greater);
    let _ = quantity("1e999999999999").times(&quantity("1e999999999999")).times(&quantity("1e999999999")).to_string();
}

#[test]
fn a_float_factor_rounds_toward_zero_at_nine_decimals() {
    let factor = 0.000_343_763_905_873_872_84;
    assert_eq!(quantity("64Ti").times_f64_toward_zero(factor).to_string(), "24190234349953124739n");
    assert_eq!(quantity("2").times_f64_toward_zero(factor).to_string(), "687527n");
    assert_eq!(quantity("2").times_f64_toward_zero(-factor).to_string(), "-687527n");
    assert_eq!(quantity("1500m").times_f64_toward_zero(1.0).to_string(), "1500m");
    assert_eq!(quantity("2").times_f64_toward_zero(f64::NAN).to_string(), "0");
}

#[test]
#[allow(clippy::float_cmp)] // the very bits matter
fn floats() {
    assert_eq!(quantity("0.3").as_f64(), 0.3);
    // The nearest float is one bit lower.
    assert_eq!(quantity("3454.300027").as_f64().to_bits(), 3_454.300_027_f64.to_bits() + 1);
    assert_eq!(quantity("-1n").as_f64(), -1e-9);
    assert_eq!(quantity("0.3").as_f64_approximate(), 0.300_000_000_000_000_04);
    // A number parsed on the big-decimal path gets nine decimals, even if it has fewer.
    assert_eq!(quantity("1900Ti").as_f64_approximate(), 2_089_072_092_774_400.2);
    assert_eq!(quantity("1500m").as_f64_approximate(), 1.5);
    assert_eq!(quantity("1Gi").as_f64(), 1_073_741_824.0);
    assert_eq!(quantity("1e999").as_f64(), f64::INFINITY);
}

fn texts() -> impl Strategy<Value = String> {
    "[+-]?[0-9]{0,30}(\\.[0-9]{0,15})?(n|u|m||k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,2})"
}

proptest! {
    #[test]
    fn written_quantities_read_back_equal(text in texts()) {
        if let Ok(once) = Quantity::parse(&text) {
            let again = quantity(&once.to_string());
            prop_assert_eq!(again.to_string(), once.to_string());
            prop_assert_eq!(again.cmp_value(&once), Ordering::Equal);
            prop_assert_eq!(&again, &once);
        }
    }

    #[test]
    fn any_text_gives_an_answer(text in "[-+0-9.eEinumkKMGTP ]{0,40}") {
        let _ = Quantity::parse(&text);
    }

    #[test]
    fn equality_is_that_of_the_text(a in texts(), b in texts()) {
        if let (Ok(a), Ok(b)) = (Quantity::parse(&a), Quantity::parse(&b)) {
            prop_assert_eq!(a == b, a.to_string() == b.to_string());
        }
    }

    #[test]
    fn integers_come_back(units in any::<i64>(), binary in any::<bool>()) {
        let family = if binary { Family::BinarySi } else { Family::DecimalSi };
        prop_assert_eq!(Quantity::from_units(units, family).ceil_units(), units);
        prop_assert_eq!(Quantity::from_milli(units).ceil_milli(), units);
    }

    #[test]
    fn arithmetic_is_that_of_integers(a in any::<i32>(), b in any::<i32>()) {
        let (left, right) = (Quantity::from_milli(a.into()), Quantity::from_milli(b.into()));
        prop_assert_eq!(left.plus(&right).ceil_milli(), i64::from(a) + i64::from(b));
        prop_assert_eq!(left.minus(&right).ceil_milli(), i64::from(a) - i64::from(b));
        prop_assert_eq!(left.cmp_value(&right), a.cmp(&b));
        let micro = i128::from(a) * i128::from(b);
        let text = format!("{micro}u");
        prop_assert_eq!(left.times(&right).cmp_value(&quantity(&text)), Ordering::Equal);
    }
}
